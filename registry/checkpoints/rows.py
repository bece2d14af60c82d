"""What a list says of each checkpoint, read in one statement for any number of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.completeness import resumability_of
from registry.db import join_number
from registry.filters import syntax
from registry.filters.columns import Columns, Value
from registry.filters.fields import CATALOGUE, FieldType, find_field
from registry.filters.percentiles import of_checkpoints
from registry.filters.print import field_to_text
from registry.filters.query import Prepared
from registry.filters.tables import checkpoint
from registry.ids import to_text
from registry.types import PieceName, Presence, Resumability


@dataclass(frozen=True, slots=True)
class RunName:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class CheckpointIdentity:
    """What every answer says at least wherever it names a checkpoint."""

    id: int
    project: str
    run: RunName
    attempt: int
    step: int
    kind: str
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One line of a list. `values`: the fields that the query asks for or names, as they were written there.

    An id among the values is text, as everybody outside knows it. `saved_at_assumed`: nobody said when it was
    saved, and `saved_at` is when its record arrived.
    """

    checkpoint: CheckpointIdentity
    state: str
    loss: float | None
    lr: float | None
    tokens_seen: int | None
    epoch: float | None
    format: str | None
    data_version: str | None
    milestone: bool
    notes: str | None
    superseded: bool
    saved_at_assumed: bool
    resumability: Resumability
    pieces: Mapping[PieceName, Presence]
    values: Mapping[str, Any]


# In every row, by their names in the catalogue.
_ALWAYS: Final = (
    *("id", "project", "run.id", "run.name", "attempt", "step", "kind", "saved_at", "state", "loss", "lr"),
    *("tokens_seen", "epoch", "format", "data_version", "milestone", "notes", "superseded", "saved_at_assumed"),
    *("pieces.weights", "pieces.optimizer", "pieces.data_position", "pieces.random_state"),
)

_IDS: Final = frozenset(".".join(path) for path, spec in CATALOGUE.items() if spec.type is FieldType.ID)


def read_rows(session: Session, prepared: Prepared, page: Sequence[int]) -> tuple[CheckpointRow, ...]:
    """The rows of these checkpoint ids, in their order, by one statement."""
    if not page:
        return ()
    query, values, columns = _always()
    percentiles = of_checkpoints(page, prepared.percentiles)
    columns = replace(prepared.columns(), joined=dict(columns.joined), percentiles=percentiles)
    already = len(columns.joined)
    extra = {
        name: columns.value(find_field(field, ""))
        for field in prepared.shown
        if (name := field_to_text(field)) not in values
    }
    values = values | extra
    query = query.add_columns(*(part for value in extra.values() for part in _parts(value)))
    columns.joined = dict(list(columns.joined.items())[already:])
    query = columns.join_to(query).where(checkpoint.c.id.in_(page))
    asked = [field_to_text(field) for field in prepared.shown]
    rows = {}
    for found in session.execute(query):
        parts = iter(found)
        read = {name: _joined(value, parts) for name, value in values.items()}
        rows[read["id"]] = _row(read, asked)
    return tuple(rows[number] for number in page if number in rows)


@cache
def _always() -> tuple[Any, dict[str, Value], Columns]:
    """The part of the statement that is the same for every list: built once, a millisecond less for each page."""
    columns = Columns()
    fields = [syntax.Field(tuple(name.split("."))) for name in _ALWAYS]
    values = {field_to_text(field): columns.value(find_field(field, "")) for field in fields}
    query = select(*(part for value in values.values() for part in _parts(value))).select_from(checkpoint)
    return columns.join_to(query), values, columns


def _parts(value: Value) -> list[Any]:
    special = value.special() if value.special is not None else None
    return [part for part in (value.plain, special, value.text) if part is not None]


def _joined(value: Value, parts: Iterator[Any]) -> Any:
    """The Python value of an expression's columns, taken from the row in their order."""
    plain = next(parts)
    if value.special is not None:
        return join_number(plain, next(parts))
    if value.text is not None:
        text = next(parts)
        return plain if plain is not None else text
    return plain


def _row(read: Mapping[str, Any], asked: Sequence[str]) -> CheckpointRow:
    pieces = {piece: Presence(read[f"pieces.{piece.value}"]) for piece in PieceName}
    identity = CheckpointIdentity(
        id=read["id"],
        project=read["project"],
        run=RunName(read["run.id"], read["run.name"]),
        attempt=read["attempt"],
        step=read["step"],
        kind=read["kind"],
        saved_at=read["saved_at"],
    )
    own = (
        *("state", "loss", "lr", "tokens_seen", "epoch", "format", "data_version", "milestone", "notes"),
        *("superseded", "saved_at_assumed"),
    )
    return CheckpointRow(
        checkpoint=identity,
        **{name: read[name] for name in own},
        resumability=resumability_of(pieces),
        pieces=pieces,
        values={name: to_text(read[name]) if name in _IDS else read[name] for name in asked},
    )
