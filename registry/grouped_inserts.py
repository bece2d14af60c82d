"""Many rows in one statement of SQLite, written out one after the other: half of the time of a statement for each."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import bindparam
from sqlalchemy.dialects import sqlite

from registry.db import Base

GROUP: Final = 100  # rows of one statement
_DIALECT: Final = sqlite.dialect()


class Grouped(NamedTuple):
    """An INSERT around its rows; `columns` in its order, each with what writes its values."""

    before: str
    after: str
    columns: tuple[tuple[str, Callable[[Any], Any] | None], ...]

    def of(self, count: int) -> str:
        row = f"({', '.join('?' * len(self.columns))})"
        return f"{self.before}{', '.join([row] * count)}{self.after}"


@lru_cache(maxsize=256)
def grouped(table: type[Base], columns: tuple[str, ...], finish: Callable[[Any], Any]) -> Grouped:
    target = Base.metadata.tables[table.__tablename__]
    ordered = [each for each in target.c if each.name in columns]
    one = finish(sqlite.insert(target).values({each.name: bindparam(each.name) for each in ordered}))
    before, _, after = str(one.compile(dialect=_DIALECT)).partition(f"({', '.join('?' * len(ordered))})")
    writers = [each.type.dialect_impl(_DIALECT).bind_processor(_DIALECT) for each in ordered]
    return Grouped(before, after, tuple(zip([each.name for each in ordered], writers, strict=True)))
