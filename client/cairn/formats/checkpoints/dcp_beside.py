"""What lies beside the shards of a distributed checkpoint: one small file a rank, or one for all.

train/rank0.pt, train/rank1.pt, ...    OLMo: step, loader, random state
meta.pt                                Lightning with sharded FSDP: step, loops, callbacks
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints import torch_files
from cairn.formats.checkpoints.dcp_keys import Kind, kind_of
from cairn.formats.checkpoints.pickles import UnsafePickle
from cairn.formats.checkpoints.shapes import Finding, Pieces, PositionEvidence, Presence, Problem, Unreadable, present
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, claim_of

_RANK_FILE = re.compile(r"train/rank(?P<rank>\d+)\.pt")
_ALL = "meta.pt"
_FACTS = ("epoch", "max_steps", "global_train_tokens_seen", "world_size", "pytorch-lightning_version")
_PIECES = {Kind.DATA: "data_position", Kind.RANDOM: "random_state"}


@dataclass
class Beside:
    """The first such file's keys; `files` counts its kind."""

    path: str = ""
    files: int = 0
    value: Mapping[Any, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def claims(self) -> list[StepClaim]:
        return claim_of(self.value.get("global_step"), f"{self.path} global_step")

    def facts(self) -> dict[str, Any]:
        plain = {key: self.value[key] for key in _FACTS if isinstance(self.value.get(key), (int, float, str))}
        return {f"{self.path} {key}": value for key, value in plain.items()}

    def completed(self, pieces: Pieces) -> Pieces:
        """The pieces, with what the shards did not have."""
        found = dict(pieces.items())
        for key, value in self.value.items():
            name = _PIECES.get(kind_of(key)) if isinstance(key, str) and value else None
            if name and found[name].state is not Presence.PRESENT:
                found[name] = self._finding(name, key)
        return Pieces(**found)

    def _finding(self, name: str, key: str) -> Finding:
        told = f"{self.path} {key}" + (f", in each of {self.files} files" if self.files > 1 else "")
        return present(told, PositionEvidence.STATE if name == "data_position" else None)


def read_beside(listing: Listing) -> Beside:
    """Raises `UnsafePickle` for a file that would run code."""
    ranks = sorted((int(found["rank"]), path) for path in listing if (found := _RANK_FILE.fullmatch(path)))
    paths = [path for _, path in ranks] or [path for path in (_ALL,) if path in listing]
    if not paths:
        return Beside()
    beside = Beside(paths[0], len(paths))
    try:
        value = torch_files.read(listing, paths[0]).value
    except UnsafePickle as fault:
        raise UnsafePickle(f"{paths[0]}: {fault}") from None
    except Unreadable as fault:
        beside.problems.append(Problem(paths[0], str(fault)))
        return beside
    beside.value = value if isinstance(value, dict) else {}
    return beside
