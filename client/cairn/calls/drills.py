"""Drills: rehearsed restores, as evidence that a checkpoint comes back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, RunLike, given, id_of, pages, segment
from cairn.reading import build
from cairn.types import Drill, DrillPage


class DrillCalls(Calls):
    """A `key` of one's own makes a report safe to repeat; `cairn drill` makes reports."""

    def record_drill(
        self,
        checkpoint: CheckpointLike,
        *,
        key: str,
        host: str,
        started_at: Any,
        ended_at: Any,
        verdict: str,
        reason: str | None = None,
        replica_id: str | None = None,
        layout: Mapping[str, Any] | None = None,
        software: Mapping[str, str] | None = None,
        seconds: Mapping[str, float | None] | None = None,
        bytes_read: int | None = None,
        steps_run: int | None = None,
        losses: Sequence[Any] | None = None,
        cold_losses: Sequence[Any] | None = None,
        tolerance: float | None = None,
        checks: Mapping[str, str] | None = None,
        exact: bool | None = None,
    ) -> Drill:
        """Records a rehearsed restore, `passed` or `failed`; the service compares its losses with the recorded ones.

        `losses` are `{"step", "loss"}`, or plain numbers of the steps after the checkpoint. `seconds` and `checks` by
        stage: read, verify, convert, load, run; read, verify, files, run.
        """
        body = given(
            checkpoint_id=id_of(checkpoint),
            key=key,
            host=host,
            started_at=started_at,
            ended_at=ended_at,
            verdict=verdict,
            reason=reason,
            replica_id=replica_id,
            layout=layout,
            software=software,
            seconds=None if seconds is None else given(**seconds),
            bytes_read=bytes_read,
            steps_run=steps_run,
            losses=None if losses is None else list(losses),
            cold_losses=None if cold_losses is None else list(cold_losses),
            tolerance=tolerance,
            checks=checks,
            exact=exact,
        )
        return build(Drill, self._send("POST", "/drills", body, idempotent=True))

    def list_drills(
        self,
        *,
        checkpoint: CheckpointLike | None = None,
        run: RunLike | None = None,
        project: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Drill]:
        """Drills page by page, the last recorded first; all where `limit` is None."""
        asked: dict[str, Any] = {"project": project, "limit": min(limit or 100, 100)}
        asked["checkpoint"] = None if checkpoint is None else id_of(checkpoint)
        asked["run"] = None if run is None else id_of(run)

        def fetch(cursor: str | None) -> DrillPage:
            return self._get(DrillPage, "/drills", cursor=cursor, **asked)

        return pages(fetch, limit)

    def get_drill(self, drill: str | Drill) -> Drill:
        """With the losses of its steps."""
        return self._get(Drill, f"/drills/{segment(id_of(drill))}")
