"""Scores of two checkpoints with the same weights: nothing got better or worse, whatever two evaluations say."""

from dataclasses import replace

from registry.evals import significance
from registry.provenance.composites import CapabilityComparison
from registry.provenance.score_changes import ScoreChanges, ScoreComparison

SAME_WEIGHTS = "the same weights"
SAME_EVALUATION = "the same evaluation"
OTHERWISE = "evaluation noise or another way of evaluating: the weights are the same"


def of_same_weights(found: ScoreChanges, baseline_id: int, candidate_id: int) -> ScoreChanges:
    """What a comparison of two copies says. Equal scores are unchanged; others too, within their uncertainty.

    A difference beyond it stays open (inconclusive), so that it is seen: the evaluations differ, or the copy is none.
    """
    return replace(
        found,
        scores=tuple(sorted((_score(each, (baseline_id, candidate_id)) for each in found.scores), key=_open_first)),
        capabilities=tuple(_capability(each) for each in found.capabilities),
    )


def _score(row: ScoreComparison, ids: tuple[int, int]) -> ScoreComparison:
    if row.verdict == significance.NOT_COMPARABLE:
        return row
    owners = {own if via is None else via for own, via in zip(ids, row.via, strict=True)}
    if row.baseline == row.candidate:
        why = SAME_EVALUATION if len(owners) == 1 and ids[0] != ids[1] else SAME_WEIGHTS
        plain = replace(row, delta=0.0, stderr=None, minimum_detectable=None, method="no test")
        return _untested(replace(plain, normalised=None, normalised_stderr=None), significance.UNCHANGED, why)
    return _untested(row, _verdict(row.verdict) if row.q_value is not None else significance.INCONCLUSIVE, OTHERWISE)


def _open_first(row: ScoreComparison) -> int:
    return (significance.INCONCLUSIVE, significance.UNCHANGED, significance.NOT_COMPARABLE).index(row.verdict)


def _untested(row: ScoreComparison, verdict: str, why: str) -> ScoreComparison:
    return replace(row, p_value=None, q_value=None, verdict=verdict, why=why, why_in_points=why)


def _capability(row: CapabilityComparison) -> CapabilityComparison:
    why = SAME_WEIGHTS if row.delta == 0 else OTHERWISE
    return replace(row, p_value=1.0, q_value=1.0, verdict=_verdict(row.verdict), why=why, why_in_points=why)


def _verdict(tested: str) -> str:
    """Of a difference that was tested as if the weights were others."""
    moved = tested in (significance.IMPROVED, significance.REGRESSED, significance.SUSPECTED)
    return significance.INCONCLUSIVE if moved else significance.UNCHANGED
