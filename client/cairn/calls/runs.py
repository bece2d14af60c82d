"""Projects, runs and their attempts."""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, RunLike, answer_items, given, id_of, pages, segment
from cairn.errors import NotFound
from cairn.reading import build
from cairn.types import Attempt, Project, ProjectPage, Run, RunPage

_log = logging.getLogger("cairn")


class RunCalls(Calls):
    """What starts and describes a training job."""

    def create_project(self, name: str) -> Project:
        """The project of that name, made where it is absent."""
        return build(Project, self._send("POST", "/projects", {"name": name}, idempotent=True))

    def list_projects(self) -> Iterator[Project]:
        """Every project that this token may see."""
        return pages(lambda cursor: self._get(ProjectPage, "/projects", cursor=cursor), None)

    def create_run(
        self,
        project: str,
        name: str,
        *,
        kind: str | None = None,
        owner: str | None = None,
        team: str | None = None,
        model_family: str | None = None,
        parameter_count: int | None = None,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, Any] | None = None,
        trackers: Sequence[Mapping[str, Any]] | None = None,
        started_at: Any = None,
        warn: bool = True,
    ) -> Run:
        """The run of that project and name, made where it is absent: safe to call at every start of a job.

        The project must be there: `create_project` makes it. What an earlier start said otherwise stays: the run's
        `not_applied` names it, and a warning is logged unless `warn` is False.
        """
        body = given(
            project=project,
            name=name,
            kind=kind,
            owner=owner,
            team=team,
            model_family=model_family,
            parameter_count=parameter_count,
            config=config,
            tags=tags,
            trackers=trackers,
            started_at=started_at,
        )
        run = build(Run, self._send("POST", "/runs", body, idempotent=True))
        if warn:
            _warn(f"run {run}", run.not_applied)
        return run

    def get_run(self, run: RunLike) -> Run:
        return self._get(Run, f"/runs/{segment(id_of(run))}")

    def list_runs(self, *, project: str | None = None, limit: int | None = None) -> Iterator[Run]:
        """Runs page by page, at most `limit`; all where it is None."""
        size = min(limit or 100, 100)

        def fetch(cursor: str | None) -> RunPage:
            return self._get(RunPage, "/runs", project=project, limit=size, cursor=cursor)

        return pages(fetch, limit)

    def find_run(self, project: str, name: str) -> Run:
        """The run of that project and name. Raises `NotFound`; makes nothing."""
        page = self._get(RunPage, "/runs", project=project, name=name, limit=1)
        for run in page.items:
            return run
        raise NotFound(f"No run {project}/{name}. `cairn run list --project {project}` shows what is there.")

    def start_attempt(
        self,
        run: RunLike,
        *,
        key: str | None = None,
        resumed_from: CheckpointLike | Mapping[str, Any] | None = None,
        restart: bool | None = None,
        command: str | None = None,
        reason: str | None = None,
        changes: str | None = None,
        skip: Sequence[Mapping[str, int]] | None = None,
        config: Mapping[str, Any] | None = None,
        environment: Mapping[str, Any] | None = None,
        layout: Mapping[str, Any] | None = None,
        nodes: Sequence[str] | None = None,
        started_at: Any = None,
        warn: bool = True,
    ) -> Attempt:
        """A new execution of the run. The same `key` (a job id, say) gives the same attempt again; what was said
        otherwise then is logged as a warning, unless `warn` is False.

        Raises `AttemptWouldRestart` on a run with committed checkpoints, unless `resumed_from` (a checkpoint
        or `{run, attempt, step, kind}`) or `restart=True` says what is meant.
        """
        source = resumed_from
        if source is not None and not isinstance(source, Mapping):
            source = id_of(source)
        body = given(
            key=key or uuid.uuid4().hex,  # a key of our own makes a repeat after a lost connection harmless
            resumed_from=source,
            restart=restart,
            command=command,
            reason=reason,
            changes=changes,
            skip=skip,
            config=config,
            environment=environment,
            layout=layout,
            nodes=nodes,
            started_at=started_at,
        )
        path = f"/runs/{segment(id_of(run))}/attempts"
        attempt = build(Attempt, self._send("POST", path, body, idempotent=True))
        if warn:
            _warn(f"attempt {attempt.number}", attempt.not_applied)
        return attempt

    def list_attempts(self, run: RunLike) -> tuple[Attempt, ...]:
        """Every attempt of the run, in order."""
        return answer_items(self._fetch(f"/runs/{segment(id_of(run))}/attempts"), Attempt)

    def patch_attempt(self, run: RunLike, number: int, **changes: Any) -> Attempt:
        """Amends `state, ended_at, exit_code, heartbeat_at, step, nodes`; None removes a value."""
        path = f"/runs/{segment(id_of(run))}/attempts/{int(number)}"
        return build(Attempt, self._send("PATCH", path, changes, idempotent=True))


def _warn(what: str, not_applied: Sequence[str]) -> None:
    if not_applied:
        named = ", ".join(not_applied[:8]) + (f" and {len(not_applied) - 8} more" if len(not_applied) > 8 else "")
        _log.warning("cairn: %s was started before and stays as it was said then; not taken over: %s", what, named)
