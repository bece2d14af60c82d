"""Shapes of links to trackers, of what trackers say, and of imports from them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from api.schemas.common import Answer, Id, Name, RunRef, Shape, ShortName, Text, Time
from registry.integrations.disagreements import FieldView, PathChange
from registry.trackers.linking import FieldValue, LinkRow
from registry.trackers.links import TrackerPlace, clean_uri, read_link
from registry.trackers.settings import Tracking

Kind = Literal["mlflow", "wandb"]


class LinkIn(Shape):
    """A run in a tracker: `url`, whatever link its pages or tools show; or `kind`, `run_id` and what else is known."""

    url: Text | None = None
    kind: Kind | None = None
    run_id: Name | None = None
    uri: Text | None = None
    entity: Name | None = None
    project: Name | None = None

    @model_validator(mode="after")
    def either(self) -> Self:
        if (self.url is None) == (self.run_id is None):
            raise ValueError("give either url, or kind and run_id")
        if self.run_id is not None and self.kind is None:
            raise ValueError("with run_id, say the kind: mlflow or wandb")
        return self

    def to_place(self) -> TrackerPlace:
        """Raises BadTrackerLink."""
        if self.url is not None:
            return read_link(self.url, kind=self.kind)
        assert self.kind is not None
        assert self.run_id is not None
        return TrackerPlace(self.kind, self.run_id, clean_uri(self.uri or ""), self.entity, self.project)


class LinkOut(Answer):
    """A link, and how things stand with it; `next_check_at` null: it is read on demand only."""

    id: Id
    run: RunRef
    kind: str
    uri: str | None
    entity: str | None
    project: str | None
    run_id: str
    state: str
    error: str | None
    checked_at: Time | None
    synced_at: Time | None
    next_check_at: Time | None
    external_state: str | None
    external_name: str | None
    push_state: str
    push_error: str | None
    pushed_at: Time | None
    created_at: Time

    @classmethod
    def from_row(cls, row: LinkRow) -> Self:
        own = (
            *("id", "kind", "entity", "state", "error", "checked_at", "synced_at", "next_check_at", "external_state"),
            *("external_name", "push_state", "push_error", "pushed_at", "created_at"),
        )
        values: dict[str, Any] = {name: getattr(row, name) for name in own}
        return cls.model_construct(
            **values,
            run=RunRef.model_construct(id=row.run_id, name=row.run_name),
            uri=row.uri or None,
            project=row.external_project,
            run_id=row.external_run_id,
        )


class SaidOut(Answer):
    """What one tracker says; `applied`: the registry's own value came from there."""

    link: Id
    kind: str
    value: Any
    applied: bool
    changed_at: Time

    @classmethod
    def from_value(cls, value: FieldValue) -> Self:
        return cls.model_construct(
            link=value.link_id,
            kind=value.kind,
            value=value.value,
            applied=value.applied,
            changed_at=value.changed_at,
        )


class PathOut(Answer):
    path: str
    here: Any
    there: Any

    @classmethod
    def from_change(cls, change: PathChange) -> Self:
        return cls.model_construct(path=change.path, here=change.here, there=change.there)


class FieldOut(Answer):
    """One field of the run; of the config, its digest, and the paths that differ (at most 20)."""

    field: str
    here: Any
    said: list[SaidOut]
    agree: bool
    paths: list[PathOut]

    @classmethod
    def from_view(cls, view: FieldView) -> Self:
        return cls.model_construct(
            field=view.field,
            here=view.here,
            said=[SaidOut.from_value(each) for each in view.said],
            agree=view.agree,
            paths=[PathOut.from_change(each) for each in view.paths],
        )


class LinkPage(Answer):
    items: list[LinkOut]
    next_cursor: str | None
    fields: list[FieldOut]

    @classmethod
    def of(cls, links: Sequence[LinkRow], next_cursor: str | None, views: Sequence[FieldView]) -> Self:
        return cls.model_construct(
            items=[LinkOut.from_row(row) for row in links],
            next_cursor=next_cursor,
            fields=[FieldOut.from_view(view) for view in views],
        )


class TrackingPatch(Shape):
    """A merge patch: what is named is set, null takes it back to its default."""

    push_mlflow: bool | None = None
    push_wandb: bool | None = None
    best_by: Name | None = None
    refresh_seconds: Annotated[int, Field(ge=30, le=7 * 86_400)] | None = None

    def to_changes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class TrackingOut(Answer):
    """`best_by`: the score by which a run's best checkpoint is told; null: none is told."""

    push_mlflow: bool
    push_wandb: bool
    best_by: str | None
    refresh_seconds: int

    @classmethod
    def from_tracking(cls, tracking: Tracking) -> Self:
        values: dict[str, Any] = {name: getattr(tracking, name) for name in Tracking.__dataclass_fields__}
        return cls.model_construct(**values)


class TrackerImportIn(Shape):
    """What to import into `project`: an MLflow `experiment` (name or id), or `entity` and `external_project` of W&B."""

    kind: Kind
    project: ShortName
    uri: Text | None = None
    experiment: Name | None = None
    entity: Name | None = None
    external_project: Name | None = None

    @model_validator(mode="after")
    def whole(self) -> Self:
        if self.kind == "mlflow" and self.experiment is None:
            raise ValueError("name the experiment")
        if self.kind == "wandb" and (self.entity is None or self.external_project is None):
            raise ValueError("name the entity and external_project")
        return self

    def to_arguments(self) -> dict[str, Any]:
        place = self.experiment if self.kind == "mlflow" else self.external_project
        return {"kind": self.kind, "uri": clean_uri(self.uri or ""), "entity": self.entity, "project": place}
