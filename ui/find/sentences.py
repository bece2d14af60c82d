"""The sentence that answers a search in words: how many meet it, who comes first, what keeps the nearest out."""

from dataclasses import replace

from registry.evals.catalogue import catalogue
from registry.overview.briefs import Brief
from registry.search.answers import Evidence, SearchAnswer
from registry.search.conditions import (
    STRONG,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
)
from registry.search.words import VERY
from registry.wording import listed, was
from ui import filters
from ui.contexts import Answer
from ui.find.found import SIGNS, chip


def answer_of(found: SearchAnswer, limit: int) -> Answer:
    """One sentence: how many meet it, and which is best; or how near the nearest come. Then what it left out."""
    said, words = _answer_of(found, limit), found.interpretation.unparsed
    if not words:
        return said
    named = filters.middle(listed([f"‘{word}’" for word in words]), 120)
    return replace(said, detail=f"Not understood and left out: {named}.")


def _answer_of(found: SearchAnswer, limit: int) -> Answer:
    asked = listed([_phrase(condition) for condition in found.interpretation.conditions])
    if not found.results:
        return Answer(f"No checkpoint could be judged {asked}.", "warn")
    best = found.results[0].checkpoint
    name = f"{filters.middle(best.run.name, 60)} at step {filters.grouped(best.step)}"
    met = sum(all(each.met for each in result.evidence) for result in found.results)
    if not found.strict and met and found.interpretation.at_most:
        few = f"{met} of these {len(found.results)} {'is' if met == 1 else 'are'} {asked}"
        return Answer(f"{few}; {name} comes first.", "warn")
    if not found.strict:
        return Answer(_first_of(found, name) or f"{_nobody(found, asked)}; {name} comes nearest.", "warn")
    if len(found.results) == 1:
        return Answer(f"One checkpoint is {asked}: {name}.", "good")
    if len(found.results) == found.interpretation.at_most:
        return Answer(f"These are the first {len(found.results)} that are {asked}; {name} comes first.", "good")
    amount = f"{len(found.results)} or more" if len(found.results) == limit else filters.grouped(len(found.results))
    return Answer(f"{amount} checkpoints are {asked}; {name} comes first.", "good")


def _first_of(found: SearchAnswer, name: str) -> str | None:
    """Of a question for one thing: who comes first at it, where 'the best' or 'the worst' was asked for, or where only
    the scores themselves could be compared. None where the nearest are all that can be said."""
    conditions = found.interpretation.conditions
    scored = [each for each in conditions if not isinstance(each, FieldCondition)]
    if len(scored) != 1 or not found.results[0].evidence:
        return None
    whose = "".join(f" {_phrase(each)}" for each in conditions if isinstance(each, FieldCondition))
    match scored[0], found.results[0].evidence[0]:
        case CapabilityCondition(capability, relation, _), Evidence(basis="absolute", composite=float(composite)):
            amount = f"with a normalised score of {filters.number(composite, 3)}"
            few = f"Too few checkpoints are scored for percentiles of {_title(capability)}"
            return f"{few}: the {relation}est{whose} is {name}, {amount}."
        case CapabilityCondition(capability, relation, asked), Evidence(percentile=float(stands)) if _is_far(asked):
            there = f"at the {filters.ordinal(stands)} percentile"
            return f"The {relation}est at {_title(capability)}{whose} is {name}, {there}."
        case BenchmarkCondition(benchmark, ">" | "<" as sign, asked), Evidence(benchmarks=(one,)) if one.value == asked:
            end = "highest" if sign == ">" else "lowest"
            return f"The {end} {benchmark}{whose} is {filters.number(asked)}: {name}."
    return None


def _is_far(threshold: float) -> bool:
    """Whether 'best' or 'very' was said, or the like of it."""
    return threshold >= VERY or threshold <= 1 - VERY + 1e-9


def _nobody(found: SearchAnswer, asked: str) -> str:
    """Who was looked at: not those projects that measured it in another way, which are named below."""
    unasked = {name for several in found.interpretation.left_out.values() for each in several for name in each.projects}
    evidence = [each for each in found.results[0].evidence if isinstance(each.condition, CapabilityCondition)]
    if any(each.basis == "absolute" and not each.met for each in evidence):
        return f"By their normalised scores, as too few have any for percentiles, no checkpoint is {asked}"
    if not unasked:
        return f"No checkpoint is {asked}"
    named = filters.middle(listed(sorted(unasked)), 60)
    return f"{named} measured it otherwise and {was(len(unasked))} not asked; of the others no checkpoint is {asked}"


def like_answer(found: SearchAnswer, brief: Brief) -> Answer:
    """One sentence: which checkpoint is most like the given one."""
    given = f"{filters.middle(brief.run_name, 60)} at step {filters.grouped(brief.step)}"
    if not found.results:
        return Answer(f"Nothing could be compared with {given}.", "warn", " ".join(found.population.warnings))
    best = found.results[0].checkpoint
    name = f"{filters.middle(best.run.name, 60)} at step {filters.grouped(best.step)}"
    return Answer(f"{name} is most like {given}.", "good")


def _title(capability: str) -> str:
    titles = {each.name: each.title for each in catalogue().capabilities}
    return titles.get(capability, capability).lower()


def _phrase(condition: Condition) -> str:
    match condition:
        case CapabilityCondition(name, "like", threshold):
            return f"at the {filters.ordinal(threshold)} percentile of {_title(name)}"
        case CapabilityCondition(name, relation, _):
            return f"{relation} at {_title(name)}"
        case StandingCondition(name, relation, _):
            return f"{relation} at {name}"
        case BenchmarkCondition(name, relation, threshold):
            return f"at {name} {SIGNS.get(relation, relation)} {filters.number(threshold)}"
        case FieldCondition("project", "=", value):
            return f"in project {value}"
        case FieldCondition(name, relation, value):
            shown = filters.grouped(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
            return f"of {name} {SIGNS.get(relation, relation)} {shown}"


def loosen_of(found: SearchAnswer) -> str:
    """Which condition keeps the nearest out, and how far it would have to give."""
    if found.strict or not found.results:
        return ""
    said = []
    for each in found.results[0].evidence:
        if each.met:
            continue
        condition = each.condition
        if isinstance(condition, CapabilityCondition) and each.basis == "absolute" and each.composite is not None:
            bound = "at least" if condition.relation == STRONG else "at most"
            value = f"the nearest has a normalised score of {filters.number(each.composite, 3)}"
            said.append(f"{condition.capability}: {value}, {bound} {filters.number(condition.threshold)} was asked")
        elif isinstance(condition, CapabilityCondition) and each.percentile is not None:
            bound = "at least" if condition.relation == STRONG else "at most"
            asked = f"{bound} the {filters.ordinal(condition.threshold)} was asked"
            said.append(
                f"{condition.capability}: the nearest has the {filters.ordinal(each.percentile)} percentile, {asked}"
            )
        elif isinstance(condition, BenchmarkCondition) and each.benchmarks:
            if each.benchmarks[0].value == condition.threshold:
                continue  # the best of few, whom 'best' asks for
            value = filters.number(each.benchmarks[0].value)
            said.append(f"{condition.benchmark}: the nearest has {value}, {chip(condition)} was asked")
    return f"Loosen {'; '.join(said)}." if said else ""
