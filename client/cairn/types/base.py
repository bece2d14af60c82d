"""What every answer has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Base: `raw` is the answer as it came, with fields that this client may not know yet."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
