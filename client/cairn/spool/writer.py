"""The spool that this process writes: records on disk until the service has them.

What *spooled* promises: when `append` answers True, the record has been handed to the operating system in one write.
It outlives this process however that ends, `kill -9` included. `sync` runs in the background about once a second and
makes it outlive the host. When `append` answers False the record is in memory: the disk is full, read-only or does not
answer, and it will be written, or sent, as soon as that is possible; at most `memory.MEMORY_BYTES` are kept that way.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from cairn.spool.again import HEADS, Again, Numbered
from cairn.spool.files import Files, Gone
from cairn.spool.frames import frame, payload
from cairn.spool.memory import MEMORY_BYTES, Later, Memory, Record, Waiting
from cairn.spool.tenure import Tenure

# A disk that has let the background wait for this long would let training wait too.
SLOW_SECONDS = 0.25
RETRY_SECONDS = 2.0


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
        self._tenure, self._again = Tenure(roots, warn), Again()
        self._busy_since = 0.0
        self._retry_at = 0.0

    # What calls do

    def append(self, *records: Record) -> bool:
        """Keeps records, in one write; True where all are on disk. Raises ValueError or TypeError, and keeps none,
        where one is not plain JSON."""
        bodies = [payload(each) for each in records]
        with self._lock:
            numbered = list(enumerate(bodies, start=self._number + 1))
            for (number, body), record in zip(numbered, records, strict=True):
                if record.get("kind") in HEADS:
                    self._again.opens(number, body)
            is_written = not self._memory and self._usable() and self._write(numbered)
            if not is_written:
                for number, body in numbered:
                    self._memory.keep(Waiting(number, body))
            self._number += len(numbered)  # only now: who has seen it finds the records
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
        return self._tenure.holds()

    def release(self) -> None:
        """After `close`: whoever comes next may have the folder."""
        self._tenure.release()

    def forget_after_fork(self) -> None:
        """In a child: the file is the parent's. Locks may be held by threads that do not exist here."""
        self._lock, self._memory, self.is_due = threading.Lock(), Memory(self._warn), threading.Event()
        self._files.shut()

    # How

    def _usable(self) -> bool:
        if not self._files.is_open or not self._tenure.is_sure:  # then the background looks first
            return False
        since = self._busy_since
        return not (since and time.monotonic() - since > SLOW_SECONDS)

    def _write(self, numbered: Sequence[Numbered]) -> bool:
        try:
            self._files.write(b"".join([frame(number, body) for number, body in numbered]))
        except Gone:
            self._tenure.is_gone = True
            return False
        except OSError as fault:
            self._disk_failed(fault)
            return False
        self._again.written(numbered)
        return True

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
            folder = self._tenure.begin()
            with self._lock:
                self._memory.put_before(self._again.heads({each.number for each in self._memory.unsent()}))
            self.folder = folder
        self._open_segment(self.folder, self._files.next)

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
        while self._files.is_open and not self._tenure.is_gone and (first := self._memory.first()) is not None:
            body = self._memory.made(first)
            with self._lock:
                if not self._files.is_open or self._memory.first() is not first:
                    return
                if not first.sent and not self._write([(first.number, body)]):
                    return
                self._memory.drop_first()

    def _renew(self) -> None:
        """A lease that was taken over means that others thought this process dead: what they may have missed is
        written again, into a new folder. Sending a record twice does no harm."""
        if not self._tenure.is_due:
            return
        is_held = self._tenure.renew()
        with self._lock:
            if is_held:
                self._again.renewed()
                return
            self._files.shut()
            self._files.segment = 0
            self._memory.put_before(self._again.missed())
            self.folder = None
            self._tenure.end()
