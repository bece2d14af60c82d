"""From places to runs, attempts and steps: what each found checkpoint is to be recorded as, and what is left out."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cairn.scan import names
from cairn.scan.attempts import Saved, split_attempts
from cairn.scan.spool import Row, Spool

NEW, PENDING, LEFT_OUT, KNOWN = "new", "pending", "left out", "known"
# Another copy of a checkpoint that is recorded with copies elsewhere.
COPY = "copy"
# Not even its format shows yet: nothing of it is recorded.
BEGUN = "begun"
DEFAULT_SETTLE_SECONDS = 60.0
# Other arrangements of the same tensors among the shards; the rest are other formats.
RESHARDED = frozenset({"unsharded", "universal", "consolidated"})
_UP_TO_TRACKER = """
UPDATE found SET complete = 1
WHERE folder = ? AND complete IS NULL AND step IS NOT NULL AND NOT temporary AND step <= ?
"""
_NAMED_BY_TRACKER = """
UPDATE found SET ended = 1
WHERE folder = ? AND complete AND step = ? AND NOT temporary AND modified <= ?
"""
_BEYOND_TRACKER = """
UPDATE found SET complete = 0, reason = ?
WHERE folder = ? AND complete IS NULL AND step IS NOT NULL AND NOT temporary AND step > ?
"""
_BEGUN = "still being written, or broken off: its files do not show what it is"
_OF_RUN = """
SELECT id, path, folder, name, step, modified, complete, ended, temporary, bytes, hint, said_attempt, said_kind,
       reason, began
FROM found WHERE run = ? AND status IS NULL ORDER BY step, name
"""


@dataclass(frozen=True)
class Rules:
    """What a person can decide. `settle_seconds`: what changed more recently, and holds no file that ends a save, is
    still being written. `by_time` False leaves the times of files out of the question of attempts. `run` names the run
    of the root, and begins the names of others below it; `folders` are those whose run is known already."""

    root_name: str
    run: str | None = None
    settle_seconds: float = DEFAULT_SETTLE_SECONDS
    by_time: bool = True
    folders: Mapping[str, str] = field(default_factory=dict)


def arrange(spool: Spool, rules: Rules) -> None:
    """Sets run, attempt, kind and status of every row. A row without a step becomes a problem."""
    spool.index()
    _apply_trackers(spool)
    _name_runs(spool, rules)
    _without_step(spool)
    _without_format(spool, time.time() - rules.settle_seconds)
    runs = [row["run"] for row in spool.rows("SELECT DISTINCT run FROM found WHERE status IS NULL ORDER BY run")]
    for run in runs:
        _arrange_run(spool, run, rules)


def _apply_trackers(spool: Spool) -> None:
    """Where the files themselves cannot tell, a run's tracker says up to which step they are whole."""
    for row in list(spool.rows("SELECT folder, step, said, modified FROM tracker")):
        spool.change(_UP_TO_TRACKER, (row["folder"], row["step"]))
        spool.change(_NAMED_BY_TRACKER, (row["folder"], row["step"], row["modified"]))
        reason = f"the run's tracker says {row['said']}, which comes before it"
        spool.change(_BEYOND_TRACKER, (reason, row["folder"], row["step"]))


def _name_runs(spool: Spool, rules: Rules) -> None:
    """`cairn.json` names its run; a folder's others belong to it too; elsewhere the path names it."""
    spool.change("UPDATE found SET run = said_run WHERE said_run IS NOT NULL AND run IS NULL")
    named: dict[str, names.Place] = {}
    for row in list(spool.rows("SELECT DISTINCT folder FROM found WHERE run IS NULL")):
        folder = row["folder"]
        said = [
            each["said_run"] for each in spool.rows("SELECT DISTINCT said_run FROM found WHERE folder = ?", (folder,))
        ]
        beside = [each for each in said if each is not None]
        place = names.place_of(folder, rules.root_name)
        named[folder] = names.Place(beside[0], place.attempt) if len(beside) == 1 else place
    runs = {place.run for place in named.values()}
    for folder, place in named.items():
        run = place.run
        if rules.run is not None:
            run = rules.run if len(runs) == 1 or run == rules.root_name else f"{rules.run}/{run}"
        run = rules.folders.get(folder, run)
        spool.change(
            "UPDATE found SET run = ?, hint = ? WHERE folder = ? AND run IS NULL", (run, place.attempt, folder)
        )


def _without_step(spool: Spool) -> None:
    reason = "no step in its content or name; record it with: cairn record --step N --path PATH"
    spool.change("INSERT INTO problem SELECT path, ? FROM found WHERE step IS NULL", (reason,))
    spool.change("DELETE FROM found WHERE step IS NULL")


def _without_format(spool: Spool, settled: float) -> None:
    """What only its name calls a checkpoint: begun just now, or none."""
    young = "format = '' AND (temporary OR modified >= ?)"
    spool.change(f"UPDATE found SET status = ?, note = ? WHERE {young}", (BEGUN, _BEGUN, settled))  # noqa: S608
    spool.change("INSERT INTO problem SELECT path, reason FROM found WHERE format = '' AND status IS NULL")
    spool.change("DELETE FROM found WHERE format = '' AND status IS NULL")


def _arrange_run(spool: Spool, run: str, rules: Rules) -> None:
    rows = list(spool.rows(_OF_RUN, (run,)))
    left_out = {**_second_names(rows), **_temporary_twins(rows)}
    rest = [row for row in rows if row["id"] not in left_out]
    variants = _variants(rest)
    own = [row for row in rest if row["id"] not in variants]
    attempts, reason = _attempts(own, rules)
    if reason:
        spool.remark(run, f"attempts {reason}")
    if guesses := _guesses(own):
        spool.remark(run, guesses)
    attempts |= {place: attempts.get(source, 1) for place, (source, _) in variants.items()}
    now = time.time()
    changes = []
    for row in rest:
        status, note = _status(row, now, rules.settle_seconds)
        attempt, kind = attempts[row["id"]], row["said_kind"] or "archive"
        name = run
        if row["id"] in variants:
            _, variant = variants[row["id"]]
            name = f"{run}/{variant}"
            relation = "resharded_from" if variant in RESHARDED else "converted_from"
            spool.parent(row["id"], relation, run, attempt, row["step"], "archive")
        changes.append((name, attempt, kind, status, note, row["id"]))
    spool.change_many("UPDATE found SET run = ?, attempt = ?, kind = ?, status = ?, note = ? WHERE id = ?", changes)
    spool.change_many(
        "UPDATE found SET status = ?, note = ? WHERE id = ?",
        [(LEFT_OUT, note, each) for each, note in left_out.items()],
    )


def _second_names(rows: Sequence[Row]) -> dict[int, str]:
    """`last.ckpt` or `final` beside the checkpoint of the same step that has the step in its name."""
    by_step: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if not _is_pointer(row):
            by_step[row["step"]].append(row)
    found = {}
    for row in rows:
        same = by_step.get(row["step"], []) if _is_pointer(row) else []
        if same:
            alike = next((each for each in same if each["bytes"] == row["bytes"]), None)
            other = alike or same[0]
            what = "another name of" if alike else "other content at the same step as"
            found[row["id"]] = f"{what} {other['name']}"
    return found


def _is_pointer(row: Row) -> bool:
    return row["path"] == row["folder"] or names.is_pointer(row["name"])


def _temporary_twins(rows: Sequence[Row]) -> dict[int, str]:
    """What a save had not finished, where the finished one is there."""
    whole = {(row["folder"], row["name"]) for row in rows if not row["temporary"]}
    found = {}
    for row in rows:
        finished = names.finished_name(row["name"]) if row["temporary"] else None
        if finished is not None and (row["folder"], finished) in whole:
            found[row["id"]] = f"a rest of saving {finished}"
    return found


def _variants(rows: Sequence[Row]) -> dict[int, tuple[int, str]]:
    """Row id to the id of the checkpoint that it is another arrangement of, and the arrangement's name."""
    plain = {(row["folder"], row["step"]): row["id"] for row in rows if names.variant_of(row["name"]) is None}
    found = {}
    for row in rows:
        variant = names.variant_of(row["name"])
        source = plain.get((row["folder"], row["step"]))
        if variant is not None and source is not None:
            found[row["id"]] = (source, variant)
    return found


def _attempts(rows: Sequence[Row], rules: Rules) -> tuple[dict[int, int], str]:
    """Attempt by row id. Beside checkpoints that say theirs themselves, the others are of the newest of these."""
    said = [row["said_attempt"] for row in rows if row["said_attempt"] is not None]
    if said:
        return {row["id"]: row["said_attempt"] or max(said) for row in rows}, ""
    saved = [
        Saved(row["step"], row["name"], row["modified"], names.version_of(row["name"]), row["hint"]) for row in rows
    ]
    split = split_attempts(saved, by_time=rules.by_time)
    return {row["id"]: number for row, number in zip(rows, split.numbers, strict=True)}, split.reason


def _guesses(rows: Sequence[Row]) -> str:
    """What is only assumed of attempts whose `cairn.json` does not say what they loaded."""
    first: dict[int, int] = {}
    told: set[int] = set()
    for row in rows:
        if (number := row["said_attempt"]) is not None and number > 1:
            first[number] = min(row["step"], first.get(number, row["step"]))
            if row["began"]:
                told.add(number)
    unsaid = [f"attempt {each}: step {max(first[each] - 1, 0)}" for each in sorted(first.keys() - told)]
    more = f" and {len(unsaid) - 3} more" if len(unsaid) > 3 else ""
    what = "no cairn.json says what was loaded, so the step before the first one that is here is assumed"
    return f"{what} ({', '.join(unsaid[:3])}{more})" if unsaid else ""


def _status(row: Row, now: float, settle_seconds: float) -> tuple[str, str]:
    """Whole, or pending: being written where it changed just now, else broken off."""
    recent = row["modified"] is not None and now - row["modified"] < settle_seconds
    if row["complete"] != 0 and not row["temporary"] and (row["ended"] or not recent):
        return NEW, ""
    why = f"; {row['reason']}" if row["reason"] else "; no file of it ends a save" if row["complete"] else ""
    if recent:
        return PENDING, f"still being written: changed {max(0, now - row['modified']):.0f} s ago{why}"
    return PENDING, f"not finished{why or '; its name is that of an unfinished save'}"
