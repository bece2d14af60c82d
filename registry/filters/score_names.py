"""How a score is named: `scores.<benchmark>.<metric>.<filter>`, and which metrics a shorter name leaves open."""

from registry.filters.print import field_to_text
from registry.filters.syntax import Field

NO_NAME = "none"  # how a filter writes the empty metric or filter

# (metric, filter) of a benchmark -> (project id, score_metric id), one for each project in which it occurs.
Pairs = dict[tuple[str, str], list[tuple[int, int]]]


def full_name(benchmark: str, metric: str, filter: str) -> str:
    """The whole name, as a filter would write it."""
    return field_to_text(Field(("scores", benchmark, metric or NO_NAME, filter or NO_NAME)))


def short_name(text: str) -> str:
    """The whole name without a filter that is empty: what a person writes. A bare name is `scores.gsm8k.none`."""
    return text.removesuffix(f".{NO_NAME}")


def is_bare(text: str) -> bool:
    """Whether the whole name is one of a score that was recorded without a metric."""
    return text.endswith(f".{NO_NAME}.{NO_NAME}")


def pairs_named(pairs: Pairs, rest: tuple[str, ...]) -> Pairs:
    """Those whose metric and filter are the ones that the name says, as far as it says any."""
    wanted = tuple("" if part == NO_NAME else part for part in rest)
    return {pair: series for pair, series in pairs.items() if pair[: len(wanted)] == wanted}
