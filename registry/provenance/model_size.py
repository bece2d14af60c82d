"""What the runs of two checkpoints say of the model itself: its family, and how many parameters it has.

A model of another size is one change, though a config shows it as several: its layers, its width, its heads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from registry.provenance.config_diff import ConfigChange
from registry.provenance.sides import Side
from registry.provenance.suspects import MODEL_SIZE, Change, relative_change

PATHS: Final = ("run.model_family", "run.parameter_count")
# Settings that make up the size of a model, as launchers call them: the last segment of a path.
_SETTINGS: Final = frozenset(
    (
        *("hidden_size", "d_model", "n_embd", "dim", "num_layers", "n_layers", "n_layer", "num_hidden_layers"),
        *("num_attention_heads", "num_heads", "n_heads", "n_head", "num_key_value_heads", "n_kv_heads", "head_dim"),
        *("intermediate_size", "ffn_hidden_size", "ffn_dim", "d_ff", "mlp_hidden_size", "mlp_ratio", "kv_channels"),
        *("num_experts", "num_local_experts", "attention_config"),
    )
)


def model_changes(old: Side, new: Side) -> list[ConfigChange]:
    """The two as changes of the model, below `run.`; what one of the runs does not say is unknown, and no change."""
    found = []
    for path in PATHS:
        before, after = (getattr(side, path.removeprefix("run.")) for side in (old, new))
        if before is not None and after is not None and before != after:
            found.append(ConfigChange(path, "changed", "model", before, after))
    return found


def model_suspects(old: Side, new: Side) -> list[Change]:
    found = []
    for each in model_changes(old, new):
        if each.path == MODEL_SIZE:
            words = f"the size of the model went from {_in_words(each.old)} to {_in_words(each.new)} parameters"
            found.append(Change(each.path, "model", relative_change(each.old, each.new), words))
        else:
            found.append(Change(each.path, "model", 1.0, f"the model family went from {each.old} to {each.new}"))
    return found


def one_size(changes: Sequence[Change]) -> list[Change]:
    """With the settings that make up the size of the model under it, where that is known to have changed."""
    if not any(each.key == MODEL_SIZE for each in changes):
        return list(changes)
    return [replace(each, part_of=MODEL_SIZE) if _is_size(each) else each for each in changes]


def without_model(changes: Iterable[ConfigChange]) -> list[ConfigChange]:
    return [each for each in changes if each.path not in PATHS]


def _is_size(change: Change) -> bool:
    return change.key.startswith("config.") and change.key.rpartition(".")[2] in _SETTINGS


def _in_words(count: int) -> str:
    """6.86B, 70.4M."""
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return str(count)
