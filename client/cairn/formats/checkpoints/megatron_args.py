"""What Megatron's own arguments say of a checkpoint: layout, position in the data, what was not saved.

`args` is an argparse.Namespace (NeMo: a plain dictionary); its values are read as they stand in the pickle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints.pickles import Global, Record
from cairn.formats.checkpoints.shapes import Finding, Layout, PositionEvidence, absent, present, unknown
from cairn.formats.checkpoints.steps import StepClaim, claim_of

_DEGREES = {
    "world_size": ("world_size",),
    "tp": ("tensor_model_parallel_size", "model_parallel_size"),
    "pp": ("pipeline_model_parallel_size",),
    "dp": ("data_parallel_size",),
    "cp": ("context_parallel_size",),
    "ep": ("expert_model_parallel_size",),
}
# What the place in the data depends on besides the counter, and what tells two models apart.
_FACTS = (
    *("global_batch_size", "micro_batch_size", "seq_length", "seed", "data_path", "split", "dataloader_type"),
    *("train_iters", "train_samples", "num_layers", "hidden_size", "num_attention_heads", "padded_vocab_size"),
    *("tokenizer_type", "ckpt_format", "use_distributed_optimizer", "optimizer", "lr", "lr_decay_style"),
    *("consumed_train_samples", "consumed_valid_samples", "skipped_train_samples", "num_experts"),
    *("virtual_pipeline_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel", "params_dtype"),
)
_COUNTERS = ("consumed_train_samples", "consumed_samples")


@dataclass(frozen=True)
class Said:
    """The unsharded part of a checkpoint: `value` is what `file` holds, `args` its arguments."""

    file: str
    value: Mapping[Any, Any] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        facts = {key: plain(self.args[key]) for key in _FACTS if key in self.args}
        version = self.value.get("checkpoint_version")
        return {**facts, **({"checkpoint_version": version} if isinstance(version, (int, float)) else {})}

    def claims(self) -> list[StepClaim]:
        """The optimiser step; `args.iteration` is where the attempt began, so it is not asked."""
        for key in ("iteration", "global_step"):
            if found := claim_of(self.value.get(key), f"{self.file} {key}"):
                return found
        return []

    def counter(self) -> tuple[str, int] | None:
        """The consumed samples, and where they stand."""
        for key in _COUNTERS:
            if _is_count(self.args.get(key)):
                return f"args.{key}", self.args[key]
        for name, each in self.value.items():
            if isinstance(each, dict):
                found = next((key for key in _COUNTERS if _is_count(each.get(key))), None)
                if found:
                    return f"{name}.{found}", each[found]
        return None

    def position(self, loader_files: Sequence[str]) -> Finding:
        """A loader's own state before the counter, which every Megatron run with arguments has."""
        if loader_files:
            more = f" and {len(loader_files) - 1} more" if len(loader_files) > 1 else ""
            return present(f"{loader_files[0]}{more}", PositionEvidence.STATE)
        if counter := self.counter():
            return present(f"{self.file} {counter[0]} = {counter[1]:,}", PositionEvidence.COUNTER)
        if not self.value:
            return unknown(f"{self.file} could not be read")
        return absent(f"no state of a loader, and {self.file} counts no samples")

    def layout(self, sharding: str | None = None, extra: Mapping[str, Any] | None = None) -> Layout:
        degrees: dict[str, int] = {}
        evidence: dict[str, str] = {}
        for degree, keys in _DEGREES.items():
            key = next((key for key in keys if _is_count(self.args.get(key)) and self.args[key] > 0), None)
            if key:
                degrees[degree] = self.args[key]
                evidence[degree] = f"{self.file} args.{key}"
        return Layout(**degrees, sharding=sharding, extra={**(extra or {}), "evidence": evidence})


def said_of(value: Any, file: str) -> Said:
    """Of a rank's file or `common.pt`."""
    mapping = value if isinstance(value, dict) else {}
    return Said(file, mapping, namespace(mapping.get("args")))


def namespace(value: Any) -> Mapping[str, Any]:
    """The attributes of an argparse.Namespace or types.SimpleNamespace, or a dictionary as it is."""
    if isinstance(value, Record) and value.name in ("argparse.Namespace", "types.SimpleNamespace"):
        value = value.state or value.pairs
    return {key: each for key, each in value.items() if isinstance(key, str)} if isinstance(value, dict) else {}


def plain(value: Any) -> Any:
    """A value for people: a class by its name, an enum by its number; lists are cut at 100."""
    if isinstance(value, Global):
        return str(value).removeprefix("torch.")
    if isinstance(value, Record):
        return f"{value.name}({', '.join(str(plain(each)) for each in value.args[:3])})"
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value[:100]]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return type(value).__name__


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
