"""What lies beside a model's weights in a folder that no trainer's reader knows: `optimizer.pt`, `training_state.pt`.

The formats of weights hold nothing else, so the other pieces are where somebody's own script put them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cairn.formats.checkpoints import torch_files
from cairn.formats.checkpoints.hf_shards import sharded
from cairn.formats.checkpoints.saved_dict import Saved
from cairn.formats.checkpoints.shapes import Finding, Pieces, Problem, Unreadable, absent, unknown
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim

_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".pkl")
# Bytes only: arguments of a trainer, which hold no state.
_NO_STATE = ("training_args.bin",)
# Names of a state in a format of somebody's own (`optim_state.npz`, `rng/0.npy`): not read here, but it is there.
_STATE = re.compile(
    r"optim|(?<![a-z])adam|(train|trainer|training|loader|sampler|random|scheduler)_?state|(?<![a-z])rng"
)
_TEXTS = (".json", ".md", ".txt", ".py", ".yaml", ".yml", ".jinja", ".toml")
MAX_FILES = 64


@dataclass(frozen=True)
class Beside:
    """The pieces, and what else the files beside the weights tell."""

    pieces: Pieces
    steps: Sequence[StepClaim] = ()
    problems: tuple[Problem, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)


def read_beside(listing: Listing, weights: Finding, own: Sequence[str]) -> Beside:
    """What the files in the root say that are not the weights (`own`)."""
    paths = [path for path in listing.top() if path.endswith(_ENDINGS) and path not in (*own, *_NO_STATE)]
    shards = sharded(listing)
    if not paths and not shards:
        if unread := _unknown_state(listing, own):
            return Beside(Pieces(weights, *[unknown(f"{unread} might tell, in a format that is not known here")] * 3))
        nothing = absent("weights alone: no file beside them holds any state")
        return Beside(Pieces(weights, nothing, nothing, nothing))
    saved, problems = Saved(), list[Problem]()
    for path in paths[:MAX_FILES]:
        try:
            saved.add(torch_files.read(listing, path).value, path)
        except Unreadable as fault:
            problems.append(Problem(path, str(fault)))
    findings = [saved.optimizer_finding(), saved.position_finding(), saved.random_finding()]
    if problems:
        findings = [each if each.state.value == "present" else unknown(_unread(problems)) for each in findings]
    steps = list(saved.steps)
    if shards:
        findings[0] = shards.finding("optimizer")
        steps.extend(shards.claims())
        problems.extend(shards.found.problems)
    return Beside(Pieces(weights, *findings), steps, tuple(problems), dict(saved.facts))


def _unknown_state(listing: Listing, own: Sequence[str]) -> str | None:
    """The first file that is called like a state, and is no text."""
    others = (path for path in listing if path not in own and not path.endswith(_TEXTS))
    return next((path for path in others if _STATE.search(path.lower())), None)


def _unread(problems: Sequence[Problem]) -> str:
    return f"{problems[0].path}, which might tell, {problems[0].reason}"
