"""How state was split across ranks when it was saved: the degrees, and the family of formats that decides the rest.

A degree of None is unknown, never one. The family is found by how the optimizer is sharded first, by the format's
name after that: two Megatron checkpoints of one format differ in what they allow.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import Any, Final

from registry.errors import FieldError, Invalid

MODEL_PARALLEL: Final = ("tp", "pp", "cp")
DEGREES: Final = ("world_size", "tp", "pp", "dp", "cp", "ep")


class ContradictoryLayout(Invalid):
    code = "contradictory-layout"
    title = "The degrees of the layout contradict its number of ranks"


@dataclass(frozen=True, slots=True)
class Degrees:
    """Numbers of ranks. Where all are known, world_size = tp x pp x cp x dp; ep divides the others and is no factor."""

    world_size: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None

    def completed(self) -> "Degrees":
        """With the one factor filled in that the others tell. Raises ContradictoryLayout where they disagree."""
        factors = {name: getattr(self, name) for name in (*MODEL_PARALLEL, "dp")}
        unknown = [name for name, value in factors.items() if value is None]
        product = prod(value for value in factors.values() if value is not None)
        if not unknown:
            if self.world_size not in (None, product):
                raise _contradiction(factors, product, self.world_size)
            return replace(self, world_size=product)
        if self.world_size is None:
            return self
        if self.world_size % product:
            raise _contradiction(factors, product, self.world_size)
        return replace(self, **{unknown[0]: self.world_size // product}) if len(unknown) == 1 else self


def _contradiction(factors: Mapping[str, int | None], product: int, ranks: int | None) -> ContradictoryLayout:
    told = " x ".join(f"{name} {value}" for name, value in factors.items() if value is not None)
    message = f"{told} is {product}, which does not make {ranks} ranks"
    return ContradictoryLayout(f"The layout contradicts itself: {message}.", errors=[FieldError("/layout", message)])


class Family(StrEnum):
    """What decides how a checkpoint may be loaded in another layout."""

    DCP = "torch DCP"
    MEGATRON_FULL = "Megatron, fully reshardable"
    MEGATRON_DP = "Megatron, dp_reshardable"
    MEGATRON_GATHERED = "Megatron, dp_zero_gather_scatter"
    MEGATRON = "Megatron, sharding of the optimizer unknown"
    ZERO = "native DeepSpeed ZeRO"
    UNIVERSAL = "DeepSpeed Universal"
    WEIGHTS = "weights in files of their own"
    UNKNOWN = "unknown"


# A word of the sharding (`distrib_optim_sharding_type` first) or of the format, and its family; the first decides.
_SHARDINGS: Final = (
    ("fully_reshardable", Family.MEGATRON_FULL),
    ("fully_sharded_model_space", Family.MEGATRON_FULL),
    ("dp_zero_gather_scatter", Family.MEGATRON_GATHERED),
    ("dp_reshardable", Family.MEGATRON_DP),
    ("fully_sharded_bucket_space", Family.UNKNOWN),
    ("universal", Family.UNIVERSAL),
    ("zero", Family.ZERO),
)
_FORMATS: Final = {
    "torch-dcp": Family.DCP,
    "torch_dcp": Family.DCP,
    "dcp": Family.DCP,
    "torchtitan": Family.DCP,
    "megatron-dist": Family.MEGATRON,
    "torch_dist": Family.MEGATRON,
    "deepspeed": Family.ZERO,
    "universal": Family.UNIVERSAL,
    "safetensors": Family.WEIGHTS,
    "hf-trainer": Family.WEIGHTS,
    "pytorch-bin": Family.WEIGHTS,
    "gguf": Family.WEIGHTS,
    "lora": Family.WEIGHTS,
}


@dataclass(frozen=True, slots=True)
class Saved:
    """What is known of how a checkpoint was saved. None: nobody said.

    `global_names`: tensors are kept under names of the whole model; `flattened_optimizer`: so are the optimizer's.
    `bucket_size`: the parameters of a gradient bucket, where the training pinned them. `free_order`: the order of the
    data does not depend on the layout. `mcore`: the version of Megatron core, e.g. (0, 14).
    """

    degrees: Degrees = Degrees()
    family: Family = Family.UNKNOWN
    zero_stage: int | None = None
    elastic: bool = False
    global_names: bool | None = None
    flattened_optimizer: bool | None = None
    bucket_size: int | None = None
    free_order: bool = False
    mcore: tuple[int, ...] | None = None


def describe(
    format_name: str | None, sharding: str | None, degrees: Degrees, extra: Mapping[str, Any] | None = None
) -> Saved:
    """The facts from a recorded layout; degrees that contradict each other are taken as they are recorded."""
    extra = extra or {}
    with contextlib.suppress(ContradictoryLayout):
        degrees = degrees.completed()
    optimizer = extra.get("distrib_optim_sharding_type")
    said = " ".join(str(each).lower() for each in (optimizer, sharding, format_name) if each)
    return Saved(
        degrees=degrees,
        family=_family(said, format_name),
        zero_stage=_whole(extra.get("zero_stage")) or _stage_in(said),
        elastic=extra.get("elastic_checkpoint") is True,
        global_names=_flag(extra.get("global_names")),
        flattened_optimizer=_flag(extra.get("flattened_optimizer")),
        bucket_size=_whole(extra.get("ddp_bucket_size")),
        free_order=extra.get("layout_free_order") is True,
        mcore=_version(extra.get("mcore_version")),
    )


def _family(said: str, format_name: str | None) -> Family:
    if "zero-0" not in said:
        for word, family in _SHARDINGS:
            if word in said:
                return family
    if "fsdp" in said and format_name == "hf-trainer":  # one file a rank: each holds a part of every tensor
        return Family.UNKNOWN
    return _FORMATS.get((format_name or "").lower(), Family.UNKNOWN)


def _stage_in(said: str) -> int | None:
    """`zero-2`, `zero2`, `zero_3`."""
    _, found, rest = said.partition("zero")
    digit = rest.lstrip("-_ ")[:1]
    return int(digit) if found and digit in ("1", "2", "3") else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _version(value: Any) -> tuple[int, ...] | None:
    parts = str(value).split(".")[:2] if isinstance(value, (str, float)) else []
    return tuple(map(int, parts)) if parts and all(part.isascii() and part.isdigit() for part in parts) else None
