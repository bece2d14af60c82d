"""Whether two configurations describe the same model: another number of layers cannot be loaded in any layout."""

from collections.abc import Mapping
from typing import Any, Final

# One setting and what launchers call it; compared by the last part of a dotted path, `-` and `_` alike.
SHAPES: Final = {
    "number of layers": ("num_layers", "num_hidden_layers", "n_layer", "n_layers"),
    "hidden size": ("hidden_size", "n_embd", "d_model", "dim"),
    "attention heads": ("num_attention_heads", "n_head", "n_heads"),
    "tokenizer": ("tokenizer", "tokenizer_type", "tokenizer_name", "tokenizer_name_or_path", "tokenizer_model"),
    "vocabulary": ("vocab_size",),  # without padding, which may change with TP
}


def other_model(saved: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """Why what was saved is another model than the target, in words; '' where nothing known contradicts it.

    Both are flat: dotted paths to values. What either leaves out is not compared.
    """
    mine, theirs = _known(saved), _known(target)
    told = [
        f"the {shape} is {theirs[shape]} and was saved as {mine[shape]}"
        for shape in SHAPES
        if shape in mine and shape in theirs and str(mine[shape]) != str(theirs[shape])
    ]
    return "; ".join(told)


def _known(config: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in config.items():
        last = path.rpartition(".")[2].replace("-", "_").lower()
        for shape, names in SHAPES.items():
            if last in names and isinstance(value, str | int | float) and not isinstance(value, bool):
                found.setdefault(shape, value)
    return found
