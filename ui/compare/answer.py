"""A comparison's first sentence: what fell, by how much, and what to look at first."""

import math
from collections.abc import Sequence

from registry.provenance.compare import ANOTHER_VERSION, Comparison
from registry.provenance.composites import CapabilityComparison
from registry.provenance.model_size import without_model
from registry.provenance.score_changes import ScoreChanges, ScoreComparison
from registry.provenance.suspects import MODEL_SIZE, standing_out
from registry.wording import listed
from ui import filters
from ui.compare.scores import title_of
from ui.contexts import Answer

WORSE = ("regressed", "suspected")
NAMED = 3  # of what moved, and of what changed together


def compare_answer(found: Comparison | None) -> Answer:
    """What a person wants to know first: what fell, by how much, and what changed most."""
    if found is None:
        return Answer("Two checkpoints side by side: which scores really changed, and what else did.")
    scores = found.scores
    fell, single, maybe = _fallen(scores)
    rose = [each for each in scores.capabilities if each.verdict == "improved"]
    if fell:
        return Answer(f"{_moved(fell, 'fell')}; {_cause(found)}.", "bad", _also(rose, "rose"))
    if single:
        names = listed((each.benchmark for each in single), NAMED)
        return Answer(
            f"{names} got worse, though no capability did as a whole; {_cause(found)}.", "bad", _also(rose, "rose")
        )
    if maybe:
        return Answer(f"{_moved(maybe, 'may have fallen')}; {_cause(found)}.", "warn", _also(rose, "rose"))
    if rose:
        return Answer(f"{_moved(rose, 'rose')}; nothing fell beyond its uncertainty.", "good", _by_chance(scores))
    if found.lineage.same_weights:
        return _same_weights(found)
    if not scores.scores:
        return Answer(
            "The scores cannot be compared: no benchmark was evaluated on both.", "unknown", _cause_alone(found)
        )
    if all(each.verdict == "not_comparable" for each in scores.scores):
        return Answer("The scores cannot be compared: they were evaluated in different ways.", "unknown")
    noise = _by_chance(scores)
    return Answer("No score changed beyond its uncertainty.", "plain", f"{noise} {_cause_alone(found)}".strip())


Fallen = tuple[list[CapabilityComparison], list[ScoreComparison], list[CapabilityComparison]]


def _fallen(scores: ScoreChanges) -> Fallen:
    """Capabilities that fell, single benchmarks that did, and capabilities that may have."""
    by_verdict = {name: [each for each in scores.capabilities if each.verdict == name] for name in WORSE}
    single = [each for each in scores.scores if each.verdict == "regressed"]
    return by_verdict["regressed"], single, by_verdict["suspected"]


def speaks_of_a_fall(scores: ScoreChanges) -> bool:
    """Whether the first sentence says that something fell or may have: only then is a cause of it looked for.

    A single benchmark that is suspected is among many what chance makes.
    """
    return any(_fallen(scores))


def _by_chance(scores: ScoreChanges) -> str:
    """Of suspected benchmarks that the first sentence does not call fallen, why it does not."""
    amount = sum(each.verdict == "suspected" for each in scores.scores)
    if not amount:
        return ""
    lower = f"{filters.plural(amount, 'benchmark')} of {filters.grouped(len(scores.scores))}"
    return f"{lower} {'is' if amount == 1 else 'are'} suspected below: by chance alone some would be."


def scores_answer(scores: ScoreChanges) -> Answer:
    """What the one would gain and lose in scores against the other, before anything is done."""
    by_verdict: dict[str, list[CapabilityComparison]] = {}
    for each in scores.capabilities:
        by_verdict.setdefault(each.verdict, []).append(each)
    fall, maybe = by_verdict.get("regressed", []), by_verdict.get("suspected", [])
    rise = _also(by_verdict.get("improved", []), "rises")
    single = [each.benchmark for each in scores.scores if each.verdict == "regressed"]
    if fall:
        return Answer(f"{_moved(fall, 'falls')}.", "bad", rise)
    if single:
        verb = "gets" if len(single) == 1 else "get"
        return Answer(f"{listed(single, NAMED)} {verb} worse, though no capability does as a whole.", "bad", rise)
    if maybe:
        return Answer(f"{_moved(maybe, 'may fall')}.", "warn", rise)
    if rise:
        return Answer(f"{rise.removesuffix('.')}; nothing falls beyond its uncertainty.", "good")
    if not scores.scores:
        return Answer("How the scores differ is unknown: no benchmark was evaluated on both.", "unknown")
    if all(each.verdict == "not_comparable" for each in scores.scores):
        return Answer("How the scores differ is unknown: they were evaluated in different ways.", "unknown")
    return Answer("No score changes beyond its uncertainty.", "plain")


def _same_weights(found: Comparison) -> Answer:
    differ = sum(each.verdict == "inconclusive" for each in found.scores.scores)
    if not differ:
        return Answer("The two have the same weights: nothing got better or worse.", "plain")
    named = filters.plural(differ, "evaluation")
    return Answer(
        f"The two have the same weights, but {named} {'differs' if differ == 1 else 'differ'}.",
        "warn",
        "That is evaluation noise, or they were evaluated in another way.",
    )


def _moved(rows: Sequence[CapabilityComparison], verb: str) -> str:
    parts = []
    for place, each in enumerate(sorted(rows, key=lambda row: row.delta / (row.stderr or math.inf))[:NAMED]):
        name = title_of(each.capability) if place == 0 else title_of(each.capability).lower()
        amount = filters.in_points(each.delta, each.stderr, signed=False)
        if each.capability == "lm":  # perplexities are compared as logarithms, which have no points
            amount = f"{filters.number(abs(each.delta), 2)} in −ln of perplexity"
        parts.append(f"{name} {verb} {amount}" if place == 0 else f"{name} {amount}")
    return listed(parts)


def _also(rows: Sequence[CapabilityComparison], verb: str) -> str:
    return f"{_moved(rows, verb)}." if rows else ""


def _cause(found: Comparison) -> str:
    """What to look at first: the surest suspect, where one stands out."""
    first = next(iter(standing_out(found.suspects)), None)
    if first is None:
        return "no change stands out" if found.suspects else "no recorded change explains it"
    named = filters.middle(listed(first.changes, NAMED), 80)
    if first.changes == ("data_version",):
        data = found.data_changes
        return f"another data version ({data.baseline} → {data.candidate}) is the first suspect"
    if first.changes[0] == MODEL_SIZE and first.tested is None:
        return f"{first.reasons[0]}, which is the first suspect"
    if all(change.startswith("lineage.") for change in first.changes):
        return found.lineage_why
    if all(change.startswith("data.") for change in first.changes):
        return f"the data mix changed most ({named})"
    return f"{named} {'is the first suspect' if len(first.changes) == 1 else 'changed together: the first suspects'}"


def _cause_alone(found: Comparison) -> str:
    config = without_model(found.config_changes)
    changes = sum(each.kind != "inert" and each.not_recorded_on is None for each in config)
    parts = [f"{filters.plural(changes, 'config value')} {'differs' if changes == 1 else 'differ'}"]
    if found.config_why:
        parts = [*(parts if all(found.config_known) else []), found.config_why]
    data = found.data_changes
    if data.mix.total_variation is not None:
        of = "tokens seen came from other sources" if data.by_lineage else "data mix moved"
        parts.append(f"{filters.percent(data.mix.total_variation)} of the {of}")
    elif data.mix.why.startswith(ANOTHER_VERSION):
        parts.append(data.mix.why)
    else:
        parts.append("the data mix is not known")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."
