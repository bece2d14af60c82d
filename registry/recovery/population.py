"""The checkpoints of a rollback as columns: one statement for them, one for their copies, no object for each.

A run of 10,000 checkpoints is judged by whole columns; only what an answer shows becomes objects, with sentences.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from sqlalchemy import Select, and_, func, literal, or_, select
from sqlalchemy.orm import Session

from registry.aliases import QUARANTINE_TAGS as QUARANTINE_TAGS
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.filters import tables
from registry.models import CheckpointSuspicion
from registry.recovery.plain import plain_rows
from registry.recovery.restore_time import RestoreTime, restore_time
from registry.recovery.scope import Scope
from registry.types import CheckpointState, PieceName, Presence, Tier

RATE_FROM: Final = 200  # the newest saves that the time of a step is taken from
_CHECKPOINT, _PIECE, _REPLICA, _TAG = tables.checkpoint, tables.piece, tables.replica, tables.checkpoint_tag
_SUSPICION: Any = CheckpointSuspicion.__table__

Words = npt.NDArray[Any]
CopyRow = tuple[int, int, str, int | None, str, str]  # checkpoint, replica, tier, bytes, state, verification


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Columns of one length, own run first, the newest of each first. `generations` 0: the run itself, 1: its parent.

    `whole`: every piece that the use needs is present. `formats` and `layouts` hold None where nobody said, and are
    empty where no layout is asked for.
    """

    ids: Integers
    runs: Integers
    generations: Integers
    attempts: Integers
    steps: Integers
    states: Words
    losses: Words  # the marker of a loss that is not finite, else None
    formats: Sequence[str | None]
    layouts: Sequence[int | None]
    whole: Booleans
    superseded: Booleans
    early: Booleans  # saved before the time asked for
    late: Booleans
    assumed_times: int

    def __len__(self) -> int:
        return len(self.ids)


def population_select(
    scope: Scope,
    needed: Sequence[PieceName],
    *,
    after: datetime | None = None,
    before: datetime | None = None,
    layouts: bool = False,
) -> Select[Any]:
    """Every checkpoint of the runs and of the alias's past; apart, so that a test can read its plan.

    Of the pieces only their number is read: those that are not there are named for what is shown. Save times are
    compared by the database, and layouts read, only where they are asked for.
    """
    present = select(func.count()).where(
        _PIECE.c.project_id == _CHECKPOINT.c.project_id,
        _PIECE.c.checkpoint_id == _CHECKPOINT.c.id,
        _PIECE.c.presence == Presence.PRESENT.value,
        _PIECE.c.name == needed[0].value
        if len(needed) == 1
        else _PIECE.c.name.not_in([each.value for each in PieceName if each not in needed]),
    )
    saved = _CHECKPOINT.c.saved_at
    times = (saved < after if after is not None else literal(0), saved >= before if before is not None else literal(0))
    return select(
        _CHECKPOINT.c.id,
        _CHECKPOINT.c.run_id,
        _CHECKPOINT.c.attempt_number,
        _CHECKPOINT.c.step,
        _CHECKPOINT.c.kind,
        _CHECKPOINT.c.state,
        _CHECKPOINT.c.loss_special,
        present.scalar_subquery(),
        *(each for each in (*times, _CHECKPOINT.c.saved_at_assumed) if after is not None or before is not None),
        *(each for each in (_CHECKPOINT.c.format, _CHECKPOINT.c.layout_id) if layouts),
    ).where(_CHECKPOINT.c.project_id == scope.project_id, _in_scope(scope))


def _in_scope(scope: Scope) -> Any:
    of_runs = _CHECKPOINT.c.run_id.in_(list(scope.runs))
    return or_(of_runs, _CHECKPOINT.c.id.in_(scope.served_before)) if scope.served_before else of_runs


def read_population(
    session: Session,
    scope: Scope,
    needed: Sequence[PieceName],
    *,
    after: datetime | None = None,
    before: datetime | None = None,
    layouts: bool = False,
) -> Population:
    """The checkpoints in their order. What a path of another run left behind is not among them."""
    rows = plain_rows(session, population_select(scope, needed, after=after, before=before, layouts=layouts))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 13
    ids, runs, attempts, steps = (np.array(column, dtype=np.int64) for column in columns[:4])
    kinds, states = np.array(columns[4], dtype=str), np.array(columns[5], dtype=str)
    losses, pieces = np.array(columns[6], dtype=object), np.array(columns[7], dtype=np.int64)
    generations, on_path, superseded = _paths(scope, ids, runs, attempts, steps)
    order = np.lexsort((kinds, -steps, -attempts, generations))
    order = order[on_path[order]]
    rest = columns[8:]
    timed = after is not None or before is not None
    none = np.zeros(len(ids), dtype=bool)
    early, late, assumed = (np.array(column, dtype=bool) for column in rest[:3]) if timed else (none, none, none)
    of_layout = (
        [np.array(column, dtype=object)[order].tolist() for column in rest[3 * timed :]] if layouts else [[], []]
    )
    return Population(
        ids=ids[order],
        runs=runs[order],
        generations=generations[order],
        attempts=attempts[order],
        steps=steps[order],
        states=states[order],
        losses=losses[order],
        formats=of_layout[0],
        layouts=of_layout[1],
        whole=pieces[order] >= len(needed),
        superseded=superseded[order],
        early=early[order],
        late=late[order],
        assumed_times=int(assumed[order].sum()),
    )


def _paths(
    scope: Scope, ids: Integers, runs: Integers, attempts: Integers, steps: Integers
) -> tuple[Integers, Booleans, Booleans]:
    """(generation, whether in the scope, whether superseded) of each. In one's own run what was left behind is shown.

    What an alias served before, in whichever run, counts as a generation of its own after all others.
    """
    generations = np.full(len(ids), len(scope.runs), dtype=np.int64)
    for place, run_id in enumerate(scope.runs):
        generations[runs == run_id] = place
    beyond = np.ones(len(ids), dtype=bool)
    for (run_id, number), last in scope.through.items():
        of_attempt = (runs == run_id) & (attempts == number)
        beyond[of_attempt] = False if last is None else steps[of_attempt] > last
    own = runs == scope.run_id
    served = np.isin(ids, np.array(scope.served_before, dtype=np.int64))
    known = [number for (run_id, number) in scope.through if run_id == scope.run_id]
    superseded = own & beyond & np.isin(attempts, np.array(known, dtype=np.int64))
    return generations, own | served | ~beyond, superseded


def live_path(seen: Population) -> Integers:
    """The rows of the live path by step, oldest generation and attempt first; what was superseded tells nothing."""
    alive = np.flatnonzero((seen.states == CheckpointState.COMMITTED.value) & ~seen.superseded)
    order = np.lexsort((seen.attempts[alive], -seen.generations[alive], seen.steps[alive]))
    return np.asarray(alive[order])


# ---- copies


@dataclass(frozen=True, slots=True)
class Copies:
    """By checkpoint, the copy that it would be loaded from; `unusable`: of the others, what is recorded."""

    best: dict[int, CopyRow]
    unusable: dict[int, list[CopyRow]]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a checkpoint that may be read. Sizes in bytes; None unknown."""

    checkpoint_id: int
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    state: str
    verification: str


_SIMPLE: Final = {("present", "verified"), ("present", "unverified")}


def read_copies(
    session: Session,
    scope: Scope,
    suspect: Collection[int],
    evidence: Callable[[CopyRow], str],
    chances: Mapping[str, float],
) -> Copies:
    """The copies that are recorded as there, sorted into what can be loaded and what cannot.

    `suspect` are copies by their id; `evidence` names the best evidence for a row, `chances` how likely that makes a
    restore.
    """
    query = select(
        _REPLICA.c.checkpoint_id,
        _REPLICA.c.id,
        _REPLICA.c.tier,
        _REPLICA.c.bytes,
        _REPLICA.c.state,
        _REPLICA.c.verification,
    ).join(
        _CHECKPOINT,
        and_(_CHECKPOINT.c.project_id == _REPLICA.c.project_id, _CHECKPOINT.c.id == _REPLICA.c.checkpoint_id),
    )
    query = query.where(
        _CHECKPOINT.c.project_id == scope.project_id, _in_scope(scope), _REPLICA.c.state.in_(("present", "partial"))
    )
    rows: list[Any] = plain_rows(session, query)
    best: dict[int, CopyRow] = {row[0]: row for row in rows}
    if len(best) == len(rows) and not suspect and {row[4:] for row in rows} <= _SIMPLE:
        return Copies(best, {})  # one good copy each, as nearly always
    found = Copies({}, {})
    best = found.best
    for row in rows:
        checkpoint_id, replica_id, _, _, state, verification = row
        if state != "present" or verification == "corrupt" or replica_id in suspect:
            found.unusable.setdefault(checkpoint_id, []).append(row)
        elif checkpoint_id not in best or _rank(row, evidence, chances) < _rank(best[checkpoint_id], evidence, chances):
            best[checkpoint_id] = row
    return found


def _rank(
    row: CopyRow, evidence: Callable[[CopyRow], str], chances: Mapping[str, float]
) -> tuple[bool, float, float, int]:
    """Best evidence first, then the fastest; local disks only where nothing else is as good, since nodes are lost."""
    time = restore_time(row[3], Tier(row[2]))
    return row[2] == Tier.LOCAL, -chances[evidence(row)], time.expected if time else np.inf, row[1]


def restore_times(copies: Sequence[CopyRow]) -> tuple[Floats, Floats]:
    """(expected, 95th percentile) in seconds, NaN where a size is unknown. Copies of one size and tier are one sum."""
    known: dict[tuple[int | None, str], RestoreTime | None] = {}
    for _, _, tier, size, _, _ in copies:
        if (size, tier) not in known:
            known[size, tier] = restore_time(size, Tier(tier))
    found = [known[copy[3], copy[2]] for copy in copies]
    return (
        np.array([np.nan if each is None else each.expected for each in found], dtype=float),
        np.array([np.nan if each is None else each.p95 for each in found], dtype=float),
    )


def read_chosen_copies(session: Session, project_id: int, replica_ids: Sequence[int]) -> dict[int, Copy]:
    """The copies of the candidates, by replica id, with where they lie."""
    query = select(
        _REPLICA.c.id,
        _REPLICA.c.checkpoint_id,
        _REPLICA.c.uri,
        _REPLICA.c.tier,
        _REPLICA.c.host,
        _REPLICA.c.bytes,
        _REPLICA.c.state,
        _REPLICA.c.verification,
    ).where(_REPLICA.c.project_id == project_id, _REPLICA.c.id.in_(list(replica_ids)))
    return {row[0]: Copy(*row[1:]) for row in session.execute(query)} if replica_ids else {}


# ---- what is held against single ones


def quarantined(session: Session, project_id: int) -> set[int]:
    query = select(_TAG.c.checkpoint_id).where(_TAG.c.project_id == project_id, _TAG.c.name.in_(QUARANTINE_TAGS))
    return {row[0] for row in plain_rows(session, query)}


def suspected(session: Session, project_id: int) -> tuple[dict[int, str], set[int]]:
    """(the checkpoints that are suspect as a whole, with the reason; the single copies that are), by their ids."""
    query = (
        select(_SUSPICION.c.checkpoint_id, _SUSPICION.c.replica_id, _SUSPICION.c.reason)
        .where(_SUSPICION.c.project_id == project_id, _SUSPICION.c.lifted_at.is_(None))
        .order_by(_SUSPICION.c.id)
    )
    rows = plain_rows(session, query)
    whole = {checkpoint_id: reason for checkpoint_id, replica_id, reason in rows if replica_id is None}
    return whole, {replica_id for _, replica_id, _ in rows if replica_id is not None}


# ---- time


def seconds_per_step(session: Session, scope: Scope) -> float | None:
    """The median time of a step between neighbouring saves of one attempt, over the newest of them; None: unknown.

    The newest saves of the run itself, or of a run it came from where it has too few: a rate changes with the layout.
    """
    for run_id in scope.runs:
        query = (
            select(
                tables.checkpoint.c.attempt_number,
                _CHECKPOINT.c.step,
                _CHECKPOINT.c.saved_at,
                _CHECKPOINT.c.saved_at_assumed,
            )
            .where(_CHECKPOINT.c.project_id == scope.project_id, _CHECKPOINT.c.run_id == run_id)
            .order_by(_CHECKPOINT.c.attempt_number.desc(), _CHECKPOINT.c.step.desc())
            .limit(RATE_FROM)
        )
        rates = []
        rows = session.execute(query).all()
        for newer, older in pairwise(rows):
            steps = newer.step - older.step
            if newer.attempt_number != older.attempt_number or steps <= 0:
                continue
            if newer.saved_at_assumed or older.saved_at_assumed:
                continue
            seconds = (newer.saved_at - older.saved_at).total_seconds()
            if seconds > 0:
                rates.append(seconds / steps)
        if rates:
            return float(sorted(rates)[len(rates) // 2])
    return None
