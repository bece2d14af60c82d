"""Counts in sentences: 1 checkpoint, 3 checkpoints."""


def counted(amount: int, noun: str, many: str = "") -> str:
    """The amount with its noun; `many` where the plural is not made by an s."""
    return f"{amount} {noun if amount == 1 else many or f'{noun}s'}"


def was(amount: int) -> str:
    return "was" if amount == 1 else "were"
