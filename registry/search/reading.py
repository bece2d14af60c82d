"""What a question was read as."""

from dataclasses import dataclass
from typing import Final

from registry.search.conditions import Condition

MATCH: Final = "match"  # the best first
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
LOWEST_LOSS: Final = "lowest_loss"  # of those that have a finite one
ORDERS: Final = (MATCH, NEWEST, OLDEST, LOWEST_LOSS)


@dataclass(frozen=True, slots=True)
class Reading:
    """The conditions in the order of the question, its words that were not understood, and what is to come first."""

    conditions: tuple[Condition, ...]
    unparsed: tuple[str, ...]
    order: str = MATCH
