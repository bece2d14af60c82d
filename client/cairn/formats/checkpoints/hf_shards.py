"""What DeepSpeed and FSDP leave inside a folder of Hugging Face's Trainer or Accelerate, by their own readers.

global_step600/, latest                         DeepSpeed
pytorch_model_fsdp_0/, optimizer_0/             FSDP, as a distributed checkpoint
pytorch_model_fsdp_0_rank0.bin, ...             FSDP, one file a rank
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cairn.formats.checkpoints import dcp, deepspeed
from cairn.formats.checkpoints.documents import read_text
from cairn.formats.checkpoints.numbered import MAX_COUNT
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Layout,
    Pieces,
    Presence,
    Problem,
    Unreadable,
    absent,
    present,
    unknown,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, claims_of_place, step_from_name
from cairn.formats.checkpoints.zip_ends import cut_short

_STEP_FOLDER = re.compile(r"global_step\d+|pytorch_model")
_STATES = re.compile(r".*mp_rank_\d+_(model|optim)_states\.pt")
_FSDP = re.compile(r"(pytorch_model_fsdp|optimizer)_\d+")
_RANK = re.compile(r"(?P<stem>(pytorch_model_fsdp|optimizer)(_\d+)?_rank)(?P<rank>\d+)\.bin")
_OF_PIECE = {"weights": re.compile(r"model_states|pytorch_model|layer_"), "optimizer": re.compile(r"optim")}


@dataclass(frozen=True)
class Sharded:
    """`by` is deepspeed or fsdp; `found` has its paths from the root of the whole."""

    by: str
    folder: str
    found: Inspection

    def claims(self) -> list[StepClaim]:
        if self.found.step is None or not self.folder:
            return []
        named = claims_of_place(self.folder)
        source = f"{self.folder}/{self.found.step_source}"
        of_content = [] if self.found.step_source.startswith("name ") else [StepClaim(self.found.step, source)]
        return [*of_content, *(StepClaim(each.step, f"folder {self.folder}") for each in named)]

    def finding(self, piece: str) -> Finding:
        """As its reader found it, but absent where a file of it is missing or broken."""
        found = dict(self.found.pieces.items())[piece]
        where = f"{self.by} {self.folder}".strip()
        if found.state is Presence.PRESENT and (faulty := self._faulty(piece)):
            return absent(f"{where}: {faulty}")
        return Finding(found.state, f"{where}: {found.evidence}", found.position)

    def _faulty(self, piece: str) -> str:
        """The first file that makes a piece unusable; one that no name gives to a piece counts for each."""
        faults = dict.fromkeys(self.found.missing, "is missing")
        if self.found.complete is False:
            faults |= {each.path: each.reason for each in self.found.problems}
        for path, reason in faults.items():
            owners = [name for name, pattern in _OF_PIECE.items() if pattern.search(path)]
            if not owners or piece in owners:
                return f"{path} {reason}"
        return ""

    def layout(self, world_size: int | None) -> tuple[Layout, tuple[str, ...]]:
        """The layout, completed by the number of ranks that the random states tell; and where the two differ."""
        said = self.found.layout
        if said.world_size is None or world_size is None or said.world_size == world_size:
            return Layout(**{**vars(said), "world_size": said.world_size or world_size}), ()
        return said, (f"{self.by} was saved by {said.world_size} ranks, there are random states of {world_size}",)


def sharded(listing: Listing) -> Sharded | None:
    """None where neither left anything."""
    if (folder := deepspeed_folder(listing)) is not None:
        return Sharded("deepspeed", folder, _of_deepspeed(listing, folder))
    folders = [each for each in listing.folders() if _FSDP.fullmatch(each)]
    if folders:
        own = listing.only(path for path in listing if path.partition("/")[0] in folders)
        return Sharded("fsdp", "", dcp.read(own) if dcp.matches(own) else _unwritten(own, "no .metadata and no shards"))
    ranks = [path for path in listing.top() if _RANK.fullmatch(path)]
    return Sharded("fsdp", "", _of_ranks(listing, ranks)) if ranks else None


def deepspeed_folder(listing: Listing) -> str | None:
    """The folder that `latest` names, or else the one of the highest step."""
    named = {path.split("/")[0] for path in listing if _STATES.fullmatch(path.partition("/")[2])}
    folders = sorted(
        (each for each in named if _STEP_FOLDER.fullmatch(each)), key=lambda each: step_from_name(each) or 0
    )
    if "latest" in listing:
        try:
            latest = read_text(listing, "latest")
        except Unreadable:
            latest = ""
        if latest in folders:
            return latest
    return folders[-1] if folders else None


def _of_deepspeed(listing: Listing, folder: str) -> Inspection:
    below = listing.below(folder)
    if not deepspeed.matches(below):
        return _unwritten(below, "no file that DeepSpeed wrote")
    found = deepspeed.read(below)
    problems = tuple(Problem(f"{folder}/{each.path}" if each.path else folder, each.reason) for each in found.problems)
    return found.having(missing=tuple(f"{folder}/{path}" for path in found.missing), problems=problems)


def _unwritten(listing: Listing, what: str) -> Inspection:
    nothing = absent(what)
    return Inspection(
        format="none",
        root=listing.root,
        pieces=Pieces(nothing, nothing),
        complete=False,
        problems=(Problem(listing.prefix.rstrip("/"), f"holds {what}: still being written, or broken off"),),
    )


def _of_ranks(listing: Listing, paths: Sequence[str]) -> Inspection:
    """One file a rank: all there and none cut short. Each holds a part of every tensor, so none is counted."""
    named = [found for path in paths if (found := _RANK.fullmatch(path))]
    world_size = min(max(int(each["rank"]) for each in named) + 1, MAX_COUNT)
    stems = dict.fromkeys(each["stem"] for each in named)
    expected = [f"{stem}{rank}.bin" for stem in stems for rank in range(world_size)]
    missing, problems = [path for path in expected if path not in listing], cut_short(listing, paths)
    model, optimizer = (sum(each[2] == kind for each in named) for kind in ("pytorch_model_fsdp", "optimizer"))
    weights = present(f"{model} files of ranks") if model else unknown("no pytorch_model_fsdp*_rank*.bin")
    states = present(f"{optimizer} files of ranks") if optimizer else absent("no optimizer*_rank*.bin")
    return Inspection(
        format="fsdp-ranks",
        root=listing.root,
        pieces=Pieces(weights, states),
        layout=Layout(world_size=world_size, sharding="fsdp"),
        complete=not missing and not problems,
        missing=tuple(missing),
        problems=tuple(problems),
    )
