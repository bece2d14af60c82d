"""What differs between two configurations, value by value, and what kind of thing each difference is.

Values are compared by meaning: 1e-4 is 0.0001, also as text; 1.0 is 1; "True" is true; 4GiB is 4294967296; 10% is 0.1.
A bare k or M stays a text: 2k is 2000 to one launcher and 2048 to another. Paths are compared with `-` and `_` as the
same, and by the aliases below, so that the same setting of two launchers meets.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

Scalar = None | bool | int | float | str | Sequence[Any] | Mapping[str, Any]  # of the last two, only empty ones

# Names of one setting in several launchers: the last segment of a path, as it is compared.
ALIASES = {
    "gas": "gradient_accumulation_steps",
    "lr": "learning_rate",
    "wd": "weight_decay",
    "seq_length": "sequence_length",
    "seq_len": "sequence_length",
    "sequence_len": "sequence_length",
    "pipe_parallel_size": "pipeline_parallel_size",
    "pp": "pipeline_parallel_size",
    "tp": "tensor_parallel_size",
    "model_parallel_size": "tensor_parallel_size",
    "tensor_model_parallel_size": "tensor_parallel_size",
    "pipeline_model_parallel_size": "pipeline_parallel_size",
    "micro_batch_size": "train_micro_batch_size_per_gpu",
    "global_bs": "global_batch_size",
    "bs": "global_batch_size",
}

# The first class with a word that occurs in the path decides, from top to bottom. `word` matches a whole
# segment or a part of one between underscores; `=word` only a whole segment; `^word` only the whole path.
CLASSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "inert",
        (
            *("=run_name", "^name", "=output_dir", "^save", "^load", "=save_dir", "=logging_dir", "=report_to"),
            *("wandb", "mlflow", "tensorboard", "log", "logging", "=steps_per_print", "=wall_clock_breakdown"),
            *("save_interval", "save_steps", "save_total_limit", "checkpoint_factor", "=extra_save_iters"),
            *("eval_interval", "eval_iters", "eval_steps", "console", "callbacks", "hub", "=launcher", "progress"),
            *("dry_run", "verbose", "save_folder", "saves_per_epoch", "evals_per_epoch", "^uuid", "^creation_date"),
        ),
    ),
    (
        "tokenizer",
        ("tokenizer", "vocab_file", "vocab_size", "merge_file", "special_tokens", "chat_template", "bos", "eos"),
    ),
    (
        "precision",
        (
            *("fp16", "bf16", "fp8", "fp32", "tf32", "precision", "=dtype", "=torch_dtype", "params_dtype"),
            *("loss_scale", "initial_scale_power", "amp", "autocast", "quantization", "load_in_4bit", "load_in_8bit"),
        ),
    ),
    (
        "parallel",
        (
            *("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "expert_parallel_size"),
            *("parallel", "parallelism", "world_size", "fsdp", "deepspeed", "zero_optimization", "zero", "sharding"),
            *("nnodes", "nodes", "num_gpus", "gpus", "backend", "bucket_size", "partition_activations", "ddp"),
            *("checkpoint_activations", "checkpoint_num_layers", "gradient_checkpointing", "synchronize_each_layer"),
            *("activation_checkpointing", "offload", "overlap_comm"),
        ),
    ),
    (
        "schedule",
        (
            *("scheduler", "schedule", "warmup", "decay_style", "decay_iters", "min_lr", "lr_scheduler", "cooldown"),
            *("train_iters", "max_steps", "num_epochs", "num_train_epochs", "epochs", "max_duration", "total_steps"),
            *("train_steps", "anneal", "t_warmup", "t_max", "alpha_f", "=max_tokens", "=tokens"),
        ),
    ),
    (
        "data",
        (
            *("data", "dataset", "datasets", "dataloader", "loader", "sampler", "corpus", "mixture", "mix", "blend"),
            *("train_data_paths", "=split", "shuffle", "seed", "sequence_length", "packing", "num_workers", "sources"),
            *("batch", "batch_size", "gradient_accumulation_steps", "curriculum", "max_seq_length", "source"),
        ),
    ),
    (
        "optimiser",
        (
            *("optimizer", "optimiser", "optim", "learning_rate", "weight_decay", "betas", "beta1", "beta2", "eps"),
            *("adam", "momentum", "clip", "clipping", "gradient_clipping", "grad_norm", "max_grad_norm", "dropout"),
            *("z_loss", "auxiliary_loss", "softmax_auxiliary_loss", "label_smoothing", "rl", "kl", "beta"),
        ),
    ),
    (
        "model",
        (
            *("model", "num_layers", "n_layers", "hidden_size", "d_model", "heads", "n_heads", "attention", "attn"),
            *("rope", "rotary", "pos_emb", "norm", "layernorm", "init", "init_method", "activation", "mlp", "ffn"),
            *("embedding", "arch", "architecture", "residual", "bias", "weight_tying", "position_embeddings", "moe"),
            *("experts", "lora", "adapter", "params", "base_model", "flash", "softmax_fusion", "gelu_fusion"),
        ),
    ),
    ("code", ("commit", "git", "version", "revision", "branch", "script", "entrypoint", "command")),
    ("env", ("env", "environment", "cuda", "nccl", "torch", "python", "driver", "image", "container", "hostname")),
)

_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)
_SIZE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(kb|mb|gb|tb|kib|mib|gib|tib|%)", re.IGNORECASE)
_SIZES: dict[str, Decimal | int] = {
    "%": Decimal("0.01"),
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), start=1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), start=1)},
}
_WORDS: dict[str, bool | str | None] = {
    "true": True,
    "false": False,
    "yes": True,
    "no": False,
    "null": None,
    "none": None,
    "nan": "NaN",
    "inf": "Infinity",
    "infinity": "Infinity",
    "-inf": "-Infinity",
    "-infinity": "-Infinity",
}


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One path that differs. `change` is added, removed or changed; `kind` one of the classes above, else model.

    `not_recorded_on`: the side (baseline, candidate) that recorded nothing of the whole group that the path stands in;
    the value there is unknown then, and nothing says that it changed. `is_absence`: null on one side, absent on the
    other, which is how one launcher leaves out what another writes down.
    """

    path: str
    change: str
    kind: str
    old: Any
    new: Any
    not_recorded_on: str | None = None

    @property
    def is_absence(self) -> bool:
        return self.change != "changed" and canonical(self.old) is None and canonical(self.new) is None


def canonical(value: Scalar) -> bool | str | Decimal | None:
    """The value as it is compared: numbers by value, also those written as text, with a unit of bytes or in percent."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        value = repr(value)
    if not isinstance(value, str):  # an empty object or list
        return "{}" if isinstance(value, Mapping) else "[]"
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        return _decimal(text.replace("_", ""))
    size = _SIZE.fullmatch(text)
    if size:
        return Decimal(size[1]) * _SIZES[size[2].lower()]
    return text


def _decimal(text: str) -> Decimal | str:
    """Exact, however long; a number with an exponent beyond what a decimal holds is compared as text."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


@lru_cache(maxsize=20_000)
def canonical_path(path: str) -> str:
    """The path as it is compared: lower case, `_` for `-`, and one name for each setting of ALIASES."""
    *front, last = path.lower().replace("-", "_").split(".")
    return ".".join((*front, ALIASES.get(last, last)))


@lru_cache(maxsize=20_000)
def classify(path: str) -> str:
    """The class of a path, by the table above; what it does not know counts as model, where a change weighs."""
    known = canonical_path(path)
    segments = known.split(".")
    for kind, words in CLASSES:
        if any(_holds(known, segments, word) for word in words):
            return kind
    return "model"


def _holds(path: str, segments: list[str], word: str) -> bool:
    if word[0] == "^":
        return path == word[1:]
    if word[0] == "=":
        return word[1:] in segments
    return any(f"_{word}_" in f"_{segment}_" for segment in segments)


def diff_configs(old: Mapping[str, Scalar], new: Mapping[str, Scalar]) -> list[ConfigChange]:
    """The paths that differ between two configurations, given as dotted paths and values, in order of path."""
    before = {canonical_path(path): (path, value) for path, value in old.items() if path}  # an empty object has no path
    after = {canonical_path(path): (path, value) for path, value in new.items() if path}
    old_groups, new_groups = _groups(before), _groups(after)
    changes = []
    for key in sorted(before.keys() | after.keys()):
        if key not in after:
            path, value = before[key]
            unknown = "candidate" if _is_unrecorded(key, new_groups) else None
            changes.append(ConfigChange(path, "removed", classify(path), value, None, unknown))
        elif key not in before:
            path, value = after[key]
            unknown = "baseline" if _is_unrecorded(key, old_groups) else None
            changes.append(ConfigChange(path, "added", classify(path), None, value, unknown))
        elif _differ(before[key][1], after[key][1]):
            path, value = after[key]
            changes.append(ConfigChange(path, "changed", classify(path), before[key][1], value))
    return changes


def _groups(paths: Iterable[str]) -> set[str]:
    return {path.split(".", 1)[0] for path in paths}


def _is_unrecorded(path: str, groups: set[str]) -> bool:
    """Whether a side with these groups says nothing of the group that the path is in, or nothing at all."""
    group, dot, _ = path.partition(".")
    return not groups or (bool(dot) and group not in groups)


def _differ(old: Scalar, new: Scalar) -> bool:
    if old is new or (type(old) is type(new) and old == new):
        return False
    left, right = canonical(old), canonical(new)
    return type(left) is not type(right) or left != right
