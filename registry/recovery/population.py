"""The checkpoints of a rollback as columns: one statement for them, no object for each.

A run of 10,000 checkpoints is judged by whole columns; only what an answer shows becomes objects, with sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Select, case, or_, select
from sqlalchemy.orm import Session

from registry.aliases import QUARANTINE_TAGS as QUARANTINE_TAGS
from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Booleans, Integers
from registry.filters import tables
from registry.models import CheckpointSuspicion
from registry.recovery.scope import Scope
from registry.recovery.whole import are_whole
from registry.types import CheckpointState, Kind, PieceName

RATE_FROM: Final = 200  # the newest saves that the time of a step is taken from
_FLAGS: Final = {
    name: 1 << place for place, name in enumerate(("light", "committed", "lost", "assumed", "early", "late"))
}
_CHECKPOINT, _TAG = tables.checkpoint, tables.checkpoint_tag
_SUSPICION: Any = CheckpointSuspicion.__table__


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
    committed: Booleans
    lost: Booleans  # the loss is not finite
    formats: Sequence[str | None]
    layouts: Sequence[int | None]
    whole: Booleans
    superseded: Booleans
    early: Booleans  # saved before the time asked for
    late: Booleans
    assumed_times: int

    def __len__(self) -> int:
        return len(self.ids)


def population_select(scope: Scope, *, after: datetime | None = None, before: datetime | None = None) -> Select[Any]:
    """Every checkpoint of the runs and of the alias's past, as numbers; apart, so that a test can read its plan.

    What is only yes or no is a bit of one number (`_FLAGS`): each further column of 10,000 rows costs a millisecond.
    Save times are compared by the database.
    """
    saved = _CHECKPOINT.c.saved_at
    bits: dict[str, ColumnElement[bool]] = {
        "light": _CHECKPOINT.c.kind == Kind.LIGHT.value,
        "committed": _CHECKPOINT.c.state == CheckpointState.COMMITTED.value,
        "lost": _CHECKPOINT.c.loss_special.is_not(None),
        "assumed": _CHECKPOINT.c.saved_at_assumed,
    }
    bits |= {"early": saved < after} if after is not None else {}
    bits |= {"late": saved >= before} if before is not None else {}
    flags = reduce(add, (case((condition, _FLAGS[name]), else_=0) for name, condition in bits.items()))
    return select(
        _CHECKPOINT.c.id, _CHECKPOINT.c.run_id, _CHECKPOINT.c.attempt_number, _CHECKPOINT.c.step, flags
    ).where(_CHECKPOINT.c.project_id == scope.project_id, in_scope(scope))


def in_scope(scope: Scope) -> ColumnElement[bool]:
    """The condition that picks the checkpoints of a scope."""
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
    statement = population_select(scope, after=after, before=before)
    columns = read_arrays(session, [statement], (np.int64,) * 5)
    light = columns[4] & _FLAGS["light"] != 0
    generations, on_path, superseded = _paths(scope, *columns[:4])
    order = np.lexsort((light, -columns[3], -columns[2], generations))
    order = order[on_path[order]]
    ids, runs, attempts, steps, flags = (each[order] for each in columns)
    said = {name: flags & bit != 0 for name, bit in _FLAGS.items()}
    of_layout = _layouts(session, scope, ids) if layouts else []
    return Population(
        ids=ids,
        runs=runs,
        generations=generations[order],
        attempts=attempts,
        steps=steps,
        committed=said["committed"],
        lost=said["lost"],
        formats=[each[0] for each in of_layout],
        layouts=[each[1] for each in of_layout],
        whole=are_whole(session, scope.project_id, scope.runs, in_scope(scope), ids, said["committed"], needed),
        superseded=superseded[order],
        early=said["early"],
        late=said["late"],
        assumed_times=int(said["assumed"].sum()),
    )


def _layouts(session: Session, scope: Scope, ids: Integers) -> list[tuple[str | None, int | None]]:
    """(format, layout) of each checkpoint."""
    query = select(_CHECKPOINT.c.id, _CHECKPOINT.c.format, _CHECKPOINT.c.layout_id).where(
        _CHECKPOINT.c.project_id == scope.project_id, in_scope(scope)
    )
    known = {identity: (format_, layout) for identity, format_, layout in session.execute(query)}
    return [known[identity] for identity in ids.tolist()]


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


# ---- what is held against single ones


def quarantined(session: Session, project_id: int) -> set[int]:
    query = select(_TAG.c.checkpoint_id).where(_TAG.c.project_id == project_id, _TAG.c.name.in_(QUARANTINE_TAGS))
    return set(session.scalars(query))


def suspected(session: Session, project_id: int) -> tuple[dict[int, str], set[int]]:
    """(the checkpoints that are suspect as a whole, with the reason; the single copies that are), by their ids."""
    query = (
        select(_SUSPICION.c.checkpoint_id, _SUSPICION.c.replica_id, _SUSPICION.c.reason)
        .where(_SUSPICION.c.project_id == project_id, _SUSPICION.c.lifted_at.is_(None))
        .order_by(_SUSPICION.c.id)
    )
    rows = session.execute(query).all()
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
