"""Which pieces the checkpoints of some runs have, kept from one question to the next.

Of all that a rollback reads, the pieces of 10,000 checkpoints are the dearest, and those of a committed checkpoint
never change. So they are read once; the next question reads only what was not committed then, or has come since.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from registry.db import Database
from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Booleans, Integers
from registry.filters import tables
from registry.many_ids import is_among
from registry.types import PieceName, Presence

MAX_KEPT: Final = 64  # sets of runs
MAX_CHECKPOINTS: Final = 4_000_000  # of all of them: 64 MB
FEW: Final = 500  # up to which checkpoints are asked for by their ids
_KEEPER: Final = "pieces of runs"
_BITS: Final = {name.value: 1 << place for place, name in enumerate(PieceName)}
_CHECKPOINT, _PIECE = tables.checkpoint, tables.piece


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Checkpoint ids, ascending, and a bit for each piece that is present. Never changed in place."""

    ids: Integers
    bits: Integers

    def __len__(self) -> int:
        return len(self.ids)

    def along(self, ids: Integers) -> tuple[Integers, Booleans]:
        """(bits, whether anything is known) of these checkpoints."""
        if not len(self):
            return np.zeros(len(ids), np.int64), np.zeros(len(ids), dtype=bool)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        known = self.ids[at] == ids
        return np.where(known, self.bits[at], 0), known

    def with_more(self, ids: Integers, bits: Integers) -> "Pieces":
        every = np.concatenate((self.ids, ids))
        order = np.argsort(every)
        return Pieces(every[order], np.concatenate((self.bits, bits))[order])


_NOTHING: Final = Pieces(np.empty(0, np.int64), np.empty(0, np.int64))


def are_whole(
    session: Session,
    project_id: int,
    run_ids: Collection[int],
    of: ColumnElement[bool],
    ids: Integers,
    committed: Booleans,
    needed: Sequence[PieceName],
) -> Booleans:
    """Whether each of the checkpoints `ids` has every needed piece; `of` is the condition that picks them all."""
    database: Database | None = session.info.get("database")
    keeper = Keeper() if database is None else database.kept.setdefault(_KEEPER, Keeper())
    assert isinstance(keeper, Keeper)
    bits = keeper.bits(session, (project_id, frozenset(run_ids)), of, ids, committed)
    wanted = sum(_BITS[name] for name in needed)
    return np.asarray(bits & wanted == wanted)


class Keeper:
    """The pieces of one database's committed checkpoints by runs, the latest asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, frozenset[int]], Pieces] = OrderedDict()
        self._lock = Lock()

    def bits(
        self,
        session: Session,
        key: tuple[int, frozenset[int]],
        of: ColumnElement[bool],
        ids: Integers,
        committed: Booleans,
    ) -> Integers:
        with self._lock:
            before = self._kept.get(key, _NOTHING)
        bits, known = before.along(ids)
        known &= committed
        if not known.all():
            bits[~known] = _read(session, key[0], of, ids[~known]).along(ids[~known])[0]
        fresh = committed & ~known
        now = before.with_more(ids[fresh], bits[fresh]) if fresh.any() else before
        self._keep(key, now)
        return bits

    def _keep(self, key: tuple[int, frozenset[int]], now: Pieces) -> None:
        with self._lock:
            self._kept[key] = now
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and (
                len(self._kept) > MAX_KEPT or sum(map(len, self._kept.values())) > MAX_CHECKPOINTS
            ):
                self._kept.popitem(last=False)

    def close(self) -> None:
        """Nothing runs by itself here."""


def _read(session: Session, project_id: int, of: ColumnElement[bool], ids: Integers) -> Pieces:
    condition = of if len(ids) > FEW else is_among(session, _CHECKPOINT.c.id, ids.tolist())
    found, bits = read_arrays(session, [pieces_select(project_id, condition)], (np.int64, np.int64))
    order = np.argsort(found)
    return Pieces(found[order], bits[order])


def pieces_select(project_id: int, of: ColumnElement[bool]) -> Select[Any]:
    """The pieces of the checkpoints that `of` picks, as bits; apart, so that a test can read its plan.

    Asked for each checkpoint: joined, SQLite would begin with all pieces of the project.
    """
    present = select(func.coalesce(func.sum(case(_BITS, value=_PIECE.c.name)), 0)).where(
        _PIECE.c.project_id == _CHECKPOINT.c.project_id,
        _PIECE.c.checkpoint_id == _CHECKPOINT.c.id,
        _PIECE.c.presence == Presence.PRESENT.value,
    )
    return select(_CHECKPOINT.c.id, present.scalar_subquery()).where(_CHECKPOINT.c.project_id == project_id, of)
