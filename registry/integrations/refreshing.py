"""The job that reads one link's run again, and says how things stand with the link where that fails."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from registry.config import Settings
from registry.db import now
from registry.errors import RegistryError
from registry.ids import from_text
from registry.integrations.credentials import BadCredentials
from registry.integrations.hosts import HostNotAllowed
from registry.integrations.http import TrackerRedirected
from registry.integrations.importing import bring_in
from registry.integrations.open import Place, open_reader
from registry.integrations.report import ImportReport
from registry.integrations.shapes import (
    TrackerAnswerUnknown,
    TrackerCertificateUntrusted,
    TrackerRefused,
    TrackerRunDeleted,
    TrackerRunNotFound,
    TrackerUnreachable,
)
from registry.jobs.claims import Claim
from registry.jobs.errors import LeaseLost, WorkerStopping
from registry.trackers.linking import LinkRow, get_link, set_state
from registry.trackers.schedule import want_pushes
from registry.trackers.settings import read_tracking

# What is wrong with a link, by what its reading raised; the first that fits.
STATES: Final[tuple[tuple[type[RegistryError], str], ...]] = (
    (HostNotAllowed, "not-allowed"),
    (TrackerRefused, "refused"),
    (BadCredentials, "refused"),
    (TrackerRunDeleted, "deleted"),
    (TrackerRunNotFound, "not-found"),
    (TrackerCertificateUntrusted, "untrusted-certificate"),
    (TrackerRedirected, "redirected"),
    (TrackerAnswerUnknown, "not-a-tracker"),
    (TrackerUnreachable, "unreachable"),
)
LOOK_AGAIN: Final = timedelta(hours=1)  # where a person must mend something first


def refresh_link(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    """Argument: link. Gives the report. Raises what the tracker raises, once the link says it too."""
    link = link_of(claim)
    report = ImportReport()
    try:
        reader = open_reader(Place(link.kind, link.uri, link.entity, link.external_project), settings)
        bring_in(claim, reader, [reader.run(link.external_run_id)], report, link)
    except (LeaseLost, WorkerStopping):
        raise
    except RegistryError as error:
        note_problem(claim, link, error)
        raise
    with claim.write() as session:
        want_pushes(session, [link], read_tracking(session, claim.project_id))
    return report.to_json()


def link_of(claim: Claim) -> LinkRow:
    """The link that a job is for. Raises TrackerLinkNotFound."""
    with claim.database.read() as session:
        return get_link(session, from_text(str(claim.arguments["link"])) or 0)


def note_problem(claim: Claim, link: LinkRow, error: RegistryError) -> None:
    state = next((state for kind, state in STATES if isinstance(error, kind)), "failed")
    with claim.write() as session:
        values: dict[str, Any] = {"state": state, "error": error.message, "checked_at": now()}
        if state != "unreachable":
            values["next_check_at"] = now() + LOOK_AGAIN
        set_state(session, link, **values)
