"""Which step a checkpoint is of: from content first, then from names. Disagreement is reported, never resolved."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Whole names only, so that `train_loss_3.2994` in a name is never taken for a step.
_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"checkpoint[-_](?P<step>\d+)",  # Hugging Face Trainer
        r"(?:.*[-_=.])?step[-_=]?(?P<step>\d+)(?:(?:-v\d+)|(?:[-_](?!\d).*))?",  # Lightning, torchtitan, OLMo, NeMo
        r"iter_(?P<step>\d+)",  # Megatron
        r"global_?step[-_]?(?P<step>\d+)(?:_universal)?",  # DeepSpeed, GPT-NeoX
        r"(?:.*[-_])?ep\d+-ba(?P<step>\d+)(?:-rank\d+)?",  # Composer
    )
)
_ENDINGS = re.compile(r"(\.ckpt|\.pth?|\.bin|\.safetensors|\.gguf|\.tar)$", re.IGNORECASE)
MAX_STEP = 2**63 - 1


@dataclass(frozen=True)
class StepClaim:
    """A step, and where it stands: `trainer_state.json global_step`, `name checkpoint-500`."""

    step: int
    source: str


@dataclass(frozen=True)
class StepFound:
    step: int | None = None
    source: str = ""
    disagreements: tuple[str, ...] = ()


def step_from_name(name: str) -> int | None:
    """500 from `checkpoint-500`; None for a name of no known manner."""
    stem = _ENDINGS.sub("", name)
    for pattern in _NAMES:
        found = pattern.fullmatch(stem)
        if found and len(found["step"]) <= 19 and (step := int(found["step"])) <= MAX_STEP:
            return step
    return None


def claims_of_place(root: str) -> list[StepClaim]:
    """What the last part of a path says, or else the part before it (`step-500/model`)."""
    for name in [part for part in root.rstrip("/").split("/") if part][-1:-3:-1]:
        if (step := step_from_name(name)) is not None:
            return [StepClaim(step, f"name {name}")]
    return []


def claim_of(value: object, source: str) -> list[StepClaim]:
    """A claim from a value of a file, where it is a step at all."""
    is_step = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_STEP
    return [StepClaim(value, source)] if is_step else []  # type: ignore[arg-type]


def decide_step(claims: Iterable[StepClaim]) -> StepFound:
    """The first claim wins (order them: content, then names); every other step is a disagreement."""
    claims = list(claims)
    if not claims:
        return StepFound()
    first = claims[0]
    others = dict.fromkeys(
        f"{first.source} says step {first.step}, {other.source} says {other.step}"
        for other in claims[1:]
        if other.step != first.step
    )
    return StepFound(first.step, first.source, tuple(others))
