"""The three questions: which checkpoint is strong where, which to go back to, and what changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, RunLike, given, id_of, segment
from cairn.reading import build
from cairn.types import Comparison, Lineage, Profile, RollbackAnswer, SearchAnswer

Conditions = Sequence[Mapping[str, Any]]


class DecideCalls(Calls):
    """Questions; none of them changes anything."""

    def search(
        self,
        query: str | None = None,
        *,
        conditions: Conditions | None = None,
        like: CheckpointLike | None = None,
        project: str | None = None,
        order: str | None = None,
        population: str | None = None,
        limit: int | None = None,
    ) -> SearchAnswer:
        """Checkpoints by what they are good at, in words ('strong math, weak chat') or as conditions.

        Or `like` a checkpoint: those with the same strengths and weaknesses. `order` puts the newest, the oldest
        or the lowest_loss first among those that meet everything. `population` is whom percentiles are among:
        'project', or published figures such as 'reference:pythia'. The answer says how the words were understood; look
        at `interpretation` and `strict`.
        """
        body = given(
            query=query,
            conditions=conditions,
            like=None if like is None else id_of(like),
            project=project,
            order=order,
            population=population,
            limit=limit,
        )
        return build(SearchAnswer, self._send("POST", "/search", body, idempotent=True))

    def rollback(
        self,
        run: RunLike | None = None,
        *,
        mode: str | None = None,
        conditions: Conditions = (),
        alias: str | None = None,
        after: Any = None,
        before: Any = None,
        at_or_before_step: int | None = None,
        watch: Mapping[str, str] | None = None,
        target_layout: Mapping[str, Any] | None = None,
        rto_seconds: float | None = None,
        limit: int | None = None,
    ) -> RollbackAnswer:
        """Checkpoints to go back to, best first, and the excluded ones with the reason.

        Name a run, or an `alias` as 'project/name'. `mode` is training (least work lost; for a run, unless said) or
        production (best that is safe; for an alias). `watch` is `{"benchmark": ...}` or `{"capability": ...}`:
        then the answer says since when it is bad, and candidates lie before that.
        """
        body = given(
            run_id=None if run is None else id_of(run),
            alias=alias,
            mode=mode,
            conditions=list(conditions) or None,
            after=after,
            before=before,
            at_or_before_step=at_or_before_step,
            watch=watch,
            target_layout=target_layout,
            rto_seconds=rto_seconds,
            limit=limit,
        )
        return build(RollbackAnswer, self._send("POST", "/rollback", body, idempotent=True))

    def compare(self, baseline: CheckpointLike, candidate: CheckpointLike) -> Comparison:
        """Which scores really changed, and what else did."""
        body = {"baseline": id_of(baseline), "candidate": id_of(candidate)}
        return build(Comparison, self._send("POST", "/compare", body, idempotent=True))

    def profile(self, checkpoint: CheckpointLike) -> Profile:
        """What the checkpoint is good at, capability by capability."""
        return self._get(Profile, f"/checkpoints/{segment(id_of(checkpoint))}/profile")

    def lineage(self, checkpoint: CheckpointLike) -> Lineage:
        """Ancestors and descendants, nearest first."""
        return self._get(Lineage, f"/checkpoints/{segment(id_of(checkpoint))}/lineage")
