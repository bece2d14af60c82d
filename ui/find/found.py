"""The answer of a search in words: how it was understood, what proves each result, whom it leaves out."""

import json
import shlex
from collections.abc import Mapping, Sequence

from registry.checkpoints.rows import CheckpointIdentity
from registry.filters.left_out import LeftOut
from registry.filters.print import field_to_text, to_text
from registry.filters.score_names import is_bare, short_name
from registry.filters.syntax import Field
from registry.ids import to_text as id_text
from registry.overview.briefs import Brief
from registry.search.answers import BenchmarkEvidence, Evidence, SearchAnswer, SearchResult
from registry.search.conditions import (
    STRONG,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
)
from registry.wording import listed
from ui import filters
from ui.charts import colour_of
from ui.contexts import Chip, Link
from ui.contexts.find import EvidenceRow, FoundRow
from ui.links import address
from ui.refs import ref_of

SHOWN_PROJECTS = 5  # that a query leaves out
UNNAMED = ", recorded without a metric"
SHOWN_BENCHMARKS = 4  # of each capability; the title names all
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠"}


def chips_of(conditions: Sequence[Condition]) -> tuple[Chip, ...]:
    """Each condition as it was understood, with the threshold that the words mean."""
    return tuple(Chip(chip(condition)) for condition in conditions)


def chip(condition: Condition) -> str:
    match condition:
        case CapabilityCondition(name, "like", threshold):
            return f"{name}: about the {filters.ordinal(threshold)} percentile"
        case CapabilityCondition(name, relation, threshold) | StandingCondition(name, relation, threshold):
            bound = "at least" if relation == STRONG else "at most"
            return f"{name} {relation}: {bound} the {filters.ordinal(threshold)} percentile"
        case BenchmarkCondition(name, relation, threshold, metric, filter):
            named = ".".join(each for each in (name, metric, filter) if each)
            return f"{named} {SIGNS.get(relation, relation)} {filters.number(threshold)}"
        case FieldCondition(name, relation, value):
            return f"{name} {SIGNS.get(relation, relation)} {value}"


def as_filter(conditions: Sequence[Condition], project: str | None) -> Link | None:
    """The same question in the filter language, where it can be asked there, in the order of its capabilities."""
    terms, order = [], []
    for condition in conditions:
        match condition:
            case CapabilityCondition(name, relation, threshold):
                terms.append(f"capabilities.{name} {'>=' if relation == STRONG else '<='} {threshold!r}")
                order.append(f"capabilities.{name}{' desc' if relation == STRONG else ''}")
            case BenchmarkCondition(name, relation, threshold, metric, filter):
                names = [each for each in (name, metric, filter) if each is not None]
                terms.append(f"{field_to_text(Field(('scores', *names)))} {relation} {threshold!r}")
            case FieldCondition("project", "=", str(name)) if project in (None, name):
                project = name  # chosen rather than filtered by, so that percentiles are among the same checkpoints
            case FieldCondition():
                terms.append(to_text(condition.node()))
            case StandingCondition():
                return None
    if not terms:
        return None
    text = " and ".join([*terms, "not superseded"])
    return Link(
        "the same as a filter", address("/find", mode="filter", filter=text, order_by=", ".join(order), project=project)
    )


def rows_of(results: Sequence[SearchResult], briefs: Mapping[int, Brief]) -> tuple[FoundRow, ...]:
    rows = []
    for place, result in enumerate(results):
        own, first = id_text(result.checkpoint.id), id_text(results[0].checkpoint.id)
        compare = address("/compare", baseline=first, candidate=own) if place else None
        evidence = tuple(evidence_row(each) for each in result.evidence)
        score = result.score if result.evidence and result.score > 0 else None
        colour = colour_of(id_text(result.checkpoint.run.id))
        like = address("/find", like=own) if evidence else None
        ref = ref_of(briefs[result.checkpoint.id])
        rows.append(FoundRow(ref, colour, score, evidence, compare, like, child_command(result.checkpoint)))
    return tuple(rows)


def child_command(checkpoint: CheckpointIdentity) -> str:
    """How to start a run of one's own from a checkpoint: its lineage is recorded with the first attempt."""
    own = id_text(checkpoint.id)
    project = json.dumps(checkpoint.project)
    python = (
        f'from cairn import Client; c = Client(); r = c.create_run({project}, "NAME"); '
        f'c.start_attempt(r, key="first", resumed_from="{own}")'
    )
    return f"cairn fetch {own} ./start\npython -c {shlex.quote(python)}"


def evidence_row(each: Evidence) -> EvidenceRow:
    condition = each.condition
    name = condition.capability if isinstance(condition, CapabilityCondition) else chip(condition)
    if not each.benchmarks:
        return EvidenceRow(name, None, "not evaluated: unknown, not weak")
    every = ", ".join(_benchmark(one) for one in each.benchmarks)
    if isinstance(condition, BenchmarkCondition):
        return EvidenceRow(name, each.percentile, every)
    few = ", ".join(_briefly(one) for one in each.benchmarks[:SHOWN_BENCHMARKS])
    more = len(each.benchmarks) - SHOWN_BENCHMARKS
    shown = f"{few} and {more} more" if more > 0 else few
    covered = f"{filters.percent(each.coverage)} of the benchmarks in use"
    if each.basis == "absolute":
        composite = f"normalised score {filters.number(each.composite, 3)}; too few others for a percentile"
        return EvidenceRow(name, None, f"{composite}; {shown}; {covered}", every)
    return EvidenceRow(name, each.percentile, f"{shown}; {covered}", every)


def _briefly(one: BenchmarkEvidence) -> str:
    return f"{one.benchmark} {filters.number(one.value, 3)}{' (of a lossless copy)' if one.via else ''}"


def _benchmark(one: BenchmarkEvidence) -> str:
    name = ".".join(filter(None, (one.benchmark, one.metric, one.filter)))
    notes = [f"mean of {one.parts} parts"] if one.parts else []
    notes += ["of a lossless copy"] if one.via else []
    return f"{name} {filters.number(one.value)}" + (f" ({', '.join(notes)})" if notes else "")


def population_of(found: SearchAnswer) -> str:
    """Among how many the percentiles are, and what to know about them."""
    population = found.population
    parts = [
        f"{each.capability} among {filters.plural(each.size, 'checkpoint')} of {filters.plural(each.runs, 'run')}"
        for each in population.capabilities
        if each.size
    ]
    named = f"Ranked {listed(parts)}." if parts else f"{filters.plural(population.size, 'checkpoint')} looked at."
    size = " Only models of the size that was asked for." if population.of_size else ""
    unevaluated = _unevaluated(found) if found.incomplete else []
    told = [text for text in population.warnings if not any(text.startswith(each) for each in unevaluated)]
    return " ".join([named + size, *told])


def _unevaluated(found: SearchAnswer) -> list[str]:
    """How the warnings begin that say that nobody was evaluated on a capability."""
    none = [each.capability for each in found.population.capabilities if each.size == 0]
    return [f"No checkpoint was evaluated on {name}:" for name in none]


def incomplete_of(found: SearchAnswer, limit: int) -> str:
    """One sentence on those that lack a score for a condition: which, how many, and that it is unknown, not weak."""
    if not found.incomplete:
        return ""
    none = [each.capability for each in found.population.capabilities if each.size == 0]
    amount = f"{limit} or more" if len(found.incomplete) >= limit else filters.grouped(len(found.incomplete))
    one = len(found.incomplete) == 1
    if none:
        return (
            f"No checkpoint was evaluated on {listed(none)}, which is unknown, not weak; {amount} "
            f"{'meets' if one else 'meet'} every other condition."
        )
    return (
        f"{amount} {'meets' if one else 'meet'} every condition that could be checked and "
        f"{'lacks' if one else 'lack'} a score for the rest: unknown, not weak."
    )


def resolved_of(resolved: Mapping[str, str | None], left_out: Mapping[str, Sequence[LeftOut]]) -> tuple[str, ...]:
    """Which score each short name was read as, and which projects have it as another one only."""
    read_as = [
        f"{name} is read as {short_name(text)}{UNNAMED if is_bare(text) else ''}."
        if text
        else f"No score is called {name}."
        for name, text in resolved.items()
        if text is None or short_name(text) != name
    ]
    return (*read_as, *(_without(each) for several in left_out.values() for each in several))


def _without(each: LeftOut) -> str:
    shown = listed(each.projects, SHOWN_PROJECTS)
    one, scores = len(each.projects) == 1, listed([short_name(text) for text in each.scores])
    return f"{shown} {'has' if one else 'have'} {scores} only and {'is' if one else 'are'} left out."
