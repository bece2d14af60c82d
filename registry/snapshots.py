"""What many checkpoints share, kept once: configurations, environments, layouts, code and data versions.

Each `keep_` function takes the values of a whole batch and gives the id of each, making the missing rows. What a
value is, its digest says: the same content is the same row, whoever sent it and in whichever order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from registry import known_ids, strict_json
from registry.db import Base, now
from registry.errors import FieldError, Invalid
from registry.ids import new_id
from registry.models import CodeVersion, Config, ConfigEntry, DataSource, DataVersion, Environment, Layout
from registry.upsert import chunks, insert_missing

MAX_PATHS: Final = 20_000
MAX_TEXT: Final = 1_000  # characters of a value kept for filters; the bytes keep all
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))
NUL: Final = "\N{SYMBOL FOR NULL}"  # stands for NUL in the text of filters, which PostgreSQL refuses there


class ConfigTooLarge(Invalid):
    code = "config-too-large"
    title = "The configuration is too large or too deep"


@dataclass(frozen=True)
class LayoutSpec:
    """How state is split across ranks; None is unknown."""

    world_size: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    sharding: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CodeSpec:
    commit: str | None = None
    dirty: bool | None = None
    diff_digest: str | None = None
    remote: str | None = None


@dataclass(frozen=True)
class SourceSpec:
    """One source of a data mix: its share (any positive scale) and the tokens it holds, where known."""

    weight: float | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class DataSpec:
    """A data version: a name, and the mix where it is known."""

    name: str
    mix: Mapping[str, SourceSpec] = field(default_factory=dict)
    uri: str | None = None


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and plain values, in order; a list's items are numbered. `lr`, `optimizer.betas.0`.

    A dot inside a key is kept as it is: two keys that meet on one path are both given, and the first is kept.
    """
    members: Iterator[tuple[str, Any]] | None = None
    if isinstance(value, Mapping) and value:
        members = iter(value.items())
    elif isinstance(value, list) and value:
        members = ((str(index), item) for index, item in enumerate(value))
    if members is None:
        yield path, value
        return
    for key, member in members:
        yield from flatten(member, f"{path}.{key}" if path else key)


def keep_configs(session: Session, project_id: int, configs: Sequence[Mapping[str, Any] | None]) -> list[int | None]:
    """The config id of each, in order; None for None. Raises ConfigTooLarge."""
    for each in configs:
        if each is not None:
            refuse_too_many_paths(each)
    texts = [None if config is None else canonical_within_limits(config, "/config") for config in configs]
    digests = [None if text is None else strict_json.digest(text) for text in texts]
    known = _ids_by_digest(session, Config, project_id, digests)
    fresh: dict[bytes, tuple[Mapping[str, Any], str]] = {}
    for config, text, digest in zip(configs, texts, digests, strict=True):
        if config is not None and text is not None and digest is not None and digest not in known:
            fresh[digest] = (config, text)
    if fresh:
        insert_missing(session, Config, [_packed(project_id, digest, text) for digest, (_, text) in fresh.items()])
        known |= _ids_by_digest(session, Config, project_id, list(fresh))
        entries = [
            entry for digest, (config, _) in fresh.items() for entry in _entries(project_id, known[digest], config)
        ]
        insert_missing(session, ConfigEntry, entries)
    return [None if digest is None else known[digest] for digest in digests]


def keep_environments(
    session: Session, project_id: int, environments: Sequence[Mapping[str, Any] | None]
) -> list[int | None]:
    """The environment id of each, in order. Raises ConfigTooLarge."""
    texts = [None if item is None else canonical_within_limits(item, "/environment") for item in environments]
    digests = [None if text is None else strict_json.digest(text) for text in texts]
    known = _ids_by_digest(session, Environment, project_id, digests)
    fresh = {
        digest: text
        for digest, text in zip(digests, texts, strict=True)
        if digest is not None and text is not None and digest not in known
    }
    if fresh:
        insert_missing(session, Environment, [_packed(project_id, digest, text) for digest, text in fresh.items()])
        known |= _ids_by_digest(session, Environment, project_id, list(fresh))
    return [None if digest is None else known[digest] for digest in digests]


def keep_layouts(session: Session, project_id: int, layouts: Sequence[LayoutSpec | None]) -> list[int | None]:
    """The layout id of each, in order."""

    def row(spec: LayoutSpec) -> dict[str, Any]:
        values = asdict(spec)
        extra = values.pop("extra")
        return values | {"extra": canonical_within_limits(extra, "/layout") if extra else None}

    return _keep(session, Layout, project_id, layouts, row)


def keep_code_versions(session: Session, project_id: int, codes: Sequence[CodeSpec | None]) -> list[int | None]:
    """The code version id of each, in order."""
    return _keep(session, CodeVersion, project_id, codes, asdict)


def keep_data_versions(session: Session, project_id: int, specs: Sequence[DataSpec | None]) -> list[int | None]:
    """The data version id of each, in order. A name alone means the newest version of that name, if there is one."""
    wanted = {spec: None for spec in map(_data_key, specs) if spec is not None}
    ids: dict[tuple[str, bytes], int] = {}
    for chunk in chunks({name for name, _ in wanted}):
        rows = session.execute(
            select(DataVersion.id, DataVersion.name, DataVersion.mix_digest)
            .where(DataVersion.project_id == project_id, DataVersion.name.in_(chunk))
            .order_by(DataVersion.id)
        ).all()
        for row in rows:
            ids[row.name, row.mix_digest] = row.id
            if row.mix_digest:
                ids[row.name, b""] = row.id
    for spec in specs:
        key = _data_key(spec)
        if spec is not None and key is not None and key not in ids:
            ids[key] = _new_data_version(session, project_id, spec, key[1])
    return [None if (key := _data_key(spec)) is None else ids[key] for spec in specs]


def _data_key(spec: DataSpec | None) -> tuple[str, bytes] | None:
    if spec is None:
        return None
    mix = {source: asdict(share) for source, share in spec.mix.items()}
    return spec.name, strict_json.digest(strict_json.canonical(mix)) if mix else b""


def _new_data_version(session: Session, project_id: int, spec: DataSpec, mix_digest: bytes) -> int:
    insert_missing(
        session,
        DataVersion,
        [
            {
                "id": new_id(),
                "project_id": project_id,
                "name": spec.name,
                "mix_digest": mix_digest,
                "uri": spec.uri,
                "created_at": now(),
            }
        ],
    )
    identity = session.scalars(
        select(DataVersion.id).where(
            DataVersion.project_id == project_id,
            DataVersion.name == spec.name,
            DataVersion.mix_digest == mix_digest,
        )
    ).one()
    sources = [
        {"project_id": project_id, "data_version_id": identity, "source": source, **asdict(share)}
        for source, share in spec.mix.items()
    ]
    insert_missing(session, DataSource, sources)
    return identity


def canonical_within_limits(value: Mapping[str, Any], pointer: str) -> str:
    """The canonical text of a free-form object. Raises ConfigTooLarge where it is deeper or larger than can be kept."""
    depth = strict_json.depth_of(value)
    if depth > strict_json.MAX_DEPTH:
        message = f"nested {depth} levels deep; at most {strict_json.MAX_DEPTH} are accepted"
        raise ConfigTooLarge(f"At {pointer}: {message}.", errors=[FieldError(pointer, message)])
    return strict_json.canonical(value)


def refuse_too_many_paths(config: Mapping[str, Any]) -> None:
    """Raises ConfigTooLarge. It only counts, and no further than it must: it comes before all other work."""
    count, todo = 0, list[Any]([config])
    while todo:
        item = todo.pop()
        if count + len(todo) + len(item) > MAX_PATHS:
            message = f"more than {MAX_PATHS} paths"
            raise ConfigTooLarge(f"The config has {message}.", errors=[FieldError("/config", message)])
        for member in item.values() if isinstance(item, Mapping) else item:
            if type(member) not in _PLAIN and isinstance(member, Mapping | list) and member:
                todo.append(member)
            else:
                count += 1


def _entries(project_id: int, config_id: int, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for path, value in flatten(config):
        path = path.replace("\0", NUL)[:MAX_TEXT]
        number, text = _number_and_text(value)
        rows.setdefault(
            path,
            {"project_id": project_id, "config_id": config_id, "path": path, "number": number, "text": text},
        )
    return list(rows.values())


def _number_and_text(value: Any) -> tuple[float | None, str]:
    if isinstance(value, str):
        return None, value.replace("\0", NUL)[:MAX_TEXT]
    text = strict_json.canonical(value)[:MAX_TEXT]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, text
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond 1.8e308: text only
        return None, text
    return (number, text) if number - number == 0 else (None, text)


def _packed(project_id: int, digest: bytes, text: str) -> dict[str, Any]:
    return {
        "id": new_id(),
        "project_id": project_id,
        "digest": digest,
        "body": strict_json.pack(text),
        "created_at": now(),
    }


def _ids_by_digest(
    session: Session, table: type[Base], project_id: int, digests: Sequence[bytes | None]
) -> dict[bytes, int]:
    wanted = {digest for digest in digests if digest is not None}
    known: dict[bytes, int] = known_ids.recall(session, table.__tablename__, project_id, wanted)
    found: dict[bytes, int] = {}
    for chunk in chunks(sorted(wanted - known.keys())):
        rows = session.execute(_by_digest(table), {"project": project_id, "digests": chunk})
        found.update((row.digest, row.id) for row in rows)
    known_ids.keep(session, table.__tablename__, project_id, found)
    return known | found


@lru_cache(maxsize=8)
def _by_digest(table: type[Base]) -> Any:
    column = Base.metadata.tables[table.__tablename__].c
    return select(column.digest, column.id).where(
        column.project_id == bindparam("project"), column.digest.in_(bindparam("digests", expanding=True))
    )


def _keep(session: Session, table: Any, project_id: int, specs: Sequence[Any], row: Any) -> list[int | None]:
    rows = [None if spec is None else row(spec) for spec in specs]
    digests = [None if values is None else strict_json.digest(strict_json.canonical(values)) for values in rows]
    known = _ids_by_digest(session, table, project_id, digests)
    fresh = {
        digest: values
        for digest, values in zip(digests, rows, strict=True)
        if digest is not None and values is not None and digest not in known
    }
    if fresh:
        common = {"project_id": project_id, "created_at": now()}
        insert_missing(
            session,
            table,
            [values | common | {"id": new_id(), "digest": digest} for digest, values in fresh.items()],
        )
        known |= _ids_by_digest(session, table, project_id, list(fresh))
    return [None if digest is None else known[digest] for digest in digests]
