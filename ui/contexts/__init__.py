"""One frozen dataclass per page: all that its template may use. Values are plain; templates only arrange them.

Here is what every page shares; what one page alone shows is in the module of its name.
"""

from ui.contexts.shared import (
    Answer,
    CheckpointRef,
    Chip,
    Command,
    Fact,
    Link,
    Plot,
    Shell,
)

__all__ = [
    "Answer",
    "CheckpointRef",
    "Chip",
    "Command",
    "Fact",
    "Link",
    "Plot",
    "Shell",
]
