"""How a drill of a copy went, and what that is worth as evidence that the copy restores."""

from datetime import datetime
from typing import NamedTuple

from registry.models import Drill
from registry.recovery.drills.shapes import FAILED, PASSED


class Outcome(NamedTuple):
    """The verdict, what each part showed, and when. `reason`: why it failed."""

    verdict: str
    read: str
    verify: str
    files: str
    steps_run: int
    ended_at: datetime
    reason: str

    @classmethod
    def of(cls, row: Drill) -> "Outcome":
        return cls(row.verdict, row.read, row.verify, row.files, row.steps_run, row.ended_at, row.reason)

    @property
    def day(self) -> str:
        return f"{self.ended_at:%Y-%m-%d}"

    @property
    def is_unreadable(self) -> bool:
        """Whether the copy cannot be read or is not what is recorded: such a copy is not loaded at all."""
        return self.verdict == FAILED and FAILED in (self.read, self.verify, self.files)

    @property
    def words(self) -> str:
        if self.verdict == FAILED:
            return f"its last drill failed on {self.day}: {self.reason}"
        what = "loaded and trained" if self.steps_run else "read and verified" if self.verify == PASSED else "read"
        return f"{what} in a drill on {self.day}"


def evidence_of(verification: str, last: Outcome | None) -> str:
    """The best evidence that a copy restores, as a key of P_OK, from its verification and its last drill."""
    if (last is not None and last.verdict == FAILED) or verification == "corrupt":
        return "failed"
    if last is not None and last.steps_run:
        return "drill"
    if verification == "verified" or (last is not None and last.verify == PASSED):
        return "verified hash"
    return "none" if last is None else "size only"
