"""The spool that this process writes: records on disk until the service has them.

What *spooled* promises: when `append` answers True, the record has been handed to the operating system in one write.
It outlives this process however that ends, `kill -9` included. `sync` runs in the background about once a second and
makes it outlive the host. When `append` answers False the record is in memory: the disk is full, read-only or does not
answer, and it will be written, or sent, as soon as that is possible; at most `memory.MEMORY_BYTES` are kept that way.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from cairn.spool.files import Files, Gone
from cairn.spool.frames import frame, payload
from cairn.spool.lease import RENEW_SECONDS, TRUST_SECONDS, Lease, begin, clock
from cairn.spool.memory import MEMORY_BYTES, MEMORY_RECORDS, Later, Memory, Record, Waiting
from cairn.spool.places import new_folder

# A disk that has let the background wait for this long would let training wait too.
SLOW_SECONDS = 0.25
RETRY_SECONDS = 2.0
HEADS = ("start", "attempt")  # without which nobody can send the records of a stream
HEADS_BYTES = 4 * 1024 * 1024


class SpoolWriter:
    """Appends from any thread of one process. `tick` is the background's part; nothing else here waits for a disk."""

    def __init__(self, roots: Sequence[Path], warn: Callable[[str], None]) -> None:
        self.folder: Path | None = None
        self.is_due = threading.Event()  # something waits for the background that need not wait for long
        self._roots, self._warn = roots, warn
        self._lock = threading.Lock()
        self._memory = Memory(warn)
        self._files = Files()
        self._number = 0
        self._lease: Lease | None = None
        self._lease_at = 0.0
        self._is_gone = False
        self._heads: list[tuple[int, bytes]] = []
        self._since_lease: deque[tuple[int, bytes]] = deque(maxlen=MEMORY_RECORDS)
        self._busy_since = 0.0
        self._retry_at = 0.0

    # What calls do

    def append(self, record: Record) -> bool:
        """Keeps a record; True where it is on disk. Raises ValueError or TypeError for what is not plain JSON."""
        body = payload(record)
        with self._lock:
            number = self._number + 1
            if record.get("kind") in HEADS:
                self._keep_head(number, body)
            is_written = not self._memory and self._usable() and self._write(number, body)
            if not is_written:
                self._memory.keep(Waiting(number, body))
            self._number = number  # only now: who has seen it finds the record
            return is_written

    def append_later(self, later: Later) -> bool:
        """Keeps a record that is made in the background, soon; those after it wait for it, so that the order stays.
        False where it cannot be kept."""
        with self._lock:
            is_kept = self._memory.keep(Waiting(self._number + 1, None, later))
            self._number += 1
        self.is_due.set()
        return is_kept

    # What the background does

    def tick(self) -> None:
        """Opens the folder where that is due, renews the lease, and writes what waits in memory."""
        self._guarded(self._open)
        self._guarded(self._renew)
        self._guarded(self._drain)
        self._guarded(self._rotate)

    def sync(self) -> None:
        """What was written so far outlives the host."""
        with self._lock:
            handle, dirty, self._files.dirty = self._files.handle, self._files.dirty, False
        if dirty and handle >= 0:
            self._guarded(lambda: os.fsync(handle))

    def from_memory(self, most: int, without: Collection[str] = ()) -> list[tuple[int, Record]]:
        """Records that cannot be written just now, for sending them all the same; `sent_from_memory` follows."""
        with self._lock:
            if self._usable():
                return []  # they are about to be written
            found = self._memory.unsent()
        return self._memory.read(found, most, without)

    def sent_from_memory(self, number: int) -> None:
        with self._lock:
            self._memory.sent(number)

    @property
    def waiting(self) -> int:
        """How many records are in memory only."""
        return len(self._memory)

    @property
    def lost(self) -> int:
        """How many could neither be written nor be kept in memory."""
        return self._memory.lost

    @property
    def last(self) -> int:
        """The number of the newest record."""
        return self._number

    @property
    def segment(self) -> int:
        """The number of the file that is written to."""
        return self._files.segment

    def close(self) -> None:
        """Nothing is acknowledged as spooled any more."""
        with self._lock:
            self._files.shut()

    def holds(self) -> bool:
        """Whether the folder is this process's still."""
        return self._lease is not None and self._lease.is_held()

    def release(self) -> None:
        """After `close`: whoever comes next may have the folder."""
        if self._lease is not None:
            self._lease.release()

    def forget_after_fork(self) -> None:
        """In a child: the file is the parent's. Locks may be held by threads that do not exist here."""
        self._lock, self._memory, self.is_due = threading.Lock(), Memory(self._warn), threading.Event()
        self._files.shut()

    # How

    def _usable(self) -> bool:
        """A process that has stood still for long, or whose host was suspended, may have lost its folder: first the
        background looks."""
        if not self._files.is_open or self._is_gone or clock() - self._lease_at > TRUST_SECONDS:
            return False
        since = self._busy_since
        return not (since and time.monotonic() - since > SLOW_SECONDS)

    def _write(self, number: int, body: bytes) -> bool:
        try:
            self._files.write(frame(number, body))
        except Gone:
            self._is_gone = True
            return False
        except OSError as fault:
            self._disk_failed(fault)
            return False
        self._since_lease.append((number, body))
        return True

    def _keep_head(self, number: int, body: bytes) -> None:
        self._heads.append((number, body))
        while len(self._heads) > 1 and sum(len(each) for _, each in self._heads) > HEADS_BYTES:
            del self._heads[0]

    def _disk_failed(self, fault: OSError) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._files.shut()
        self._warn_of_disk(fault)

    def _warn_of_disk(self, fault: OSError) -> None:
        where = self.folder or self._roots[0]
        self._warn(
            f"the spool {where} cannot be written ({fault.strerror or fault}). Records are kept in memory, at most "
            f"{MEMORY_BYTES >> 20} MiB, and are lost if this process dies. Set CAIRN_SPOOL to a folder with space."
        )

    def _guarded(self, work: Callable[[], object]) -> None:
        self._busy_since = time.monotonic()
        try:
            work()
        except OSError as fault:
            with self._lock:
                self._disk_failed(fault)
        finally:
            self._busy_since = 0.0

    def _open(self) -> None:
        if self._files.is_open or time.monotonic() < self._retry_at:
            return
        if self.folder is None:
            self._make_folder()
        if self.folder is not None:
            self._open_segment(self.folder, self._files.segment + 1)

    def _make_folder(self) -> None:
        fault: OSError | None = None
        for root in self._roots:
            try:
                folder = new_folder(root, begin)
                self._lease, self._lease_at = Lease(folder, 1), clock()
                self._repeat_heads()
                self.folder = folder
                if fault is not None:
                    self._warn(
                        f"the spool {self._roots[0]} cannot be written ({fault.strerror}); {root} is used instead."
                    )
                return
            except OSError as problem:
                fault = fault or problem
        self._retry_at = time.monotonic() + RETRY_SECONDS
        if fault is not None:
            self._warn_of_disk(fault)

    def _repeat_heads(self) -> None:
        """Each folder can be sent by itself: what opens its attempts stands in it, sent already or not."""
        with self._lock:
            there = {each.number for each in self._memory.unsent()}
            self._memory.put_before(Waiting(number, body) for number, body in self._heads if number not in there)

    def _open_segment(self, folder: Path, number: int) -> None:
        handle = self._files.open(folder, number)
        with self._lock:
            before = self._files.swap(handle, number)
        if before >= 0:
            os.fsync(before)
            os.close(before)

    def _rotate(self) -> None:
        if self._files.is_full and self.folder is not None:
            self._open_segment(self.folder, self._files.segment + 1)

    def _drain(self) -> None:
        """Writes what is in memory, in order. Making a record happens without the lock: it may take its time."""
        while self._files.is_open and not self._is_gone and (first := self._memory.first()) is not None:
            body = self._memory.made(first)
            with self._lock:
                if not self._files.is_open or self._memory.first() is not first:
                    return
                if not first.sent and not self._write(first.number, body):
                    return
                self._memory.drop_first()

    def _renew(self) -> None:
        """A lease that was taken over means that others thought this process dead: what they may have missed is
        written again, into a new folder. Sending a record twice does no harm."""
        if self._lease is None or (clock() - self._lease_at < RENEW_SECONDS and not self._is_gone):
            return
        if not self._is_gone and self._lease.renew():
            self._lease_at = clock()
            with self._lock:
                self._since_lease.clear()
            return
        with self._lock:
            self._files.shut()
            self._files.segment = 0
            self._memory.put_before(Waiting(number, body) for number, body in self._since_lease)
            self._since_lease.clear()
            self.folder, self._lease, self._is_gone = None, None, False
