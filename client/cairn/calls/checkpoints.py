"""Checkpoints: register, commit, amend, read, list."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, RunLike, given, id_of, pages, segment
from cairn.reading import build
from cairn.score_names import score_name
from cairn.types import BatchReport, Checkpoint, CheckpointPage

Scores = Sequence[Mapping[str, Any]] | Mapping[str, float]


class CheckpointCalls(Calls):
    """What was saved, at which step, with what is known about it."""

    def register_checkpoint(
        self,
        run: RunLike,
        step: int,
        *,
        attempt: int | None = None,
        kind: str | None = None,
        state: str | None = None,
        saved_at: Any = None,
        tokens_seen: int | None = None,
        epoch: float | None = None,
        loss: float | None = None,
        lr: float | None = None,
        metrics: Mapping[str, float] | None = None,
        scores: Scores | None = None,
        data_version: Any = None,
        data_cursor: Any = None,
        code: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        environment: Mapping[str, Any] | None = None,
        layout: Mapping[str, Any] | None = None,
        format: str | None = None,
        format_version: str | None = None,
        pieces: Mapping[str, Any] | None = None,
        replicas: Sequence[Mapping[str, Any]] | None = None,
        parents: Sequence[Mapping[str, Any]] | None = None,
        save_seconds: float | None = None,
        stall_seconds: float | None = None,
        tags: Mapping[str, str] | None = None,
        milestone: bool | None = None,
        notes: str | None = None,
    ) -> Checkpoint:
        """Records a checkpoint; with the same content again it answers the first one.

        Raises `CheckpointExists` where other content is recorded for this (run, attempt, step, kind).
        `scores` is a list as for `record_scores`, or simply `{"gsm8k": 0.61}`.
        """
        body = given(
            step=step,
            attempt=attempt,
            kind=kind,
            state=state,
            saved_at=saved_at,
            tokens_seen=tokens_seen,
            epoch=epoch,
            loss=loss,
            lr=lr,
            metrics=metrics,
            scores=None if scores is None else score_list(scores),
            data_version=data_version,
            data_cursor=data_cursor,
            code=code,
            config=config,
            environment=environment,
            layout=layout,
            format=format,
            format_version=format_version,
            pieces=pieces,
            replicas=replicas,
            parents=parents,
            save_seconds=save_seconds,
            stall_seconds=stall_seconds,
            tags=tags,
            milestone=milestone,
            notes=notes,
        )
        path = f"/runs/{segment(id_of(run))}/checkpoints"
        return build(Checkpoint, self._send("POST", path, body, idempotent=True))

    def register_batch(self, items: Iterable[Mapping[str, Any]]) -> BatchReport:
        """Records many at once, all or none; each item has `project`, `run` and `step` besides the fields above.

        Projects and runs are made where absent. One refused item refuses the batch; the error names each.
        """
        return build(BatchReport, self._send("POST", "/checkpoints:batch", list(items), idempotent=True))

    def commit_checkpoint(self, checkpoint: CheckpointLike, **fields: Any) -> Checkpoint:
        """Commits a pending checkpoint, with any field of registration that was not known before."""
        path = f"/checkpoints/{segment(id_of(checkpoint))}/commit"
        return build(Checkpoint, self._send("POST", path, given(**fields), idempotent=True))

    def patch_checkpoint(self, checkpoint: CheckpointLike, **changes: Any) -> Checkpoint:
        """Amends tags, notes, milestone or loss; None removes a value (a JSON merge patch)."""
        path = f"/checkpoints/{segment(id_of(checkpoint))}"
        return build(Checkpoint, self._send("PATCH", path, changes, idempotent=True))

    def add_replicas(self, checkpoint: CheckpointLike, replicas: Sequence[Mapping[str, Any]]) -> Checkpoint:
        """Records further copies (see `cairn.replica`); one that is known adds nothing.

        Raises `Conflict` (replica-differs) where a digest or a size contradicts what is recorded.
        """
        path = f"/checkpoints/{segment(id_of(checkpoint))}/replicas"
        return build(Checkpoint, self._send("POST", path, list(replicas), idempotent=True))

    def get_checkpoint(self, checkpoint: CheckpointLike) -> Checkpoint:
        return self._get(Checkpoint, f"/checkpoints/{segment(id_of(checkpoint))}")

    def list_checkpoints(
        self,
        *,
        filter: str | None = None,
        order_by: str | None = None,
        fields: str | Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> CheckpointPage:
        """One page. `filter` and `order_by` are in the service's filter language."""
        columns = fields if fields is None or isinstance(fields, str) else ",".join(fields)
        return self._get(
            CheckpointPage,
            "/checkpoints",
            filter=filter,
            order_by=order_by,
            fields=columns,
            limit=limit,
            cursor=cursor,
        )

    def iter_checkpoints(
        self,
        *,
        filter: str | None = None,
        order_by: str | None = None,
        fields: str | Sequence[str] | None = None,
        limit: int | None = None,
        page_size: int = 100,
    ) -> Iterator[Checkpoint]:
        """Page after page, at most `limit` checkpoints; all where it is None."""
        size = page_size if limit is None else max(1, min(page_size, limit))

        def fetch(cursor: str | None) -> CheckpointPage:
            return self.list_checkpoints(filter=filter, order_by=order_by, fields=fields, limit=size, cursor=cursor)

        return pages(fetch, limit)


def score_list(scores: Scores) -> list[Mapping[str, Any]]:
    """`{"gsm8k": 0.61}` or `{"gsm8k.exact_match": 0.61}` in the long form; a list as it is."""
    if not isinstance(scores, Mapping):
        return list(scores)
    return [{**score_name(name), "value": value} for name, value in scores.items()]
