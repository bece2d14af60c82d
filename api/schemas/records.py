"""Shapes of decision records: an answer kept with its question."""

from typing import Annotated, Literal, Self

from pydantic import Field

from api.answers import AsSent
from api.schemas.common import Answer, FreeObject, Id, Shape, Text, Time
from registry.provenance.records import DecisionRow

Kind = Literal["compare", "rollback", "search"]


class DecisionIn(Shape):
    """A question as `POST /compare`, `/rollback` or `/search` takes it; it is answered now, and the answer is kept."""

    kind: Kind
    request: FreeObject
    note: Text | None = None


class DecisionOut(Answer):
    """`answer`: what the question was answered with at `created_at`; nothing that happened since changes it."""

    id: Id
    project: str
    kind: Kind
    request: AsSent
    answer: AsSent
    note: str | None
    created_by: str
    created_at: Time
    url: str

    @classmethod
    def from_row(cls, row: DecisionRow, base_url: str) -> Self:
        own = ("id", "project", "kind", "note", "created_by", "created_at", "request", "answer")
        return cls.model_construct(url=url_of(row.id, base_url), **{name: getattr(row, name) for name in own})


class DecisionItem(Answer):
    id: Id
    project: str
    kind: Kind
    note: str | None
    created_by: str
    created_at: Time
    url: str

    @classmethod
    def from_row(cls, row: DecisionRow, base_url: str) -> Self:
        own = ("id", "project", "kind", "note", "created_by", "created_at")
        return cls.model_construct(url=url_of(row.id, base_url), **{name: getattr(row, name) for name in own})


class DecisionPage(Answer):
    items: list[DecisionItem]
    next_cursor: Annotated[str | None, Field()] = None


def url_of(identity: int, base_url: str) -> str:
    from registry.ids import to_text

    return f"{base_url}/decisions/{to_text(identity)}"
