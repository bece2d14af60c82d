"""Where a checkpoint comes from, after which one it got worse, and answers to keep."""

from collections.abc import Mapping, Sequence
from typing import Any

from cairn.calls.base import Calls, CheckpointLike, given, id_of, segment
from cairn.reading import build
from cairn.types import Bisect, Decision, Provenance


class ProvenanceCalls(Calls):
    """Evidence: chains, searches, records."""

    def provenance(self, checkpoint: CheckpointLike) -> Provenance:
        """The whole chain: data with tokens seen by source, config, code, parents; and what is not recorded."""
        return self._get(Provenance, f"/checkpoints/{segment(id_of(checkpoint))}/provenance")

    def start_bisect(
        self,
        good: CheckpointLike,
        bad: CheckpointLike,
        *,
        benchmark: str | None = None,
        metric: str | None = None,
        filter: str | None = None,
        capability: str | None = None,
        drop: float | None = None,
        discordance: float | None = None,
    ) -> Bisect:
        """A search for the checkpoint after which a score fell; the same question again goes on where it was."""
        body = given(
            good=id_of(good),
            bad=id_of(bad),
            benchmark=benchmark,
            metric=metric,
            filter=filter,
            capability=capability,
            drop=drop,
            discordance=discordance,
        )
        return build(Bisect, self._send("POST", "/bisects", body, idempotent=True))

    def get_bisect(self, bisect: str | Bisect) -> Bisect:
        """How the search stands, with every score that has arrived by now."""
        return self._get(Bisect, f"/bisects/{segment(id_of(bisect))}")

    def observe(
        self,
        bisect: str | Bisect,
        checkpoint: CheckpointLike,
        value: float,
        *,
        stderr: float | None = None,
        n_samples: int | None = None,
    ) -> Bisect:
        """Gives a search the score of a checkpoint, and gets what to evaluate next."""
        body = given(checkpoint=id_of(checkpoint), value=value, stderr=stderr, n_samples=n_samples)
        path = f"/bisects/{segment(id_of(bisect))}/observations"
        return build(Bisect, self._send("POST", path, body, idempotent=True))

    def test_suspect(
        self,
        baseline: CheckpointLike,
        candidate: CheckpointLike,
        changes: Sequence[str],
        verdict: str,
        *,
        branch: CheckpointLike | None = None,
        note: str | None = None,
    ) -> None:
        """Records what reverting `changes` and training a short branch showed: 'confirmed' or 'cleared'."""
        body = given(
            baseline=id_of(baseline),
            candidate=id_of(candidate),
            changes=list(changes),
            verdict=verdict,
            branch=None if branch is None else id_of(branch),
            note=note,
        )
        self._send("POST", "/suspects", body, idempotent=False)

    def record_decision(self, kind: str, request: Mapping[str, Any], *, note: str | None = None) -> Decision:
        """Has a question ('compare', 'rollback', 'search', with the body of that call) answered now, and kept."""
        body = given(kind=kind, request=dict(request), note=note)
        return build(Decision, self._send("POST", "/decisions", body, idempotent=False))

    def get_decision(self, decision: str) -> Decision:
        return self._get(Decision, f"/decisions/{segment(decision)}")
