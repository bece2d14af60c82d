"""Checkpoints of Megatron-LM and its heirs (NeMo, Megatron Bridge): `iter_0000500`, in three forms.

    dist      metadata.json says the backend: torch_dist (`.metadata`, `*.distcp`) or zarr (a folder a tensor), and
              `common.pt` holds what is not sharded: arguments, iteration, scheduler
    legacy    a folder for each model-parallel rank: mp_rank_00_001/model_optim_rng.pt
    a run     latest_checkpointed_iteration.txt beside iter_*: its newest checkpoint is read

`metadata.json` is written last. `common.pt` and the rank files are followed by their opcodes, never unpickled.
"""

import re
from collections.abc import Callable

from cairn.formats.checkpoints import megatron_dist, megatron_legacy
from cairn.formats.checkpoints.documents import read_text
from cairn.formats.checkpoints.pointed import read_inside
from cairn.formats.checkpoints.shapes import Inspection, Unreadable, path_text
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, decide_step

NAME = "megatron"
LOOKS_FOR = "metadata.json with sharded_backend, mp_rank_*/model_optim_rng.pt, or latest_checkpointed_iteration.txt"
TRACKER = "latest_checkpointed_iteration.txt"
_CHECKPOINT = re.compile(r"iter_\d+|release")


def matches(listing: Listing) -> bool:
    return _reader(listing) is not None or _is_run(listing)


def read(listing: Listing) -> Inspection:
    """What the files say. Raises `UnsafePickle`; `Unreadable` for a run whose tracker names nothing that is there."""
    reader = _reader(listing)
    return reader(listing) if reader else _read_newest(listing)


def _reader(listing: Listing) -> Callable[[Listing], Inspection] | None:
    if megatron_dist.matches(listing):
        return megatron_dist.read
    return megatron_legacy.read if megatron_legacy.matches(listing) else None


def _is_run(listing: Listing) -> bool:
    """A tracker, and checkpoints that it may mean; both names are Megatron's alone."""
    return TRACKER in listing and any(_CHECKPOINT.fullmatch(each) for each in listing.folders())


def _read_newest(listing: Listing) -> Inspection:
    folders = {each for each in listing.folders() if _CHECKPOINT.fullmatch(each)}
    said = read_text(listing, TRACKER)
    folder, claims = _named(said)
    if folder not in folders:
        known = ", ".join(sorted(folders)[-3:])
        raise Unreadable(f"{TRACKER} says {path_text(said[:40])!r}, and no such folder is there; there are {known}.")
    inner = listing.below(folder)
    reader = _reader(inner)
    if reader is None:
        raise Unreadable(f"{folder}, which {TRACKER} names, holds no checkpoint of a known form.")
    found = read_inside(inner, reader)
    others = {"other_checkpoints": sorted(folders - {folder})} if len(folders) > 1 else {}
    found = found.having(facts={**found.facts, "tracker": said, **others})
    if not claims or found.step == claims[0].step:
        return found
    if found.step is None:
        step = decide_step(claims)
        return found.having(step=step.step, step_source=step.source)
    told = f"{found.step_source} says step {found.step}, {TRACKER} says {said}"
    return found.having(disagreements=(*found.disagreements, told))


def _named(said: str) -> tuple[str, list[StepClaim]]:
    """The folder that the tracker means: `500` is iter_0000500, `release` is itself and no step."""
    if said.isascii() and said.isdigit() and len(said) <= 18:
        return f"iter_{int(said):07d}", [StepClaim(int(said), TRACKER)]
    return said, []
