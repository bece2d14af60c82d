"""What a log says at one step."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_LINE = 65_536
MAX_STEP = 2**63 - 1
MAX_NAME = 128
# How trainers call what a registration calls otherwise.
_LOSSES = (
    *("loss", "lm_loss", "train_loss", "global_avg_loss", "loss_metrics/global_avg_loss", "train/loss", "loss/train"),
    *("loss/train/total", "metrics/train/loss", "language/loss"),
)
_KNOWN = {
    **dict.fromkeys(_LOSSES, "loss"),
    **dict.fromkeys(("lr", "learning_rate", "train/learning_rate", "lr-adamw/group0", "train/lr"), "lr"),
    **dict.fromkeys(("tokens_seen", "consumed_tokens", "num_input_tokens_seen", "total_tokens"), "tokens_seen"),
}
_UNIT = re.compile(r"\s*\([^)]*\)\s*$")
_GAP = re.compile(r"[\s]+")


@dataclass(frozen=True)
class Point:
    """Metrics of one step; NaN and infinity are values."""

    step: int
    values: Mapping[str, float]


def known_name(name: str) -> str:
    """`lm loss` -> `loss`; a unit in parentheses is left out, blanks become underscores."""
    plain = _GAP.sub("_", _UNIT.sub("", name.strip()))[:MAX_NAME]
    return _KNOWN.get(plain.lower(), plain)


def number(text: str) -> float | None:
    """A figure as logs write it: `2.46E+00`, `1,200`, `nan`, `-inf`."""
    try:
        return float(text.strip().replace(",", ""))
    except ValueError:
        return None
