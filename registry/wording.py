"""Counts and lists in sentences: 1 checkpoint, 3 checkpoints; math, code and chat."""

from collections.abc import Iterable


def counted(amount: int, noun: str, many: str = "") -> str:
    """The amount with its noun; `many` where the plural is not made by an s."""
    return f"{amount} {noun if amount == 1 else many or f'{noun}s'}"


def was(amount: int) -> str:
    return "was" if amount == 1 else "were"


def listed(names: Iterable[str], most: int | None = None) -> str:
    """One, two and three. Of more than `most`, the rest as a number: one, two and 5 more."""
    shown = list(names)
    if most is not None and len(shown) > most:
        shown[most:] = [f"{len(shown) - most} more"]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
