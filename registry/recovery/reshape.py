"""Whether a checkpoint that was saved in one layout may be loaded in another: no, yes, or only after a drill.

Only what formats are documented to refuse excludes a candidate. Everything else that changes is 'needs a drill':
unknown is never yes.
"""

import json
from dataclasses import dataclass
from typing import Final

from registry.models import Layout
from registry.snapshots import LayoutSpec

DEGREES: Final = ("world_size", "tp", "pp", "dp", "cp", "ep")
# Word in the format or sharding that names how the optimizer is split, and why another TP or PP is refused.
REFUSED: Final = (
    ("dp_reshardable", "Megatron's dp_reshardable optimizer state cannot change TP or PP"),
    ("dp_zero_gather_scatter", "Megatron's dp_zero_gather_scatter optimizer state cannot change TP or PP"),
    ("zero", "native ZeRO checkpoints cannot change TP or PP; convert to Universal first"),
    ("deepspeed", "native ZeRO checkpoints cannot change TP or PP; convert to Universal first"),
)


@dataclass(frozen=True, slots=True)
class Fit:
    """`feasible` False excludes; `words` says what must be done or why it cannot be; '' where nothing changes."""

    feasible: bool
    words: str


def fit(saved: Layout | None, format_name: str | None, target: LayoutSpec, *, weights_only: bool) -> Fit:
    """How a checkpoint fits the layout that is there now; degrees that the target leaves out are not asked for."""
    asked = {name: getattr(target, name) for name in DEGREES if getattr(target, name) is not None}
    if not asked:
        return Fit(True, "")
    known = {name: getattr(saved, name, None) for name in asked}
    changed = [name for name in asked if known[name] != asked[name]]
    if not changed:
        return Fit(True, "")
    told = ", ".join(
        f"{name} {known[name] if known[name] is not None else 'unknown'} to {asked[name]}" for name in changed
    )
    moved = [name for name in changed if name in ("tp", "pp") and known[name] is not None]
    refusal = _refusal(saved, format_name)
    if moved and refusal and not weights_only:
        return Fit(False, f"{refusal} ({told})")
    return Fit(True, f"the layout changes ({told}): drill it before relying on it")


def _refusal(saved: Layout | None, format_name: str | None) -> str:
    extra = json.loads(saved.extra) if saved is not None and saved.extra else {}
    said = (format_name, saved.sharding if saved is not None else None, extra.get("distrib_optim_sharding_type"))
    words = " ".join(str(each).lower() for each in said if each)
    if "universal" in words:
        return ""
    return next((why for word, why in REFUSED if word in words), "")
