"""Which fields of a run a sync may set: those that nobody set, and those that still hold what the same link set.

So a person's value is never overwritten, and of two trackers the first that spoke stays; what the other says is kept
beside it, with its time, and shown. What a tracker no longer says is taken back only where it came from there.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from registry import snapshots, strict_json
from registry.db import now
from registry.integrations.shapes import Skipped, TrackerRun
from registry.models import Attempt, Config, Run, RunTag, TrackerField
from registry.snapshots import CodeSpec, ConfigTooLarge, DataSpec, SourceSpec
from registry.trackers.linking import LinkRow
from registry.upsert import insert_into

MAX_TAG: Final = 4_096  # characters, as elsewhere
MAX_TAG_NAME: Final = 500
_OF_RUN: Final = ("owner", "started_at", "config")
_OF_ATTEMPT: Final = ("state", "ended_at")


def apply_fields(session: Session, link: LinkRow, attempt: Attempt, run: TrackerRun) -> int:
    """Note what the tracker says, and set what may be set; gives how many values were set here."""
    said = _said(session, link.project_id, run)
    rows = {row.field: row for row in session.scalars(select(TrackerField).where(*_own(link)))}
    here = _here(session, link, attempt)
    written = 0
    for field, value in said.items():
        text, before = strict_json.canonical(value), rows.get(field)
        if before is not None and before.value == text:
            continue
        current = here.get(field)
        free = current is None or (
            before is not None and before.applied and strict_json.canonical(current) == before.value
        )
        settable = field in (*_OF_RUN, *_OF_ATTEMPT) or field.startswith("tags.")
        applied = settable and free
        if applied:
            _set(session, link, attempt, field, value)
            written += 1
        _keep(session, link, field, text, applied=applied)
    for field in set(rows) - set(said):
        before = rows[field]
        if before.applied and field.startswith("tags.") and strict_json.canonical(here.get(field)) == before.value:
            own = (RunTag.project_id == link.project_id, RunTag.run_id == link.run_id)
            session.execute(delete(RunTag).where(*own, RunTag.name == field.removeprefix("tags.")))
            written += 1
        session.execute(delete(TrackerField).where(*_own(link), TrackerField.field == field))
    session.flush()
    return written


def values_here(session: Session, link: LinkRow) -> dict[str, Any]:
    """What the registry itself says of a link's run, of the fields that trackers speak of."""
    own = (Attempt.project_id == link.project_id, Attempt.run_id == link.run_id)
    attempt = session.scalars(select(Attempt).where(*own).order_by(Attempt.number.desc()).limit(1)).one_or_none()
    return _here(session, link, attempt)


def doubtful_tags(run: TrackerRun) -> list[Skipped]:
    """Tags that cannot be kept as they are."""
    return [
        Skipped(f"tag {name[:80]}", f"longer than {MAX_TAG:,} characters, or of a name that cannot be kept")
        for name, value in run.tags.items()
        if not _keepable(name, value)
    ]


def data_of(run: TrackerRun) -> DataSpec | None:
    """The data version that a run's data sets make: one by its own name, several as a mix of unknown shares."""
    names = sorted(
        {_dataset(each.name, each.digest) for each in run.datasets if each.context in (None, "", *_TRAINING)}
    )
    if not names:
        return None
    uris = {each.uri for each in run.datasets if each.uri}
    if len(names) == 1:
        return DataSpec(names[0], uri=uris.pop() if len(uris) == 1 else None)
    return DataSpec("+".join(names)[:512], mix={name: SourceSpec() for name in names})


_TRAINING: Final = ("train", "training")


def code_of(run: TrackerRun) -> CodeSpec | None:
    return None if run.commit is None else CodeSpec(run.commit[:200], run.dirty, None, run.remote)


def _dataset(name: str, digest: str | None) -> str:
    return (f"{name}@{digest}" if digest else name).replace("\0", " ")[:200] or "unnamed"


def _said(session: Session, project_id: int, run: TrackerRun) -> dict[str, Any]:
    """Field to a value as JSON: times in ISO 8601, of the config its digest, since it may be large."""
    said: dict[str, Any] = {
        "name": run.name[:512].replace("\0", " "),
        "owner": run.owner,
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
        "state": run.state,
        "commit": run.commit,
        "remote": run.remote,
        "data": None if (data := data_of(run)) is None else data.name,
        "config": _config_digest(session, project_id, run.config),
    }
    said |= {f"tags.{name}": value for name, value in run.tags.items() if _keepable(name, value)}
    return {field: value for field, value in said.items() if value is not None}


def _keepable(name: str, value: str) -> bool:
    return 0 < len(name) <= MAX_TAG_NAME and len(value) <= MAX_TAG and name.isprintable() and "\0" not in value


def _config_digest(session: Session, project_id: int, config: Mapping[str, Any] | None) -> str | None:
    """The digest of the config, which is kept; one that is too large or too deep is not."""
    if config is None:
        return None
    try:
        with session.begin_nested():
            snapshots.keep_configs(session, project_id, [config])
    except ConfigTooLarge:
        return None
    return strict_json.digest(strict_json.canonical(config)).hex()


def _here(session: Session, link: LinkRow, attempt: Attempt | None) -> dict[str, Any]:
    """What the registry says now; a field that nobody set is left out."""
    run = session.get_one(Run, link.run_id, populate_existing=True)
    found: dict[str, Any] = {"owner": run.owner, "started_at": _time(run.started_at)}
    if run.config_id is not None:
        found["config"] = session.get_one(Config, run.config_id).digest.hex()
    if attempt is not None and _is_reported(attempt):
        found["state"] = attempt.state
    if attempt is not None:
        found["ended_at"] = _time(attempt.ended_at)
    own = (RunTag.project_id == link.project_id, RunTag.run_id == link.run_id)
    found |= {f"tags.{tag.name}": tag.value for tag in session.scalars(select(RunTag).where(*own))}
    return {field: value for field, value in found.items() if value is not None}


def _is_reported(attempt: Attempt) -> bool:
    """Whether somebody spoke of the attempt; of one that was made for a backfill `running` is only a default."""
    said = (attempt.key, attempt.heartbeat_at, attempt.ended_at, attempt.resumed_from_step)
    return attempt.state != "running" or attempt.restart or any(each is not None for each in said)


def _set(session: Session, link: LinkRow, attempt: Attempt, field: str, value: Any) -> None:
    if field == "config":
        config_of = select(Config.id).where(Config.project_id == link.project_id, Config.digest == bytes.fromhex(value))
        _set_run(session, link, config_id=session.scalars(config_of).one())
    elif field == "started_at":
        _set_run(session, link, started_at=_moment(value))
        if attempt.number == 1 and attempt.started_at is None:  # so that its state counts as reported
            attempt.started_at = _moment(value)
    elif field == "owner":
        _set_run(session, link, owner=value[:512])
    elif field == "state":
        attempt.state = value
    elif field == "ended_at":
        attempt.ended_at = _moment(value)
    else:
        row = {
            "project_id": link.project_id,
            "run_id": link.run_id,
            "name": field.removeprefix("tags."),
            "value": value,
        }
        statement = insert_into(session, RunTag).values(row)
        same = ["project_id", "run_id", "name"]
        session.execute(statement.on_conflict_do_update(index_elements=same, set_={"value": value}))


def _set_run(session: Session, link: LinkRow, **values: Any) -> None:
    session.execute(update(Run).where(Run.project_id == link.project_id, Run.id == link.run_id).values(**values))


def _keep(session: Session, link: LinkRow, field: str, text: str, *, applied: bool) -> None:
    row = {"value": text, "applied": applied, "changed_at": now()}
    key = {"project_id": link.project_id, "link_id": link.id, "field": field}
    statement = insert_into(session, TrackerField).values(key | row)
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=row))


def _own(link: LinkRow) -> tuple[Any, Any]:
    return TrackerField.project_id == link.project_id, TrackerField.link_id == link.id


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
