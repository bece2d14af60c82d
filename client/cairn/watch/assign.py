"""Gives each checkpoint of a look its attempt: what is known keeps its own, what is new follows the run."""

from collections.abc import Callable, Mapping, Sequence

from cairn.scan.arrange import LEFT_OUT, NEW, PENDING
from cairn.scan.spool import Row, Spool
from cairn.watch.attempts import Attempts, Saved
from cairn.watch.state import Known

_OF_RUN = """
SELECT id, path, step, modified, attempt, said_attempt, hint, kind FROM found
WHERE run = ? AND status IN (?, ?) AND id NOT IN (SELECT child FROM parent WHERE run != ?)
ORDER BY coalesce(modified, 0), step
"""
_FOLLOW = """
UPDATE found SET attempt = (
    SELECT parent.attempt FROM parent WHERE parent.child = found.id AND parent.run != found.run LIMIT 1
) WHERE status IN (?, ?) AND id IN (SELECT child FROM parent WHERE run != found.run)
"""
_BESIDE = "saved beside another checkpoint of the same step"
_REPARENT = "UPDATE parent SET attempt = ? WHERE run = ? AND attempt = ? AND step = ?"


def assign(
    spool: Spool,
    known: Mapping[str, Known],
    prints: Mapping[str, str],
    attempts_of: Callable[[str], Attempts],
    settle_seconds: float,
) -> list[tuple[str, int, str]]:
    """Sets the attempts; answers those that were opened, as (run, number, why)."""
    opened: list[tuple[str, int, str]] = []
    runs = [row["run"] for row in spool.rows("SELECT DISTINCT run FROM found WHERE run IS NOT NULL")]
    for run in runs:
        rows = list(spool.rows(_OF_RUN, (run, NEW, PENDING, run)))
        lane = _Lane(run, attempts_of(run), [each for each in known.values() if each.run == run], settle_seconds)
        for row in rows:
            number, again = lane.attempt_of(row, known.get(row["path"]), prints)
            if number is None:
                spool.change("UPDATE found SET status = ?, note = ? WHERE id = ?", (LEFT_OUT, _BESIDE, row["id"]))
                continue
            spool.change("UPDATE found SET attempt = ?, again = ? WHERE id = ?", (number, again, row["id"]))
            spool.change(_REPARENT, (number, run, row["attempt"], row["step"]))
        opened += [(run, number, why) for number, why in lane.opened]
    spool.change(_FOLLOW, (NEW, PENDING))
    return opened


class _Lane:
    """The run as its checkpoints appear, in the order in which they were written."""

    def __init__(self, run: str, attempts: Attempts, known: Sequence[Known], settle_seconds: float) -> None:
        self._run, self._attempts, self._settle = run, attempts, settle_seconds
        self._known = list(known)
        self._now = max((each.attempt for each in known), default=0)
        self._saved = [Saved(each.attempt, each.step) for each in known]
        self._newest_time = max((each.modified or 0.0 for each in known), default=0.0)
        self.opened: list[tuple[int, str]] = []

    def attempt_of(self, row: Row, known: Known | None, prints: Mapping[str, str]) -> tuple[int | None, bool]:
        """The attempt, and whether files that were recorded have been written again. None: a second one of its step."""
        same = known is not None and (known.state == "pending" or known.print == prints[row["path"]])
        if known is not None and same and known.step == row["step"]:
            return known.attempt, False
        number = self._number(row, again=known is not None)
        if number is None:
            return None, False
        self._saved.append(Saved(number, row["step"]))
        self._newest_time = max(self._newest_time, row["modified"] or 0.0)
        self._now = max(self._now, number)
        return number, known is not None

    def _number(self, row: Row, *, again: bool) -> int | None:
        if row["said_attempt"] is not None:
            return int(row["said_attempt"])
        if not self._known:  # the first look: times and names of files tell, as for any tree of old checkpoints
            started = self._attempts.started_before(row["modified"])
            return max(int(row["attempt"]), started)
        if self._attempts.newest() > self._now:
            return self._attempts.newest()
        top = max((each.step for each in self._saved if each.attempt == self._now), default=-1)
        late = not again and row["modified"] is not None and row["modified"] < self._newest_time + self._settle
        if late and Saved(self._now, row["step"]) in self._saved:
            return None
        if row["step"] > top or late:
            return max(self._now, 1)
        why = f"step {row['step']} was written after step {top}"
        number = self._attempts.open(row["step"], self._saved, why)
        self.opened.append((number, why))
        return number
