"""The rows of a project's benchmark table: how each reads, what looks wrong, what is proposed."""

from collections.abc import Sequence
from typing import Final

from registry.evals.catalogue import catalogue
from registry.evals.table.listing import BenchmarkEntry
from ui import filters
from ui.contexts import Answer, Link
from ui.contexts.benchmarks import BenchmarkRow, BenchmarksContext
from ui.links import address

NONE: Final = "(none)"  # how the form says that a benchmark is in no capability


def answer_of(found: Sequence[BenchmarkEntry], unmapped: Sequence[BenchmarkEntry]) -> Answer:
    flagged = sum(1 for each in found if each.flags)
    if unmapped:
        amount = filters.plural(len(unmapped), "benchmark")
        verb = "measures" if len(unmapped) == 1 else "measure"
        return Answer(f"{amount} {verb} nothing that searches know: say which capability.", "warn")
    if flagged:
        return Answer(f"{filters.plural(flagged, 'benchmark')} with figures that look wrong.", "warn")
    if not found:
        return Answer("No result is recorded yet; the shipped table will read the first ones.", "unknown")
    return Answer("Every benchmark with results here has its place.", "good")


def row_of(each: BenchmarkEntry, project: str) -> BenchmarkRow:
    proposal = each.proposal
    accept = None
    if proposal is not None:
        fields = {"same_as": proposal.same_as} if proposal.same_as else {"scale": proposal.scale}
        accept = Link("look at it", address("/benchmarks/edit", project=project, name=each.name, **fields))
    lows = [metric.low for metric in each.occurring if metric.low is not None]
    highs = [metric.high for metric in each.occurring if metric.high is not None]
    return BenchmarkRow(
        name=each.name,
        href=address("/benchmarks/edit", project=project, name=each.name),
        capability=title_of(each.capability),
        reads=reads_of(each),
        metrics=", ".join(metric_words(metric.metric, metric.filter) for metric in each.occurring[:3])
        + (f" and {len(each.occurring) - 3} more" if len(each.occurring) > 3 else ""),
        range=f"{filters.number(min(lows), 3)} to {filters.number(max(highs), 3)}" if lows else filters.MISSING,
        own=", ".join(each.own),
        flags=each.flags,
        proposal=proposal.reason if proposal is not None else "",
        accept=accept,
    )


def metric_words(metric: str, filter: str) -> str:
    return ",".join(part for part in (metric, filter) if part) or "(no metric)"


def title_of(capability: str | None) -> str:
    titles = {each.name: each.title for each in catalogue().capabilities}
    return titles.get(capability or "", filters.MISSING)


def reads_of(each: BenchmarkEntry) -> str:
    chance = "" if each.chance is None else f", guessing {filters.number(each.chance, 3)}"
    return (
        f"{each.direction} is better, {each.scale}{chance}" if each.direction != "target" else f"target, {each.scale}"
    )


def no_project() -> BenchmarksContext:
    return BenchmarksContext("", (), Answer("There is no project yet.", "unknown"), (), (), (), (), None)
