"""What DeepSpeed's files hold: the model states of one rank, and one file of optimizer states.

    {"module": ..., "optimizer": ..., "param_shapes": [...], "lr_scheduler": ..., "data_sampler": ...,
     "global_steps": n, "global_samples": n, "dp_world_size": n, "mp_world_size": n, "ds_config": {...}, ...}
    {"optimizer_state_dict": {"zero_stage": n, "partition_count": ..., ...}, "ds_config": ..., "ds_version": ...}

What the trainer adds (its client state) stands among the same keys.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints import torch_files, torch_weights
from cairn.formats.checkpoints.dcp_keys import Kind, kind_of
from cairn.formats.checkpoints.megatron_args import Said, plain, said_of
from cairn.formats.checkpoints.pickles import Record, UnsafePickle
from cairn.formats.checkpoints.shapes import Finding, PositionEvidence, Problem, Unreadable, absent, present, unknown
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, claim_of

_OWN = frozenset(
    {
        *("module", "buffer_names", "optimizer", "param_shapes", "frozen_param_shapes", "shared_params"),
        *("frozen_param_fragments", "lr_scheduler", "data_sampler", "random_ltd", "sparse_tensor_module_names"),
        *("skipped_steps", "global_steps", "global_samples", "dp_world_size", "mp_world_size", "ds_config"),
        *("ds_version", "checkpoint_parallel_dimensions", "universal_checkpoint_info", "num_experts", "moe"),
    }
)
_SETTINGS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")


@dataclass(frozen=True)
class States:
    """One rank's model states, and the head of one optimizer file."""

    file: str = ""
    value: Mapping[Any, Any] = field(default_factory=dict)
    optim_file: str = ""
    optim: Mapping[Any, Any] = field(default_factory=dict)

    @property
    def said(self) -> Said:
        return said_of(self.value, self.file)

    def count(self, key: str) -> int | None:
        found = self.value.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None

    @property
    def config(self) -> Mapping[str, Any]:
        found = next((each for each in (self.value.get("ds_config"), self.optim.get("ds_config")) if each), None)
        return found if isinstance(found, dict) else {}

    def stage(self) -> tuple[int, str] | None:
        """The ZeRO stage as the optimizer recorded it, then as it was configured; and where."""
        state = self.optim.get("optimizer_state_dict")
        recorded = _number(state.get("zero_stage")) if isinstance(state, dict) else None
        if recorded is not None:
            return recorded, f"{self.optim_file} zero_stage"
        section = self.config.get("zero_optimization")
        configured = _number(section.get("stage")) if isinstance(section, dict) else None
        return (
            (configured, f"{self.file or self.optim_file} ds_config.zero_optimization.stage")
            if configured is not None
            else None
        )

    def version(self) -> str | None:
        found = self.value.get("ds_version") or self.optim.get("ds_version")
        return found if isinstance(found, str) else None

    def claims(self) -> list[StepClaim]:
        return [*claim_of(self.count("global_steps"), f"{self.file} global_steps"), *self.said.claims()]

    def client_keys(self) -> list[str]:
        """What the trainer added to the states."""
        return [key for key in self.value if isinstance(key, str) and key not in _OWN]

    def position(self) -> Finding:
        if self.value.get("data_sampler") is not None:
            return present(f"{self.file} data_sampler", PositionEvidence.STATE)
        loader = next((key for key in self.client_keys() if kind_of(key) is Kind.DATA and self.value[key]), None)
        if loader:
            return present(f"{self.file} {loader}", PositionEvidence.STATE)
        if self.said.counter():
            return self.said.position(())
        samples = self.count("global_samples")
        if samples is not None:
            told = f"{self.file} global_samples = {samples:,}; DeepSpeed itself skips no batches by it"
            return present(told, PositionEvidence.COUNTER)
        return absent(f"{self.file} counts no samples") if self.value else unknown("no model states could be read")

    def random(self) -> Finding:
        found = next((key for key in self.client_keys() if kind_of(key) is Kind.RANDOM and self.value[key]), None)
        if found:
            return present(f"{self.file} {found}")
        if not self.value:
            return unknown("no model states could be read")
        return absent(f"{self.file} has none, and DeepSpeed keeps none of its own")

    def scheduler(self) -> str:
        if self.value.get("lr_scheduler") is not None:
            return f"; {self.file} lr_scheduler"
        return "; no scheduler" if self.value else ""

    def has_module(self) -> bool:
        return any(True for _ in torch_weights.named_tensors(self.value.get("module")))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of every parameter as the optimizer knows it, whole, however it was partitioned."""
        groups = self.value.get("param_shapes")
        frozen = self.value.get("frozen_param_shapes")
        found: dict[str, tuple[int, ...]] = {}
        for group in (*(groups if isinstance(groups, (list, tuple)) else [groups]), frozen):
            for name, shape in group.items() if isinstance(group, dict) else ():
                if isinstance(name, str) and isinstance(shape, (tuple, list)) and all(type(n) is int for n in shape):
                    found[name] = tuple(shape)
        return found

    def parameter_count(self) -> int | None:
        shapes = self.shapes()
        return sum(math.prod(shape) for shape in shapes.values()) if shapes else None

    def facts(self) -> dict[str, Any]:
        facts = {key: plain(self.config[key]) for key in _SETTINGS if key in self.config}
        counts = {key: self.count(key) for key in ("global_steps", "global_samples", "skipped_steps")}
        facts |= {key: value for key, value in counts.items() if value is not None}
        facts |= self.said.facts()
        return facts | ({"client_state": self.client_keys()[:100]} if self.client_keys() else {})


def read_states(listing: Listing, model: str | None, optim: str | None, problems: list[Problem]) -> States:
    """Both files as far as they can be read. Raises `UnsafePickle`."""
    return States(model or "", _value(listing, model, problems), optim or "", _value(listing, optim, problems))


def _value(listing: Listing, path: str | None, problems: list[Problem]) -> Mapping[Any, Any]:
    if path is None:
        return {}
    try:
        found = torch_files.read(listing, path)
    except UnsafePickle as fault:
        raise UnsafePickle(f"{path}: {fault}") from None
    except Unreadable as fault:
        if all(each.path != path for each in problems):
            problems.append(Problem(path, str(fault)))
        return {}
    problems.extend(Problem(path, fault) for fault in found.problems)
    return found.value if isinstance(found.value, dict) else {}


def _number(value: Any) -> int | None:
    """A number, or an enum by its number (`ZeroStageEnum(2)`)."""
    if isinstance(value, Record) and len(value.args) == 1:
        value = value.args[0]
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 9 else None
