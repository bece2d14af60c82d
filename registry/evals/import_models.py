"""Whether a result file speaks of the model that its scores are recorded for: a doubt, never a refusal.

Only names can tell: their size ('70m', '6.9b') and the published family that they are of. A path to the checkpoint
itself, or a name that says neither, raises no doubt.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from cairn.formats import EvalFile
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.models import Checkpoint, Run
from registry.upsert import chunks

_SIZE: Final = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)([mb])(?![a-z0-9])")
_FAMILIES: Final = (
    *("baichuan", "bloom", "bloomz", "cerebras", "chatglm", "deepseek", "falcon", "gemma", "glm", "gpt-?2", "gpt-?j"),
    *("gpt-?neox?", "gpt-oss", "internlm", "llama", "mamba", "mistral", "mixtral", "mpt", "olmo", "olmoe", "openelm"),
    *(r"opt(?=-\d)", r"phi(?=-?\d)", "pythia", "qwen", "redpajama", "rwkv", "smollm", "stablelm"),
)
_FAMILY: Final = re.compile(rf"(?<![a-z])({'|'.join(_FAMILIES)})(?![a-z])")
_ALIKE: Final = 1.1  # sizes that two names give to one model differ by no more than this, as a factor
_COUNTED_ALIKE: Final = 2.0  # a count may leave out the embeddings, which a name counts


@dataclass(frozen=True)
class Traits:
    """What a name says of a model; empty where it says nothing."""

    sizes: frozenset[float]
    families: frozenset[str]


def traits_of(name: str) -> Traits:
    lowered = name.lower().replace("_", "-")
    sizes = {float(number) * {"m": 1e6, "b": 1e9}[unit] for number, unit in _SIZE.findall(lowered)}
    families = {found.replace("-", "").removesuffix("z") for found in _FAMILY.findall(lowered)}
    return Traits(frozenset(sizes), frozenset(families))


def differ(one: Traits, other: Traits, alike: float = _ALIKE) -> bool:
    """Whether two names cannot mean one model: no size of the one is near one of the other, or no family is shared."""
    if one.families and other.families and not one.families & other.families:
        return True
    near = any(max(a, b) <= alike * min(a, b) for a in one.sizes for b in other.sizes)
    return bool(one.sizes and other.sizes and not near)


def models_said(found: EvalFile) -> list[str]:
    """The models that a file names; of an adapter only its base is named, which tells nothing."""
    if any(name in found.facts for name in ("model_args.peft", "model_args.delta")):
        return []
    said = {found.model_path: None} | {place.model: None for place in found.places if place.run is None}
    return [model for model in said if model]


def other_model_notes(session: Session, found: EvalFile, checkpoint_ids: Collection[int]) -> list[str]:
    """A note for each model of the file that cannot be the model of a run that its scores go to."""
    models = models_said(found)
    if not models:
        return []
    notes = []
    for run in _runs_of(session, checkpoint_ids):
        named = traits_of(f"{run.name} {run.model_family or ''}")
        counted = Traits(frozenset([float(run.parameter_count)]) if run.parameter_count else frozenset(), frozenset())
        for model in models:
            own = traits_of(model)
            if differ(own, named) or (not named.sizes and differ(own, counted, _COUNTED_ALIKE)):
                notes.append(f"it says that it is of the model {model[:200]!r}; recorded for the run {run.name!r}")
    return notes


def _runs_of(session: Session, checkpoint_ids: Collection[int]) -> list[Run]:
    """The runs of checkpoints, by name."""
    found: dict[int, Run] = {}
    for chunk in chunks(sorted(set(checkpoint_ids))):
        query = select(Run).where(Run.id.in_(select(Checkpoint.run_id).where(Checkpoint.id.in_(chunk))))
        found |= {run.id: run for run in session.scalars(query)}
    return sorted(found.values(), key=lambda run: run.name)


def mixed_notes(files: Sequence[tuple[str, EvalFile | None, Collection[int]]]) -> list[list[str]]:
    """For each file of one import: that an earlier one put the scores of another model into the same checkpoint.

    `files`: a name, what was read, and the checkpoints that its scores went to.
    """
    known: dict[int, dict[str, str]] = {}  # by checkpoint: each model, and the first file that names it
    notes: list[list[str]] = []
    for name, found, into in files:
        told: dict[str, None] = {}
        for model in models_said(found) if found is not None else ():
            for number in into:
                for other, file in known.setdefault(number, {}).items():
                    if differ(traits_of(model), traits_of(other)):
                        both = f"it is of the model {model[:200]!r}, and {file} of {other[:200]!r}"
                        told[f"{both}: both were recorded for one checkpoint"] = None
                known[number].setdefault(model, name)
        notes.append(list(told)[:1])
    return notes
