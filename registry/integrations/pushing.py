"""The job that tells one link's tracker what it does not know yet of the run's checkpoints.

It pushes a state, not events: however many changes came while the tracker was down, it is told the newest, once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy.orm import Session

from registry import strict_json
from registry.config import Settings
from registry.db import now
from registry.errors import RegistryError
from registry.ids import from_text
from registry.integrations.desired import Desired, desired_state
from registry.integrations.open import Place, open_writer
from registry.integrations.refreshing import link_of
from registry.integrations.shapes import TrackerWriter
from registry.jobs.claims import Claim
from registry.jobs.errors import LeaseLost, WorkerStopping
from registry.models import TrackerCheckpoint, TrackerState
from registry.trackers.linking import LinkRow, set_state
from registry.trackers.settings import read_tracking
from registry.upsert import insert_into

AT_ONCE: Final = 100  # checkpoints of one look at what the tracker has
NOTED_AT_ONCE: Final = 10


def push_link(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    """Argument: link. Gives how many checkpoints were told. Raises what the tracker raises, once the link says it."""
    link = link_of(claim)
    with claim.database.read() as session:
        wanted = _desired(session, link, settings)
    if wanted is None:
        with claim.write() as session:
            set_state(session, link, push_state="off", push_error=None)
        return {"pushed": 0, "why": "pushing is switched off for this project"}
    try:
        if wanted.due or wanted.run.values:
            writer = open_writer(Place(link.kind, link.uri, link.entity, link.external_project), settings)
            _push(claim, link, writer, wanted)
    except (LeaseLost, WorkerStopping):
        raise
    except RegistryError as error:
        with claim.write() as session:
            set_state(session, link, push_state="failed", push_error=error.message)
        raise
    with claim.write() as session:
        set_state(session, link, push_state="ok", push_error=None, pushed_at=now())
    return {"pushed": len(wanted.due), "checkpoints": wanted.total}


def _desired(session: Session, link: LinkRow, settings: Settings) -> Desired | None:
    tracking = read_tracking(session, link.project_id)
    if not tracking.pushes(link.kind):
        return None
    return desired_state(session, link, tracking, settings.base_url, _pushed_run(session, link))


def _pushed_run(session: Session, link: LinkRow) -> dict[str, str]:
    state = session.get(TrackerState, (link.project_id, link.id), populate_existing=True)
    return {} if state is None or state.pushed_run is None else strict_json.loads(state.pushed_run.encode())


def _push(claim: Claim, link: LinkRow, writer: TrackerWriter, wanted: Desired) -> None:
    done = 0
    for at in range(0, len(wanted.due), AT_ONCE):
        part = wanted.due[at : at + AT_ONCE]
        digests = {push.checkpoint_id: digest for push, digest in part}
        noted: list[tuple[str, str | None]] = []
        for pair in writer.push_checkpoints(link.external_run_id, [push for push, _ in part]):
            noted.append(pair)
            if len(noted) >= NOTED_AT_ONCE:
                done += _note(claim, link, noted, digests, done, len(wanted.due))
                noted = []
        done += _note(claim, link, noted, digests, done, len(wanted.due))
    if wanted.run.values:
        with claim.write():
            pass  # the run's own tags are one state: only whoever holds the job sets them
        writer.push_run(link.external_run_id, wanted.run)
        with claim.write() as session:
            told = {**_pushed_run(session, link), **wanted.run.values}
            kept = {key: value for key, value in told.items() if value is not None}
            set_state(session, link, pushed_run=strict_json.canonical(kept))


def _note(
    claim: Claim,
    link: LinkRow,
    told: Sequence[tuple[str, str | None]],
    digests: Mapping[str, bytes],
    done: int,
    total: int,
) -> int:
    """Remember what the tracker was told, so that a repeat tells it no more."""
    with claim.write() as session:
        for checkpoint_id, external_id in told:
            key = {"project_id": link.project_id, "link_id": link.id, "checkpoint_id": from_text(checkpoint_id)}
            new = {"digest": digests[checkpoint_id], "changed_at": now()}
            named = {"external_id": external_id or checkpoint_id}
            statement = insert_into(session, TrackerCheckpoint).values(**key, **new, **named, origin="here")
            session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=new | named))
        claim.save(session, done=done + len(told), total=total, words=f"{done + len(told):,} of {total:,} told")
    return len(told)
