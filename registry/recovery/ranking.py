"""Which checkpoint to go back to: the order of candidates, the terms it comes from, and what would change it.

Training: the least expected minutes until the run is back where it stood. Production: the best capability that is
sure (composite - 1.645 SE), among those that will restore. Pure functions over plain values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from registry.evals.percentiles import Floats, Integers
from registry.evals.verdict_words import Z_95
from registry.recovery.restore_time import FIXED_SECONDS, LOAD_SECONDS
from registry.wording import counted

# [assumed] How likely a restore works, by the best evidence there is for the copy.
P_OK = MappingProxyType({"drill": 0.99, "verified hash": 0.95, "size only": 0.80, "none": 0.60, "failed": 0.10})
_EVIDENCE = {"drill": "a passed drill", "failed": "a failed drill", "size only": "a drill that only read it"}
PRIOR_WEIGHT = 20  # the assumed figure counts as this many restores: Beta(19, 1) for a verified hash
LEAST_P_OK_PRODUCTION = 0.9

LEAST_MINUTES = (FIXED_SECONDS + LOAD_SECONDS) / 60  # [assumed] of a restore, however small the copy is

NO_FIGURE = "no comparable finite score to judge it by"

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
    """For each option, by id, what is taken when it does not load; None: nothing older is known."""
    chosen = Lineup.of(options).fallbacks(seconds_per_step)
    return {each.id: options[place] if place >= 0 else None for each, place in zip(options, chosen, strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class Lineup:
    """Options as columns: steps, minutes to restore (NaN unknown), and the chance that a restore works.

    What is fallen back on may be of unknown time: then the least that any restore takes counts for it.
    """

    ids: Integers
    steps: Integers
    minutes: Floats
    chances: Floats

    @classmethod
    def of(cls, options: Sequence[TrainingOption]) -> "Lineup":
        return cls(
            np.array([each.id for each in options], dtype=np.int64),
            np.array([each.step for each in options], dtype=np.int64),
            np.array([np.nan if each.restore_minutes is None else each.restore_minutes for each in options], float),
            np.array([p_ok(each.evidence, each.passed, each.failed) for each in options], float),
        )

    @property
    def at_least(self) -> Floats:
        return np.where(np.isnan(self.minutes), LEAST_MINUTES, self.minutes)

    def fallbacks(self, seconds_per_step: float) -> Integers:
        """The place of what is taken when an option does not load; -1: nothing older is known.

        The older one with the least expected loss should it fail as well, (1 - p_ok)(T_restore + extra replay): a
        drilled checkpoint some way back rather than the unproven neighbour, but not one from the beginning of the
        run. For each p_ok the best so far in order of step: a run of 10,000 checkpoints is a few sums over columns.
        """
        order = np.lexsort((self.ids, self.steps))
        steps, minutes, chances = self.steps[order], self.at_least[order], self.chances[order]
        older = np.searchsorted(steps, steps, side="left")  # how many have a lower step
        at = steps * (seconds_per_step / 60)
        chosen, loss = np.full(len(order), -1, dtype=np.int64), np.full(len(order), np.inf)
        for chance in np.unique(chances).tolist():
            cost = np.where(chances == chance, minutes - at, np.inf)
            least = np.minimum.accumulate(cost) if len(cost) else cost
            newest = np.maximum.accumulate(np.where(cost == least, np.arange(len(cost)), 0))
            place = newest[np.maximum(older - 1, 0)]
            found = (1 - chance) * (cost[place] + at)
            found[older == 0] = np.inf
            better = (found < loss) | ((found == loss) & np.isfinite(found) & (steps[place] > steps[chosen]))
            chosen[better], loss[better] = place[better], found[better]
        back = np.where(chosen >= 0, order[chosen], -1)
        result = np.empty(len(order), dtype=np.int64)
        result[order] = back
        return result

    def expected(self, fallbacks: Integers, at_step: int, seconds_per_step: float) -> Floats:
        """E[min] of each, as `expected_minutes` says it; NaN where the time of a restore is unknown."""
        replay = np.maximum(0, at_step - self.steps) * (seconds_per_step / 60)
        has = fallbacks >= 0
        behind = np.where(has, self.steps[fallbacks], 0)
        again = np.where(has, self.at_least[fallbacks], self.minutes)
        extra = np.maximum(0, self.steps - behind) * (seconds_per_step / 60)
        return np.asarray(self.minutes + replay + (1 - self.chances) * (again + extra))


def expected_minutes(
    option: TrainingOption, fallback: TrainingOption | None, at_step: int, seconds_per_step: float
) -> dict[str, float | str | None]:
    """The terms of E[min] = T_restore + replay + (1 - p_ok)(T_fallback + extra replay).

    With nothing older to fall back on, the run would be trained again from its start: all its steps are the extra.
    Where the time of a restore is unknown, so is the expectation; of a fallback the least that any takes is counted.
    """
    chance = p_ok(option.evidence, option.passed, option.failed)
    behind = fallback.step if fallback else 0
    extra = replay_minutes(behind, option.step, seconds_per_step)
    restore, replay = option.restore_minutes, replay_minutes(option.step, at_step, seconds_per_step)
    behind_restore = fallback.restore_minutes if fallback else restore
    again = LEAST_MINUTES if behind_restore is None else behind_restore
    expected = None if restore is None else restore + replay + (1 - chance) * (again + extra)
    return {
        "expected_minutes": expected,
        "restore_minutes": restore,
        "replay_minutes": replay,
        "p_ok": chance,
        "evidence": option.evidence,
        **_drills(option),
        "fallback_step": float(behind) if fallback else None,
        "fallback_minutes": again + extra,
        "fallback_restore_minutes": behind_restore,
    }


def rank_for_training(
    options: Sequence[TrainingOption], at_step: int, seconds_per_step: float, limit: int | None = None
) -> list[Ranked]:
    """The options by expected minutes, fewest first; those of unknown restore time come last, newest step first."""
    return rank_lineup(Lineup.of(options), options.__getitem__, at_step, seconds_per_step, limit)


def rank_lineup(
    lineup: Lineup,
    option: Callable[[int], TrainingOption],
    at_step: int,
    seconds_per_step: float,
    limit: int | None = None,
) -> list[Ranked]:
    """The same of options as columns; `option` makes the one at a place, for the few that are said in words."""
    fallbacks = lineup.fallbacks(seconds_per_step)
    minutes = lineup.expected(fallbacks, at_step, seconds_per_step)
    order = np.lexsort((-lineup.ids, -lineup.steps, np.where(np.isnan(minutes), np.inf, minutes)))
    following = float(minutes[order[1]]) if len(order) > 1 else None
    scored = []
    for place in order[:limit].tolist():
        behind = int(fallbacks[place])
        each = option(place)
        scored.append(
            (each, expected_minutes(each, option(behind) if behind >= 0 else None, at_step, seconds_per_step))
        )
    ranked = []
    for rank, (each, terms) in enumerate(scored, 1):
        ranked.append(
            Ranked(each.id, rank, terms, (*_minutes_told(terms), _training_change(each, terms, *scored[0], following)))
        )
    return ranked


def _minutes_told(terms: Terms) -> tuple[str, str, str]:
    """The time it takes, the chance that it works, and what it costs if not: each a sentence of its own.

    The second is the same for all candidates of the same evidence, so that a list of them can say it once.
    """
    back = terms["fallback_step"]
    behind = f"step {back:.0f}" if isinstance(back, float) else "the start of the run"
    chance = _chance_told(terms)
    least = "at least " if terms["fallback_restore_minutes"] is None else ""
    failing = f"If it does not load, {least}{terms['fallback_minutes']:.0f} min more, from {behind}"
    if terms["expected_minutes"] is None:
        told = f"The time to restore is unknown; then {terms['replay_minutes']:.0f} min of replay"
        return told, chance, failing
    return _sum_told(terms), chance, failing


def _sum_told(terms: Terms) -> str:
    """The expected minutes and what they are the sum of, so that it adds up as it is read."""
    names = ("expected_minutes", "restore_minutes", "replay_minutes")
    whole, *parts = (round(_number(terms[name]), 1) for name in names)
    restore, replay, risk = (f"{each:.1f}".removesuffix(".0") for each in (*parts, whole - sum(parts)))
    told = f"{whole:.1f} min expected: {restore} to restore, {replay} to replay"
    return f"{told}, {risk} for the risk that it does not load" if risk != "0" else told


def _chance_told(terms: Terms) -> str:
    passed, failed = (_number(terms[name]) for name in ("drills_passed", "drills_failed"))
    told = f"evidence: {_EVIDENCE.get(str(terms['evidence']), terms['evidence'])}"
    if passed + failed:
        told += f"; {passed:.0f} of {counted(int(passed + failed), 'drill')} of its tier and format passed"
    return f"A restore is assumed to work in {_number(terms['p_ok']):.0%} of cases ({told})"


def _training_change(
    option: TrainingOption, terms: Terms, leading: TrainingOption, best: Terms, following: float | None
) -> str:
    """A sentence: which evidence would put this option first, or take the first place from it.

    `following`: the expected minutes of the second; None where there is none.
    """
    if option.id == leading.id:
        return _first_told(option, terms, following)
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


def _first_told(option: TrainingOption, terms: Terms, following: float | None) -> str:
    if following is None:
        return "No other candidate is left, whatever is found out about it"
    restore, replay, behind = (
        _number(terms[name]) for name in ("restore_minutes", "replay_minutes", "fallback_minutes")
    )
    # Worth a try even so: the attempt costs its minutes, and going on with the next one costs more than it risks.
    is_first_anyway = restore + replay + (1 - P_OK["failed"]) * behind < following
    if option.evidence == "failed":
        return f"It is first although a drill of it failed, since trying it costs {restore:.0f} min only"
    if is_first_anyway and terms["expected_minutes"] is not None:
        kept = f"a failed drill would not, since trying it costs {restore:.0f} min only"
        return f"A failed verification of this copy would take the first place from it; {kept}"
    return "A failed drill or a failed verification of this copy would take the first place from it"


def _number(term: float | str | None) -> float:
    return term if isinstance(term, float) else 0.0


def rank_for_production(
    options: Sequence[ProductionOption], limit: int | None = None
) -> tuple[list[Ranked], dict[int, str]]:
    """(candidates, refused): by composite - 1.645 SE, highest first, ties to the newest step.

    Copies that are proven (p_ok at least .9) come before all others, which are told to be verified first. A composite
    without an error counts with an error of 0 and says so; one that is missing is refused, never taken as low.
    """
    refused = {each.id: NO_FIGURE for each in options if each.composite is None}
    kept = [each for each in options if each.composite is not None]
    bounds = {each.id: _lower_bound(each) for each in kept}
    kept.sort(key=lambda each: (not _is_proven(each), -bounds[each.id], -each.step, -each.id))
    ranked = []
    for rank, each in enumerate(kept[:limit], 1):
        ranked.append(Ranked(each.id, rank, production_terms(each), _production_told(each, bounds, kept[0], rank)))
    return ranked, refused


def known_good_alone(option: ProductionOption) -> Ranked:
    """The last known good, where no candidate has a figure: what is known of it is that it is from before the fall."""
    told = "It has no comparable score to be ranked by: it stands here alone, as the last known good"
    chance = p_ok(option.evidence, option.passed, option.failed)
    reasons = (told, *([_not_proven(option)] if chance < LEAST_P_OK_PRODUCTION else ()))
    return Ranked(option.id, 1, production_terms(option), reasons)


def production_terms(option: ProductionOption) -> dict[str, float | str | None]:
    return {
        "lower_bound": None if option.composite is None else _lower_bound(option),
        "composite": option.composite,
        "composite_stderr": option.composite_stderr,
        "p_ok": p_ok(option.evidence, option.passed, option.failed),
        "evidence": option.evidence,
        **_drills(option),
        "restore_minutes": option.restore_minutes,
    }


def _drills(option: TrainingOption | ProductionOption) -> dict[str, float]:
    return {"drills_passed": float(option.passed), "drills_failed": float(option.failed)}


def surest(
    ids: Integers, steps: Integers, values: Floats, errors: Floats, chances: Floats, limit: int | None
) -> Integers:
    """The places of the first `limit` in the order of `rank_for_production`, of figures as columns (NaN: unknown)."""
    known = np.flatnonzero(~np.isnan(values))
    bound = values[known] - Z_95 * np.nan_to_num(errors[known], nan=0.0)
    order = np.lexsort((-ids[known], -steps[known], -bound, chances[known] < LEAST_P_OK_PRODUCTION))
    return np.asarray(known[order[:limit]])


def _lower_bound(option: ProductionOption) -> float:
    return (option.composite or 0.0) - Z_95 * (option.composite_stderr or 0.0)


def _is_proven(option: ProductionOption) -> bool:
    return p_ok(option.evidence, option.passed, option.failed) >= LEAST_P_OK_PRODUCTION


def _not_proven(option: ProductionOption) -> str:
    return f"Not proven. {_chance_told(production_terms(option))}. Verify the copy or drill it before it serves"


def _production_told(
    option: ProductionOption, bounds: Mapping[int, float], best: ProductionOption, rank: int
) -> tuple[str, ...]:
    composite, error = f"{100 * (option.composite or 0.0):.1f}", option.composite_stderr
    if error is None:
        told = [f"Its score is {composite} points, whose error is unknown and counted as 0"]
    else:
        least = f"{100 * bounds[option.id]:.1f} points or more with a confidence of 95%"
        told = [f"{least}: its score is {composite} ± {100 * error:.1f}"]
    chance = p_ok(option.evidence, option.passed, option.failed)
    if chance < LEAST_P_OK_PRODUCTION:
        told.append(_not_proven(option))
    return *told, _production_change(option, bounds, best, rank)


def _production_change(option: ProductionOption, bounds: Mapping[int, float], best: ProductionOption, rank: int) -> str:
    """A sentence: which evidence would put this option first, or take the first place from it."""
    if rank == 1:
        return "A second evaluation that scores lower, or a failed drill, would take the first place from it"
    gap = bounds[best.id] - bounds[option.id]
    if _is_proven(best) and not _is_proven(option) and gap <= 0:
        return "A verified copy would put it first"
    if (option.composite or 0.0) > (best.composite or 0.0):
        return "More evaluation samples would put it first if its score holds, since only its error is larger"
    return f"It needs {100 * gap:.1f} points more to be first"
