"""W&B's words in ours: what its tags, groups and states are called here. Shared by folders and the live service."""

from collections.abc import Mapping, Sequence
from typing import Any

# Names under which trainings log what a checkpoint has a field for, the first that is there counts.
LOSSES = ("train/loss", "loss", "train_loss", "training_loss", "loss_metrics/global_avg_loss", "lm loss")
RATES = ("train/learning_rate", "learning_rate", "lr", "train/lr", "learning-rate")
TOKENS = ("train/num_input_tokens_seen", "tokens_seen", "train/tokens_seen")
EPOCHS = ("train/epoch", "epoch")
MAX_TAG, MAX_TAG_NAME = 4_096, 512
MODEL_TYPES = ("model", "checkpoint")


def tags_of(tags: Sequence[str], *, group: str = "", job_type: str = "", notes: str = "") -> dict[str, str]:
    """W&B's tags are words: `sft` becomes sft = true, and `phase:sft` or `phase=sft` becomes phase = sft."""
    found: dict[str, str] = {}
    for tag in tags:
        for sign in ("=", ":"):
            name, there, value = tag.partition(sign)
            if there and name.strip() and value.strip():
                found[name.strip()] = value.strip()
                break
        else:
            found[tag.strip()] = "true"
    known = {"wandb.group": group, "wandb.job_type": job_type, "wandb.notes": notes}
    found |= {name: value for name, value in known.items() if value}
    return {name: value[:MAX_TAG] for name, value in found.items() if is_name(name) and "\0" not in value}


def is_name(text: str) -> bool:
    """Whether a name can be kept."""
    return 0 < len(text) <= MAX_TAG_NAME and text.isprintable()


def first_of(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first value under one of these names; None where there is none."""
    return next((values[name] for name in names if values.get(name) is not None), None)


def artifact_tags(name: str, aliases: Sequence[str], digest: str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """What an artifact says, as tags of its checkpoint: as an import from the live service writes them too."""
    tags = {"wandb.name": name}
    if aliases:
        tags["wandb.aliases"] = ", ".join(sorted(aliases))
    if digest:
        tags["wandb.digest"] = digest
    for key, value in metadata.items():
        if isinstance(value, (str, int, float, bool)) and not key.startswith("cairn"):
            tags.setdefault(f"wandb.{key}", str(value))
    usable = {key: value.replace("\0", " ") for key, value in list(tags.items())[:100]}
    return {key: value for key, value in usable.items() if is_name(key) and len(value) <= MAX_TAG}
