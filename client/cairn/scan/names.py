"""What names say: cheap rules that decide where to look, never what is there.

The names are those that training frameworks give (README of the client: "Whole trees"). A name only proposes; the
files decide.
"""

import re
from dataclasses import dataclass

from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.formats.checkpoints.steps import step_from_name

# Folders that no one keeps checkpoints in.
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "lost+found"})
# One of these makes its folder a checkpoint, whatever the folder is called.
_MARKERS = re.compile(
    r"(__\d+)?\.metadata|metadata\.json|common\.pt|.*\.distcp|trainer_state\.json|rng_state(_\d+)?\.pth|optimizer\.pt"
    r"|model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|adapter_(model\.(safetensors|bin)|config\.json)"
    r"|pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json|mp_rank_\d+_model_states\.pt"
    r"|(bf16_)?zero_pp_rank_\d+_mp_rank_\d+.*_states\.pt|model_optim_rng\.pt|layer_\d+-model.*\.pt|random_states_\d+\.pkl"
    + "|"
    + re.escape(SIDECAR)
)
# Too common to prove anything by itself: looked at only beside another marker, or below a name with a step.
_WEAK_MARKERS = frozenset({"metadata.json", "optimizer.pt"})
_SINGLE = re.compile(r".*\.(ckpt|pth?|gguf|safetensors|nemo)", re.IGNORECASE)
_SINGLE_WITHOUT_STEP = re.compile(r".*\.(ckpt|gguf|nemo)", re.IGNORECASE)
_RANK = re.compile(r"(?P<stem>.*ep\d+-ba\d+)-rank(?P<rank>\d+)(?P<ending>(\.pt)?)")
# Rank folders and pieces inside a checkpoint; one that stands alone belongs to the folder above it.
_INNER = re.compile(r"mp_rank_\d+(_\d+)*|tp_rank_\d+.*|zero|(pytorch_model|optimizer)_fsdp_\d+|optimizer_\d+")
_TEMPORARY = re.compile(
    r"(tmp[-_.])(?P<rest>.+)|\.?(?P<stem>.+?)[-_.]?(tmp|temp|partial|incomplete|writing)([-_.]?\w{0,32})?",
    re.IGNORECASE,
)
_VERSION = re.compile(r"(?P<stem>.*?)-v(?P<version>\d+)(?P<ending>\.ckpt)?")
# Names that point at a checkpoint that has a name with its step too.
_POINTERS = re.compile(r"(.*[-_])?(last|latest|best|final|newest)([-_.]v\d+)?(\.ckpt|\.pth?|\.nemo)?", re.IGNORECASE)
# What a converted copy of a checkpoint adds to its name.
_VARIANT = re.compile(
    r"(?P<base>.*\d)[-_](?P<variant>unsharded|universal|hf|safetensors|consolidated|fp32|converted|torch|export)",
    re.IGNORECASE,
)
_CONTAINERS = re.compile(r"(saved_|model_?)?(checkpoint|ckpt|snapshot)s?|dist_ckpts?", re.IGNORECASE)
_ATTEMPT = re.compile(r"(attempt|restart|resume|retry|try|relaunch)[-_.]?(?P<number>\d{1,6})", re.IGNORECASE)
# Every name that the rules below know ends so; the rest of a tree is passed over at once.
_ENDINGS = frozenset(
    {
        *("ckpt", "pt", "pth", "gguf", "safetensors", "nemo", "bin", "json", "metadata", "distcp", "pkl"),
        *("tmp", "temp", "partial", "incomplete", "writing"),
    }
)
# What a run's folder says of its last whole checkpoint.
TRACKERS = frozenset({"latest", "latest_universal", "latest_checkpointed_iteration.txt"})


def may_matter(name: str) -> bool:
    """Whether a file's name is worth the rules that follow."""
    return name.rpartition(".")[2].lower() in _ENDINGS or name in TRACKERS


def is_checkpoint_folder(name: str) -> bool:
    """Whether a folder's name has a step, as a checkpoint's would (or is to have); or Megatron's `release`."""
    return step_from_name(name) is not None or name == "release" or finished_name(name) is not None


def is_marker(name: str) -> bool:
    """Whether a file of this name shows that its folder is a checkpoint."""
    return name not in _WEAK_MARKERS and _MARKERS.fullmatch(name) is not None


def is_single_checkpoint(name: str) -> bool:
    """Whether a file of this name may be a checkpoint by itself, or is to become one."""
    name = finished_name(name) or name
    if _SINGLE_WITHOUT_STEP.fullmatch(name):
        return True
    return _SINGLE.fullmatch(name) is not None and step_from_name(name) is not None


def finished_name(name: str) -> str | None:
    """`checkpoint-500` of `tmp-checkpoint-500` or `checkpoint-500.tmp`: what a save calls it once it is whole.

    None for a name that is not temporary, or does not say which checkpoint it is to become.
    """
    found = _TEMPORARY.fullmatch(name)
    finished = (found["rest"] or found["stem"]).rstrip("-_.") if found else ""
    return finished if step_from_name(finished) is not None else None


def is_inner(name: str) -> bool:
    """Whether a folder is a part of the checkpoint above it."""
    return _INNER.fullmatch(name) is not None


def is_pointer(name: str) -> bool:
    """Whether a name says which checkpoint it is only by its place: `last.ckpt`, `best`, `final`."""
    return _POINTERS.fullmatch(name) is not None


def rank_group(name: str) -> tuple[str, int] | None:
    """(`ep0-ba100-rank*.pt`, 3) of `ep0-ba100-rank3.pt`: files that are one checkpoint together."""
    found = _RANK.fullmatch(name)
    return (f"{found['stem']}-rank*{found['ending']}", int(found["rank"])) if found else None


def version_of(name: str) -> int:
    """1 of `epoch=0-step=100-v1.ckpt`: how often the same name had been taken before; 0 for the first."""
    found = _VERSION.fullmatch(name)
    return int(found["version"][:6]) if found else 0


def variant_of(name: str) -> str | None:
    """`unsharded` of `step1000-unsharded`: another arrangement of the same state, where that lies there too."""
    found = _VARIANT.fullmatch(name)
    return found["variant"].lower() if found else None


@dataclass(frozen=True)
class Place:
    """Which run the checkpoints of a folder belong to. `attempt` is the number that a folder's name gives."""

    run: str
    attempt: int | None = None


def place_of(folder: str, root_name: str) -> Place:
    """The run of a folder, from its path below the root; of the root itself, the root's own name.

    `exp1/checkpoints` is the run `exp1`; `exp1/attempt_2` is its second attempt.
    """
    parts = [part for part in folder.split("/") if part]
    attempt = None
    while parts:
        found = _ATTEMPT.fullmatch(parts[-1])
        if found and attempt is None:
            attempt = int(found["number"])
        elif not _CONTAINERS.fullmatch(parts[-1]):
            break
        parts.pop()
    return Place("/".join(parts) or root_name, attempt)
