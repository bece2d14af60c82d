"""Order keys -> the expressions of an ORDER BY, total and with missing values last."""

from collections.abc import Sequence
from typing import Final

from registry.filters import syntax
from registry.filters.columns import Columns
from registry.filters.fields import FieldType, find_field
from registry.filters.tables import checkpoint
from registry.keyset import Key, KeyType

_NEVER_NULL: Final = frozenset(
    {
        *("id", "step", "attempt", "kind", "state", "saved_at", "created_at", "project", "superseded", "milestone"),
        *("resumability", "run.id", "run.name", "run.created_at", "saved_at_assumed", "scored"),
        *("pieces.weights", "pieces.optimizer", "pieces.data_position", "pieces.random_state"),
    }
)
_KEY_TYPES: Final = {
    FieldType.INTEGER: KeyType.INTEGER,
    FieldType.ID: KeyType.INTEGER,
    FieldType.NUMBER: KeyType.NUMBER,
    FieldType.ANY: KeyType.NUMBER,
    FieldType.TIME: KeyType.TIME,
    FieldType.BOOLEAN: KeyType.BOOLEAN,
}


def order_keys(order: Sequence[syntax.OrderKey], columns: Columns) -> list[Key]:
    """The keys as asked, then `saved_at` and id, newest first, where not asked: with the id every order is total.

    A config value orders by its number, then by its text.
    """
    keys = []
    for place, asked in enumerate(order):
        reference = find_field(asked.field, "")
        kind = _KEY_TYPES.get(reference.spec.type, KeyType.TEXT)
        driven = place == 0 and columns.driving is not None  # the walk meets finite values only
        never_null = driven or ".".join(reference.spec.path) in _NEVER_NULL
        value = columns.value(reference)
        keys.append(Key(value.ordered, kind, asked.descending, nullable=not never_null))
        if value.text is not None:
            keys.append(Key(value.text, KeyType.TEXT, asked.descending))
    asked_names = {asked.field.segments for asked in order}
    if ("saved_at",) not in asked_names:
        keys.append(Key(checkpoint.c.saved_at, KeyType.TIME, descending=True, nullable=False))
    if ("id",) not in asked_names:
        keys.append(Key(checkpoint.c.id, KeyType.INTEGER, descending=True, nullable=False))
    return keys
