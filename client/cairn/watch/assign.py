"""Gives each checkpoint of a look its attempt: what is known keeps its own, what is new follows the run."""

from collections.abc import Callable, Mapping, Sequence

from cairn.scan import names
from cairn.scan.arrange import LEFT_OUT, NEW, PENDING
from cairn.scan.spool import Row, Spool
from cairn.watch.attempts import Attempts, Saved
from cairn.watch.folders import Met
from cairn.watch.prints import written_again
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
_STANDS = "UPDATE found SET step = ?, modified = ?, reason = '' WHERE path = ? AND status IN (?, ?)"
_REPARENT = "UPDATE parent SET attempt = ? WHERE run = ? AND attempt = ? AND step = ?"


def assign(
    spool: Spool,
    known: Mapping[str, Known],
    places: Mapping[str, Met],
    attempts_of: Callable[[str], Attempts],
    settle_seconds: float,
) -> list[tuple[str, int, str]]:
    """Sets the attempts; answers those that were opened, as (run, number, why)."""
    opened: list[tuple[str, int, str]] = []
    standing = _standing(spool, known, places)
    renamed = _renamed(known, places)
    runs = [row["run"] for row in spool.rows("SELECT DISTINCT run FROM found WHERE run IS NOT NULL")]
    for run in runs:
        rows = list(spool.rows(_OF_RUN, (run, NEW, PENDING, run)))
        lane = _Lane(run, attempts_of(run), [each for each in known.values() if each.run == run], settle_seconds)
        for row in rows:
            old = known.get(row["path"]) or renamed.get(row["path"])
            number, again = lane.attempt_of(row, old, stands=row["path"] in standing)
            if number is None:
                spool.change("UPDATE found SET status = ?, note = ? WHERE id = ?", (LEFT_OUT, _BESIDE, row["id"]))
                continue
            spool.change("UPDATE found SET attempt = ?, again = ? WHERE id = ?", (number, again, row["id"]))
            spool.change(_REPARENT, (number, run, row["attempt"], row["step"]))
        opened += [(run, number, why) for number, why in lane.opened]
    spool.change(_FOLLOW, (NEW, PENDING))
    return opened


def _standing(spool: Spool, known: Mapping[str, Known], places: Mapping[str, Met]) -> set[str]:
    """The places whose record holds, since nothing was written there again. They keep the step and the time of their
    save, whatever was since added, removed or touched."""
    found = [
        each
        for path, each in known.items()
        if each.state == "committed" and path in places and not written_again(each.files, places[path].files)
    ]
    spool.change_many(_STANDS, [(each.step, each.modified, each.path, NEW, PENDING) for each in found])
    return {each.path for each in found}


def _renamed(known: Mapping[str, Known], places: Mapping[str, Met]) -> dict[str, Known]:
    """Saves that went on under their temporary name (`tmp-checkpoint-20`), by the path that they have once finished."""
    found = {}
    for path, each in known.items():
        folder, slash, name = path.rpartition("/")
        finished = names.finished_name(name)
        if each.state == "pending" and finished is not None and path not in places:
            found[f"{folder}{slash}{finished}"] = each
    return found


class _Lane:
    """The run as its checkpoints appear, in the order in which they were written."""

    def __init__(self, run: str, attempts: Attempts, known: Sequence[Known], settle_seconds: float) -> None:
        self._run, self._attempts, self._settle = run, attempts, settle_seconds
        self._known = list(known)
        self._now = max((each.attempt for each in known), default=0)
        self._saved = [Saved(each.attempt, each.step) for each in known]
        self._newest_time = max((each.modified or 0.0 for each in known), default=0.0)
        self.opened: list[tuple[int, str]] = []

    def attempt_of(self, row: Row, known: Known | None, *, stands: bool) -> tuple[int | None, bool]:
        """The attempt, and whether files that were recorded have been written again. None: a second one of its step."""
        if known is not None and (stands or (known.state == "pending" and known.step == row["step"])):
            return known.attempt, not stands  # the address of what is pending may be recorded for what it replaces
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
