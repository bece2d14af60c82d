"""Which pieces a dictionary saved by hand holds: by what is in it first, then by what its keys are called."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints.shapes import Finding, PositionEvidence, absent, present, unknown
from cairn.formats.checkpoints.steps import StepClaim, claim_of
from cairn.formats.checkpoints.torch_files import Stored
from cairn.formats.checkpoints.torch_weights import has_moments, is_optimizer, is_state_dict, named_tensors

_WEIGHTS = re.compile(r"(model|module|net|network|weights|params|parameters|generator|student|state_dict|ema)", re.I)
_RANDOM = re.compile(r"(^|[_.])rng|random[_.]?state|random_seed|manual_seed|generator_state", re.I)
_LOADER = re.compile(r"(data_?)?(loader|iterator|sampler)|data_?state|dataset_state", re.I)
_CONSUMED = re.compile(
    r"(consumed|seen|processed)_?(train_)?_?(samples|tokens|batches|examples)|(samples|tokens)_seen", re.I
)
_STEPS = ("global_step", "step", "iteration", "iter", "iter_num", "global_steps", "train_step", "num_updates", "steps")
# What torch's generators give: 5056 bytes for the CPU's, 16 for a GPU's.
_GENERATOR_BYTES = (5056, 816)


@dataclass
class Saved:
    """The keys of one file by what they are; a whole file may be one piece (`whole`)."""

    weights: dict[str, Any] = field(default_factory=dict)
    optimizer: list[str] = field(default_factory=list)
    random: list[str] = field(default_factory=list)
    loader: list[str] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    steps: list[StepClaim] = field(default_factory=list)
    empty_optimizer: bool = False
    keys: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, value: Any, path: str) -> None:
        """Takes one file's value in."""
        if is_state_dict(value):
            self.weights[path] = value
            return
        if is_optimizer(value):
            self._take_optimizer(value, path)
            return
        if isinstance(value, Stored):
            return
        if not isinstance(value, Mapping):
            self.keys.append(f"{path} ({type(value).__name__})")
            return
        self.keys.extend(str(key) for key in value)
        for key, inner in value.items():
            if isinstance(key, str):
                self._take(key, inner, f"{path} {key}")
        self.steps.extend(claim for key in _STEPS for claim in claim_of(value.get(key), f"{path} {key}"))

    def _take(self, key: str, inner: Any, place: str) -> None:
        if is_optimizer(inner) or _is_list_of_optimizers(inner):
            self._take_optimizer(inner, place)
        elif _is_generator(inner) or (_RANDOM.search(key) and inner not in (None, {}, [], ())):
            self.random.append(place)
        elif _LOADER.search(key) and isinstance(inner, (dict, list)) and inner:
            self.loader.append(place)
        elif is_state_dict(inner) or (_WEIGHTS.search(key) and next(named_tensors(inner), None)):
            self.weights[place] = inner
        elif _CONSUMED.search(key) and isinstance(inner, int):
            self.consumed.append(place)
            self.facts[key] = inner
        elif key in ("epoch", "loss", "best_val_loss") and isinstance(inner, (int, float)):
            self.facts[key] = inner

    def _take_optimizer(self, value: Any, place: str) -> None:
        self.optimizer.append(place)
        self.empty_optimizer = self.empty_optimizer or not has_moments(value)

    def optimizer_finding(self) -> Finding:
        if not self.optimizer:
            return absent(f"no state of an optimizer among the keys ({self._keys()})")
        note = ", which holds no tensors: saved before its first step, or it keeps none" if self.empty_optimizer else ""
        return present(f"{', '.join(self.optimizer[:3])}{note}")

    def position_finding(self) -> Finding:
        if self.loader:
            return present(self.loader[0], PositionEvidence.STATE)
        if self.consumed:
            return present(self.consumed[0], PositionEvidence.COUNTER)
        if self.steps:
            return unknown(
                f"{self.steps[0].source} is there, but nothing says that the trainer skips what was consumed"
            )
        return absent(f"no state of a loader and no count of samples among the keys ({self._keys()})")

    def random_finding(self) -> Finding:
        if self.random:
            return present(", ".join(self.random[:3]))
        return absent(f"no random state among the keys ({self._keys()})")

    def _keys(self) -> str:
        shown = ", ".join(key[:40] for key in self.keys[:8]) or "only tensors"
        return shown + (", ..." if len(self.keys) > 8 else "")


def _is_list_of_optimizers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(is_optimizer(each) for each in value)


def _is_generator(value: Any) -> bool:
    return isinstance(value, Stored) and value.dtype == "u8" and value.shape in [(size,) for size in _GENERATOR_BYTES]
