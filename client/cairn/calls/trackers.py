"""Links to experiment trackers, imports from them, and the durable jobs that do the work."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from cairn.calls.base import API, Calls, RunLike, given, id_of, pages, segment
from cairn.reading import build
from cairn.transport import Call
from cairn.types import Job, JobPage, TrackerLink, TrackerLinks, Tracking


class TrackerCalls(Calls):
    """A run may be on MLflow and on W&B at once; it is one run here."""

    def link_run(
        self,
        run: RunLike,
        url: str | None = None,
        *,
        kind: str | None = None,
        run_id: str | None = None,
        uri: str | None = None,
        entity: str | None = None,
        project: str | None = None,
    ) -> TrackerLink:
        """Links a run by whatever link the tracker's pages show, or by `kind` and `run_id`. Repeating adds nothing."""
        body = given(url=url, kind=kind, run_id=run_id, uri=uri, entity=entity, project=project)
        return build(TrackerLink, self._send("POST", _links(run), body, idempotent=True))

    def tracker_links(self, run: RunLike) -> TrackerLinks:
        """The links of a run, and what its trackers say of it."""
        return self._get(TrackerLinks, _links(run))

    def unlink_run(self, run: RunLike, link: str | TrackerLink) -> None:
        """Takes a link away; what was read through it stays."""
        self._transport.send(Call("DELETE", f"{API}{_links(run)}/{segment(id_of(link))}"))

    def refresh_link(self, run: RunLike, link: str | TrackerLink) -> Job:
        """Asks for a fresh look at the tracker's run."""
        path = f"{_links(run)}/{segment(id_of(link))}/refresh"
        return build(Job, self._send("POST", path, {}, idempotent=True))

    def tracking(self, project: str, **changes: Any) -> Tracking:
        """How a project is kept in step; sets `push_mlflow`, `push_wandb`, `best_by`, `refresh_seconds` where given."""
        path = f"/projects/{segment(project)}/tracking"
        if not changes:
            return self._get(Tracking, path)
        return build(Tracking, self._send("PATCH", path, changes, idempotent=True))

    def import_tracker(
        self,
        kind: str,
        project: str,
        *,
        uri: str | None = None,
        experiment: str | None = None,
        entity: str | None = None,
        external_project: str | None = None,
    ) -> Job:
        """Asks for an import of an MLflow experiment or a W&B project. Asking again joins the job that runs."""
        body = given(
            kind=kind,
            project=project,
            uri=uri,
            experiment=experiment,
            entity=entity,
            external_project=external_project,
        )
        return build(Job, self._send("POST", "/imports/tracker", body, idempotent=True))

    def get_job(self, job: str | Job) -> Job:
        return self._get(Job, f"/jobs/{segment(id_of(job))}")

    def list_jobs(
        self, *, project: str | None = None, kind: str | None = None, limit: int | None = None
    ) -> Iterator[Job]:
        """Jobs, the newest first."""

        def fetch(cursor: str | None) -> JobPage:
            return self._get(JobPage, "/jobs", project=project, kind=kind, limit=min(limit or 100, 100), cursor=cursor)

        return pages(fetch, limit)

    def cancel_job(self, job: str | Job) -> Job:
        return build(Job, self._send("POST", f"/jobs/{segment(id_of(job))}/cancel", {}, idempotent=False))

    def wait_for_job(
        self,
        job: str | Job,
        *,
        timeout: float | None = None,
        pause_seconds: float = 0.5,
        seen: Callable[[Job], None] | None = None,
    ) -> Job:
        """The job once it has ended, or as it stands after `timeout` seconds; `seen` gets each state in between."""
        latest = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.get_job(job)
            if seen is not None:
                seen(found)
            if found.has_ended or (latest is not None and time.monotonic() + pause_seconds > latest):
                return found
            time.sleep(pause_seconds)


def _links(run: RunLike) -> str:
    return f"/runs/{segment(id_of(run))}/trackers"
