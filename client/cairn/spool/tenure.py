"""The folder that this process writes to, for as long as it is this process's."""

from collections.abc import Callable, Sequence
from pathlib import Path

from cairn.spool.lease import RENEW_SECONDS, TRUST_SECONDS, Lease, begin, clock
from cairn.spool.places import new_folder


class Tenure:
    """A folder below one of the roots and its lease; another folder once the first is lost."""

    def __init__(self, roots: Sequence[Path], warn: Callable[[str], None]) -> None:
        self.is_gone = False  # somebody has removed what was written
        self._roots, self._warn = roots, warn
        self._lease: Lease | None = None
        self._renewed_at = 0.0

    def begin(self) -> Path:
        """A new folder, below the first root that can be written. Raises OSError where none can."""
        faults: list[OSError] = []
        for root in self._roots:
            try:
                folder = new_folder(root, begin)
            except OSError as fault:
                faults.append(fault)
                continue
            self._lease, self._renewed_at, self.is_gone = Lease(folder, 1), clock(), False
            if faults:
                why = faults[0].strerror
                self._warn(f"the spool {self._roots[0]} cannot be written ({why}); {root} is used instead.")
            return folder
        raise faults[0]

    @property
    def is_sure(self) -> bool:
        """A process that has stood still for long, or whose host was suspended, may have lost its folder."""
        return not self.is_gone and clock() - self._renewed_at <= TRUST_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether it is time to look."""
        return self._lease is not None and (self.is_gone or clock() - self._renewed_at >= RENEW_SECONDS)

    def renew(self) -> bool:
        """Says that the owner lives; False where others thought it dead, or the folder is gone. Raises OSError."""
        if self.is_gone or self._lease is None or not self._lease.renew():
            return False
        self._renewed_at = clock()
        return True

    def holds(self) -> bool:
        """Whether the folder is this process's still."""
        return self._lease is not None and self._lease.is_held()

    def end(self) -> None:
        """The folder is somebody else's."""
        self._lease = None

    def release(self) -> None:
        """Whoever comes next may have the folder."""
        if self._lease is not None:
            self._lease.release()
