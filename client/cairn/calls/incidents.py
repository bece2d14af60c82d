"""The fault ledger: what stopped a run, and what a resume restored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, RunLike, given, id_of, pages, segment
from cairn.reading import build
from cairn.types import Incident, IncidentPage, ResumeReceipt, Suspicion


class IncidentCalls(Calls):
    """A `key` of one's own makes a report safe to repeat."""

    def open_incident(
        self,
        run: RunLike,
        *,
        key: str | None = None,
        kind: str | None = None,
        attempt: int | None = None,
        attempt_key: str | None = None,
        cause: str | None = None,
        evidence: Sequence[str] | None = None,
        occurred_at: Any = None,
        exit_code: int | None = None,
        signal: str | None = None,
        node: str | None = None,
        hardware: str | None = None,
        log_excerpt: str | None = None,
        step: int | None = None,
        steps_lost: int | None = None,
        checkpoint: CheckpointLike | None = None,
        replica_id: str | None = None,
        signature: str | None = None,
        note: str | None = None,
        recovered_at: Any = None,
    ) -> Incident:
        """Records what interrupted a run; of its newest attempt, unless another is named.

        `kind` is reported unless said (crashed, lost, stalled, reformed); `step` the last step that is known of.
        """
        body = given(
            run_id=id_of(run),
            key=key,
            kind=kind,
            attempt=attempt,
            attempt_key=attempt_key,
            cause=cause,
            evidence=None if evidence is None else list(evidence),
            occurred_at=occurred_at,
            exit_code=exit_code,
            signal=signal,
            node=node,
            hardware=hardware,
            log_excerpt=log_excerpt,
            step=step,
            steps_lost=steps_lost,
            checkpoint_id=None if checkpoint is None else id_of(checkpoint),
            replica_id=replica_id,
            signature=signature,
            note=note,
            recovered_at=recovered_at,
        )
        return build(Incident, self._send("POST", "/incidents", body, idempotent=key is not None))

    def list_incidents(
        self,
        *,
        project: str | None = None,
        run: RunLike | None = None,
        open: bool | None = None,
        cause: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Incident]:
        """Incidents page by page, the newest first; all where `limit` is None."""
        size = min(limit or 100, 100)
        asked: dict[str, Any] = {"project": project, "cause": cause, "limit": size}
        asked["run_id"] = None if run is None else id_of(run)
        asked["open"] = None if open is None else str(open).lower()

        def fetch(cursor: str | None) -> IncidentPage:
            return self._get(IncidentPage, "/incidents", cursor=cursor, **asked)

        return pages(fetch, limit)

    def get_incident(self, incident: str | Incident) -> Incident:
        """With the end of its log."""
        return self._get(Incident, f"/incidents/{segment(id_of(incident))}")

    def patch_incident(self, incident: str | Incident, **changes: Any) -> Incident:
        """Amends `cause, note, node, hardware`; `open=False` closes it. None takes a value away."""
        path = f"/incidents/{segment(id_of(incident))}"
        return build(Incident, self._send("PATCH", path, changes, idempotent=True))

    def get_suspicion(self, checkpoint: CheckpointLike) -> Suspicion:
        """Whether the checkpoint, or a copy of it, is suspect: what loaded it failed alike, or a person said so."""
        return self._get(Suspicion, f"/checkpoints/{segment(id_of(checkpoint))}/suspicion")

    def record_receipt(
        self,
        run: RunLike,
        *,
        pieces: Mapping[str, str],
        checkpoint: CheckpointLike | Mapping[str, Any] | None = None,
        attempt: int | None = None,
        attempt_key: str | None = None,
        restore_seconds: float | None = None,
        note: str | None = None,
    ) -> ResumeReceipt:
        """Says what an attempt restored of what it loaded: each piece restored, fresh, absent or unknown."""
        loaded: dict[str, Any] = {"checkpoint": dict(checkpoint)} if isinstance(checkpoint, Mapping) else {}
        if checkpoint is not None and not loaded:
            loaded = {"checkpoint_id": id_of(checkpoint)}
        body = given(
            run_id=id_of(run),
            attempt=attempt,
            attempt_key=attempt_key,
            pieces=dict(pieces),
            restore_seconds=restore_seconds,
            note=note,
        )
        return build(ResumeReceipt, self._send("POST", "/resume-receipts", body | loaded, idempotent=True))
