"""What a question was read as."""

from dataclasses import dataclass
from typing import Final

from registry.search.conditions import Condition

MATCH: Final = "match"  # the best first
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
LOWEST_LOSS: Final = "lowest_loss"  # of those that have a finite one
SMALLEST: Final = "smallest"  # by the parameters of the model; of equal ones the best match
ORDERS: Final = (MATCH, NEWEST, OLDEST, LOWEST_LOSS, SMALLEST)


@dataclass(frozen=True, slots=True)
class Reading:
    """The conditions in the order of the question, its words that were not understood, and what is to come first.

    `at_most`: how many results the question asks for, as 'top 3' does; None where it does not say.
    """

    conditions: tuple[Condition, ...]
    unparsed: tuple[str, ...]
    order: str = MATCH
    at_most: int | None = None
