"""A process of its own that digests mapped files, and nothing else: `python -I -S mapped.py FOLDER-OF-BLAKE3`.

Mapping spares the copy that reading makes, a quarter of the time; but a mapped file that shrinks ends the process
that looks at it (SIGBUS). Here that costs this process only: whatever it has not answered, its parent reads.

Standard input: `index NUL size NUL path LF` with the path in hexadecimal; standard output: `index digest`, or
`index !` for what should be read instead. It imports as little as it can, since its start counts.
"""

import os
import stat
import sys
import threading

# The library gains from several threads on one file from about here.
LARGE_BYTES = 32 * 1024 * 1024
OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def main() -> None:
    sys.path.append(sys.argv[1])
    no_core_dumps()
    from blake3 import blake3

    files = [line.split(b"\0") for line in sys.stdin.buffer.read().splitlines()]
    waiting = sorted(((int(size), number, path) for number, size, path in files), reverse=True)
    lock = threading.Lock()

    def answer(size: int, number: bytes, path: bytes) -> None:
        threads = blake3.AUTO if size >= LARGE_BYTES else 1
        value = digest(bytes.fromhex(path.decode()), size, lambda place: blake3(max_threads=threads).update_mmap(place))
        with lock:
            sys.stdout.write(f"{number.decode()} {value}\n")
            sys.stdout.flush()

    def work() -> None:
        while True:
            with lock:
                if not small:
                    return
                one = small.pop()
            answer(*one)

    small = [each for each in waiting if each[0] < LARGE_BYTES][::-1]
    for each in waiting[: len(waiting) - len(small)]:
        answer(*each)
    workers = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def digest(path: bytes, size: int, hashed) -> str:  # type: ignore[no-untyped-def]
    """The digest of a file that is, and stays, a regular file of that size; else `!`."""
    try:
        handle = os.open(path, OPEN)
    except OSError:
        return "!"
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode) or before.st_size != size:
            return "!"
        value: str = hashed(f"/dev/fd/{handle}").hexdigest()
        after = os.fstat(handle)
        return value if (after.st_size, after.st_mtime_ns) == (size, before.st_mtime_ns) else "!"
    except OSError:
        return "!"
    finally:
        os.close(handle)


def no_core_dumps() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass


if __name__ == "__main__":
    main()
