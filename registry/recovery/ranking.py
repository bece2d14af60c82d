"""Which checkpoint to go back to: the order of candidates, the terms it comes from, and what would change it.

Training: the least expected minutes until the run is back where it stood. Production: the best capability that is
sure (composite - 1.645 SE), among those that will restore. Pure functions over plain values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from registry.evals.verdict_words import Z_95

# [assumed] How likely a restore works, by the best evidence there is for the copy.
P_OK = MappingProxyType({"drill": 0.99, "verified hash": 0.95, "size only": 0.80, "none": 0.60, "failed": 0.10})
PRIOR_WEIGHT = 20  # the assumed figure counts as this many restores: Beta(19, 1) for a verified hash
LEAST_P_OK_PRODUCTION = 0.9

Terms = Mapping[str, float | str | None]


@dataclass(frozen=True, slots=True)
class TrainingOption:
    """A checkpoint that may be loaded. Minutes; `restore_minutes` None where it cannot be estimated.

    `evidence` is a key of P_OK. What a hard filter excludes is no option, and nothing falls back on it.
    """

    id: int
    step: int
    restore_minutes: float | None
    evidence: str
    passed: int = 0  # drills of this tier and format that passed, and failed
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ProductionOption:
    """A checkpoint that may serve. `composite` and its error are chance-normalised; None where nothing is known."""

    id: int
    step: int
    composite: float | None
    composite_stderr: float | None
    restore_minutes: float | None
    evidence: str
    passed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place. `terms` are the figures of the order, by name; `reasons` say them in words."""

    id: int
    rank: int
    terms: Terms
    reasons: tuple[str, ...]


def p_ok(evidence: str, passed: int = 0, failed: int = 0) -> float:
    """The chance that a restore works: the assumed figure for the evidence, updated by drills (Beta)."""
    return (PRIOR_WEIGHT * P_OK[evidence] + passed) / (PRIOR_WEIGHT + passed + failed)


def replay_minutes(from_step: int, to_step: int, seconds_per_step: float) -> float:
    return max(0, to_step - from_step) * seconds_per_step / 60


def choose_fallbacks(options: Sequence[TrainingOption], seconds_per_step: float) -> dict[int, TrainingOption | None]:
    """For each option, by id, what is taken when it does not load; None: nothing older is known.

    The older one with the least expected loss should it fail as well, (1 - p_ok)(T_restore + extra replay): a drilled
    checkpoint some way back rather than the unproven neighbour, but not one from the beginning of the run. One sweep
    in order of step, with the best so far for each p_ok: a run of 10,000 checkpoints stays quick.
    """
    found: dict[int, TrainingOption | None] = {}
    best: dict[float, TrainingOption] = {}
    for _, level in groupby(sorted(options, key=lambda each: each.step), key=lambda each: each.step):
        together = list(level)
        for option in together:
            losses = ((_expected_loss(option, each, seconds_per_step), -each.step, each) for each in best.values())
            found[option.id] = min(losses, key=lambda item: item[:2], default=(0, 0, None))[2]
        for option in together:
            if option.restore_minutes is not None:
                chance = p_ok(option.evidence, option.passed, option.failed)
                known = best.get(chance)
                if known is None or _expected_loss(option, option, seconds_per_step) <= _expected_loss(
                    option, known, seconds_per_step
                ):
                    best[chance] = option
    return found


def _expected_loss(option: TrainingOption, fallback: TrainingOption, seconds_per_step: float) -> float:
    extra = replay_minutes(fallback.step, option.step, seconds_per_step)
    return (1 - p_ok(fallback.evidence, fallback.passed, fallback.failed)) * ((fallback.restore_minutes or 0.0) + extra)


def expected_minutes(
    option: TrainingOption, fallback: TrainingOption | None, at_step: int, seconds_per_step: float
) -> dict[str, float | str | None]:
    """The terms of E[min] = T_restore + replay + (1 - p_ok)(T_fallback + extra replay).

    With nothing older to fall back on, the run would be trained again from its start: all its steps are the extra.
    Where the time of a restore is unknown, so is the expectation.
    """
    chance = p_ok(option.evidence, option.passed, option.failed)
    behind = fallback.step if fallback else 0
    extra = replay_minutes(behind, option.step, seconds_per_step)
    restore, replay = option.restore_minutes, replay_minutes(option.step, at_step, seconds_per_step)
    again = (fallback.restore_minutes if fallback else restore) or 0.0
    expected = None if restore is None else restore + replay + (1 - chance) * (again + extra)
    return {
        "expected_minutes": expected,
        "restore_minutes": restore,
        "replay_minutes": replay,
        "p_ok": chance,
        "evidence": option.evidence,
        "fallback_step": float(behind) if fallback else None,
        "fallback_minutes": again + extra,
    }


def rank_for_training(
    options: Sequence[TrainingOption], at_step: int, seconds_per_step: float, limit: int | None = None
) -> list[Ranked]:
    """The options by expected minutes, fewest first; those of unknown restore time come last, newest step first."""
    fallbacks = choose_fallbacks(options, seconds_per_step)
    scored = [(each, expected_minutes(each, fallbacks[each.id], at_step, seconds_per_step)) for each in options]
    scored.sort(key=lambda item: (_last(item[1]["expected_minutes"]), -item[0].step, -item[0].id))
    ranked = []
    for rank, (option, terms) in enumerate(scored[:limit], 1):
        reasons = (*_minutes_told(terms), _training_change(option, terms, *scored[0]))
        ranked.append(Ranked(option.id, rank, terms, reasons))
    return ranked


def _last(minutes: float | str | None) -> float:
    return minutes if isinstance(minutes, float) else float("inf")


def _minutes_told(terms: Terms) -> tuple[str, str, str]:
    """The time it takes, the chance that it works, and what it costs if not: each a sentence of its own.

    The second is the same for all candidates of the same evidence, so that a list of them can say it once.
    """
    back = terms["fallback_step"]
    behind = f"step {back:.0f}" if isinstance(back, float) else "the start of the run"
    chance = _chance_told(_number(terms["p_ok"]), terms["evidence"])
    failing = f"If it does not load, {terms['fallback_minutes']:.0f} min more, from {behind}"
    if terms["expected_minutes"] is None:
        told = f"The time to restore is unknown; then {terms['replay_minutes']:.0f} min of replay"
        return told, chance, failing
    told = (
        f"{terms['expected_minutes']:.1f} min expected: {terms['restore_minutes']:.1f} to restore, "
        f"{terms['replay_minutes']:.0f} to replay"
    )
    return told, chance, failing


def _chance_told(chance: float, evidence: float | str | None) -> str:
    return f"A restore is assumed to work with {chance:.0%} (evidence: {evidence})"


def _training_change(option: TrainingOption, terms: Terms, leading: TrainingOption, best: Terms) -> str:
    """A sentence: which evidence would put this option first, or take the first place from it."""
    if option.id == leading.id:
        return "A failed drill or a failed verification of this copy would take the first place from it"
    expected, least = terms["expected_minutes"], best["expected_minutes"]
    if not isinstance(least, float) or not isinstance(expected, float):
        return "The size of the copy, or a drill, would give it a restore time and a place"
    restore, replay, behind = (
        _number(terms[name]) for name in ("restore_minutes", "replay_minutes", "fallback_minutes")
    )
    drilled = restore + replay + (1 - P_OK["drill"]) * behind
    if option.evidence != "drill" and drilled < least:
        return f"A passed drill would put it first, with {drilled:.1f} min"
    return f"Only if step {leading.step} did not load: no evidence of its own makes up for {replay:.0f} min of replay"


def _number(term: float | str | None) -> float:
    return term if isinstance(term, float) else 0.0


def rank_for_production(
    options: Sequence[ProductionOption], limit: int | None = None
) -> tuple[list[Ranked], dict[int, str]]:
    """(candidates, refused): by composite - 1.645 SE, highest first, ties to the newest step.

    Copies that are proven (p_ok at least .9) come before all others, which are told to be verified first. A composite
    without an error counts with an error of 0 and says so; one that is missing is refused, never taken as low.
    """
    refused = {each.id: "no score to judge it by: evaluate it first" for each in options if each.composite is None}
    kept = [each for each in options if each.composite is not None]
    bounds = {each.id: _lower_bound(each) for each in kept}
    kept.sort(key=lambda each: (not _is_proven(each), -bounds[each.id], -each.step, -each.id))
    ranked = []
    for rank, each in enumerate(kept[:limit], 1):
        terms: Terms = {
            "lower_bound": bounds[each.id],
            "composite": each.composite,
            "composite_stderr": each.composite_stderr,
            "p_ok": p_ok(each.evidence, each.passed, each.failed),
            "evidence": each.evidence,
            "restore_minutes": each.restore_minutes,
        }
        ranked.append(Ranked(each.id, rank, terms, _production_told(each, bounds, kept[0], rank)))
    return ranked, refused


def _lower_bound(option: ProductionOption) -> float:
    return (option.composite or 0.0) - Z_95 * (option.composite_stderr or 0.0)


def _is_proven(option: ProductionOption) -> bool:
    return p_ok(option.evidence, option.passed, option.failed) >= LEAST_P_OK_PRODUCTION


def _production_told(
    option: ProductionOption, bounds: Mapping[int, float], best: ProductionOption, rank: int
) -> tuple[str, ...]:
    composite, error = f"{100 * (option.composite or 0.0):.1f}", option.composite_stderr
    if error is None:
        told = [f"Its composite is {composite} points, whose error is unknown and counted as 0"]
    else:
        least = f"{100 * bounds[option.id]:.1f} points or more with a confidence of 95%"
        told = [f"{least}: its composite is {composite} ± {100 * error:.1f}"]
    chance = p_ok(option.evidence, option.passed, option.failed)
    if chance < LEAST_P_OK_PRODUCTION:
        told.append(
            f"Not proven. {_chance_told(chance, option.evidence)}. Verify the copy or drill it before it serves"
        )
    return *told, _production_change(option, bounds, best, rank)


def _production_change(option: ProductionOption, bounds: Mapping[int, float], best: ProductionOption, rank: int) -> str:
    """A sentence: which evidence would put this option first, or take the first place from it."""
    if rank == 1:
        return "A second evaluation that scores lower, or a failed drill, would take the first place from it"
    gap = bounds[best.id] - bounds[option.id]
    if _is_proven(best) and not _is_proven(option) and gap <= 0:
        return "A verified copy would put it first"
    if (option.composite or 0.0) > (best.composite or 0.0):
        return "More evaluation samples would put it first if its composite holds, since only its error is larger"
    return f"It needs {100 * gap:.1f} points more to be first"
