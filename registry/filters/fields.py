"""The catalogue of fields: every name that a filter or an order may use, with its type.

A closed field is one name (`step`, `run.name`); an open family takes further names (`tags.<name>`,
`scores.<benchmark>[.<metric>[.<filter>]]`, `config.<dotted.path>`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from registry.evals.catalogue import catalogue
from registry.filters.errors import InvalidFilter, did_you_mean
from registry.filters.print import field_to_text
from registry.filters.syntax import Field
from registry.types import CheckpointState, Kind, LrPhase, Presence, Resumability, Tier


class FieldType(StrEnum):
    """The values are how an error names what such a field is."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    TIME = "a time"
    BOOLEAN = "true or false"
    CHOICE = "one of a few words"
    ID = "an id"
    ANY = "a number, text, true or false"  # a config value: the literal decides what it is compared with


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """`some`: a checkpoint has any number of these; a condition asks whether some has the value."""

    path: tuple[str, ...]
    type: FieldType
    choices: tuple[str, ...] = ()
    some: bool = False
    further: tuple[str, ...] = ()  # what the further names of an open family mean; the first one is required
    endless: bool = False  # the last of `further` may repeat

    @property
    def shown(self) -> str:
        names = "".join(f".<{name}>" if place == 0 else f"[.<{name}>]" for place, name in enumerate(self.further))
        return ".".join(self.path) + names


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of a filter, found in the catalogue: `names` are the further names of an open family."""

    spec: FieldSpec
    names: tuple[str, ...] = ()


def _closed(kind: FieldType, *paths: str, choices: Iterable[str] = (), some: bool = False) -> list[FieldSpec]:
    return [FieldSpec(tuple(path.split(".")), kind, tuple(choices), some) for path in paths]


_T = FieldType
_SPECS: list[FieldSpec] = [
    *_closed(_T.ID, "id", "run.id"),
    *_closed(_T.INTEGER, "step", "attempt", "tokens_seen", "bytes", "run.parameter_count", "layout.world_size"),
    *_closed(_T.INTEGER, "layout.tp", "layout.pp", "layout.dp", "layout.cp", "layout.ep"),
    *_closed(_T.NUMBER, "epoch", "loss", "lr", "save_seconds", "stall_seconds"),
    *_closed(_T.TIME, "saved_at", "created_at", "committed_at", "run.started_at", "run.created_at"),
    *_closed(_T.TEXT, "project", "format", "format_version", "data_version", "notes"),
    *_closed(_T.TEXT, "run.name", "run.kind", "run.owner", "run.team", "run.model_family"),
    *_closed(_T.TEXT, "code.commit", "code.diff_digest", "code.remote", "layout.sharding", "layout.format"),
    *_closed(_T.BOOLEAN, "superseded", "scored", "milestone", "saved_at_assumed", "code.dirty"),
    *_closed(_T.CHOICE, "kind", choices=Kind),
    *_closed(_T.CHOICE, "state", choices=CheckpointState),
    *_closed(_T.CHOICE, "resumability", choices=Resumability),
    *_closed(_T.CHOICE, "lr_phase", choices=LrPhase),
    *_closed(_T.CHOICE, "pieces.weights", "pieces.optimizer", choices=Presence),
    *_closed(_T.CHOICE, "pieces.data_position", "pieces.random_state", choices=Presence),
    *_closed(_T.CHOICE, "replicas.tier", choices=Tier, some=True),
    *_closed(_T.TEXT, "replicas.host", "replicas.state", "replicas.uri", some=True),
    FieldSpec(("run", "tags"), _T.TEXT, further=("name",)),
    FieldSpec(("tags",), _T.TEXT, further=("name",)),
    FieldSpec(("metrics",), _T.NUMBER, further=("name",)),
    FieldSpec(("config",), _T.ANY, further=("path",), endless=True),
    FieldSpec(("scores",), _T.NUMBER, further=("benchmark", "metric", "filter")),
    FieldSpec(("capabilities",), _T.NUMBER, further=("name",)),
]
CATALOGUE: dict[tuple[str, ...], FieldSpec] = {spec.path: spec for spec in _SPECS}
GROUPS: frozenset[str] = frozenset(path[0] for path in CATALOGUE if len(path) == 2)


def find_field(field: Field, text: str) -> Reference:
    """The catalogue's entry for a field. Raises InvalidFilter at the segment that is wrong."""
    for length in (2, 1):
        spec = CATALOGUE.get(field.segments[:length])
        if spec is not None and len(field.segments) >= length:
            return Reference(spec, _further_names(spec, field, text))
    if field.segments[0] in GROUPS:
        raise _unknown_member(field, text)
    raise _unknown(field, text)


def _further_names(spec: FieldSpec, field: Field, text: str) -> tuple[str, ...]:
    names = field.segments[len(spec.path) :]
    if spec.further and not names:
        what = f"{field_to_text(field)} needs a name after it"
        raise InvalidFilter(what, text, field.place(), [spec.shown])
    if len(names) > len(spec.further) and not spec.endless:
        place = field.place(len(spec.path) + len(spec.further))
        hint = "A name that holds dots is written in backticks." if spec.further else ""
        extra = field.segments[len(spec.path) + len(spec.further)]
        raise InvalidFilter(f"{extra!r} is one name too many", text, place, [spec.shown], hint=hint)
    if spec.path == ("capabilities",) and catalogue().capability(names[0]) is None:
        raise _unknown_capability(field, text)
    return names


def _unknown_capability(field: Field, text: str) -> InvalidFilter:
    name, known = field.segments[1], [each.name for each in catalogue().capabilities]
    what = f"there is no capability {name[:60]!r}"
    return InvalidFilter(what, text, field.place(1), known, hint=did_you_mean(name, known))


def _unknown_member(field: Field, text: str) -> InvalidFilter:
    group = field.segments[0]
    members = [spec for path, spec in CATALOGUE.items() if path[0] == group and len(path) == 2]
    expected = [spec.shown for spec in members]
    if len(field.segments) == 1:
        return InvalidFilter(f"{group} is a group of fields", text, field.place(), expected)
    name = field.segments[1]
    hint = did_you_mean(name, [spec.path[1] for spec in members])
    return InvalidFilter(f"{group} has no field {name!r}", text, field.place(1), expected, hint=hint)


def _unknown(field: Field, text: str) -> InvalidFilter:
    name = field.segments[0]
    hint = did_you_mean(name, [path[0] for path in CATALOGUE])
    if not hint:
        hint = did_you_mean(name, [".".join(path) for path in CATALOGUE if path[-1] == name])
    if not hint:
        hint = "A score is written scores.<benchmark>, a tag tags.<name>, a config value config.<path>."
    expected = [spec.shown for spec in _SPECS if len(spec.path) == 1] + [f"{group}.…" for group in sorted(GROUPS)]
    return InvalidFilter(f"unknown field {name!r}", text, field.place(), expected, hint=hint)
