"""What lies beside a model's weights in a folder that no trainer's reader knows: `optimizer.pt`, `training_state.pt`.

The formats of weights hold nothing else, so the other pieces are where somebody's own script put them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
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
# What is written for people, or to be run.
_PROSE = (".md", ".py", ".jinja", ".html", ".png", ".jpg", ".ipynb", ".sh")
# What libraries put beside weights, none of which is a state of training. Any other file may be somebody's own.
_HARMLESS = re.compile(
    r"(.+[_.])?(config|args|params|results|metrics|info)\.(json|ya?ml|toml)|.+\.index\.json|.*token.*\.(json|txt)|"
    r"(vocab|merges|chat_template)\..+|.+\.(model|tiktoken|txt|ya?ml|toml|spm)|modules\.json|"
    r"(.+[_-])?(model|consolidated|adapter|ema|weights)([_.-].*)?\.(safetensors|bin|gguf|h5|msgpack|ot|onnx|tflite)|"
    r"(readme|license|notice|use_policy|copying)|\..+|events\.out\..+"
)
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
    unread = _might_tell(listing, own, paths)
    might = unknown(f"{unread} might tell, in a format that is not known here")
    if not paths and not shards:
        if unread:
            return Beside(Pieces(weights, *[might] * 3))
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
    elif unread:
        findings = [might if each.state.value == "absent" else each for each in findings]
    steps = list(saved.steps)
    if shards:
        findings[0] = shards.finding("optimizer")
        steps.extend(shards.claims())
        problems.extend(shards.found.problems)
    return Beside(Pieces(weights, *findings), steps, tuple(problems), dict(saved.facts))


def _might_tell(listing: Listing, own: Sequence[str], read: Sequence[str]) -> str | None:
    """The first file that may hold a state in somebody's own format: one that is called like a state, else one beside
    the weights that is none of what libraries put there."""
    known = {*own, *read, *_NO_STATE}

    def others(paths: Iterable[str]) -> Iterator[str]:
        return (path for path in paths if path not in known and not path.lower().endswith(_PROSE))

    called = (path for path in others(listing) if _STATE.search(path.lower()))
    beside = (path for path in others(listing.top()) if not _HARMLESS.fullmatch(path.lower()))
    return next(called, None) or next(beside, None)


def _unread(problems: Sequence[Problem]) -> str:
    return f"{problems[0].path}, which might tell, {problems[0].reason}"
