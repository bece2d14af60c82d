"""Folders of Accelerate's `save_state`: model, optimizer, scheduler, sampler and random states, numbered by object.

Their default name `checkpoint_3` counts saves, not steps, and no file holds the optimiser's step.
"""

import re

from cairn.formats.checkpoints import safetensors, torch_files, torch_weights
from cairn.formats.checkpoints.hf_shards import sharded
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Layout,
    Pieces,
    PositionEvidence,
    Problem,
    Unreadable,
    absent,
    present,
    unknown,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import claims_of_place, decide_step
from cairn.formats.checkpoints.weights import Weights, numbers_of
from cairn.formats.checkpoints.zip_ends import cut_short

NAME = "accelerate"
LOOKS_FOR = "random_states_*.pkl of Accelerate"
_RANDOM = re.compile(r"random_states_(\d+)\.pkl")
_OPTIMIZER = re.compile(r"optimizer(_\d+)?\.bin")
_SAVES = re.compile(r"checkpoint_(\d+)")
_MODEL = re.compile(r"(model|pytorch_model)(_\d+)?\.(safetensors|bin)")


def matches(listing: Listing) -> bool:
    files = [path for path in listing.top() if _RANDOM.fullmatch(path)]
    return bool(files) and torch_files.looks_so(listing, files[0])


def read(listing: Listing) -> Inspection:
    problems: list[Problem] = []
    weights = _weights(listing)
    random, world_size = _random_state(listing, problems)
    shards = sharded(listing)
    optimizer = shards.finding("optimizer") if shards else _optimizer(listing, problems)
    layout, told = Layout(world_size=world_size, dp=1 if world_size == 1 else None), tuple[str, ...]()
    if shards:
        layout, told = shards.layout(world_size)
        problems.extend(shards.found.problems)
    split = shards is not None and not weights.files
    counted = _SAVES.fullmatch(listing.name)
    step = decide_step([] if counted else claims_of_place(listing.root))
    facts = {"save_number": int(counted[1])} if counted else {}
    finding = shards.finding("weights") if shards and split else weights.finding
    sound = weights.sound and not problems and (shards is None or shards.found.complete is not False)
    return Inspection(
        format=NAME,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=(*step.disagreements, *told),
        pieces=Pieces(finding, optimizer, _position(listing, problems), random),
        layout=layout,
        **(numbers_of(shards.found) if shards and split else weights.numbers()),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=None if sound else False,
        missing=(*weights.missing, *(shards.found.missing if shards else ())),
        problems=(*weights.problems, *problems),
        facts={**facts, **_scheduler_facts(listing)},
    )


def _weights(listing: Listing) -> Weights:
    names = [path for path in listing.top() if _MODEL.fullmatch(path)]
    safe = [path for path in names if path.endswith(".safetensors")]
    if safe or safetensors.INDEX in listing:
        return safetensors.read_weights(listing, safe or None)[0]
    if names or torch_weights.INDEX in listing:
        return torch_weights.read_weights(listing, names)
    whole = [path for path in ("pytorch_model_fsdp.bin",) if path in listing]
    return torch_weights.read_weights(listing, whole) if whole else Weights()


def _optimizer(listing: Listing, problems: list[Problem]) -> Finding:
    names = [path for path in listing.top() if _OPTIMIZER.fullmatch(path)]
    if not names:
        return absent("no optimizer.bin, and no folder of DeepSpeed or FSDP")
    for name in names:
        try:
            file = torch_files.read(listing, name)
            if file.problems or not torch_weights.is_optimizer(file.value):
                raise Unreadable(file.problems[0] if file.problems else "holds no state of an optimizer")
        except Unreadable as fault:
            problems.append(Problem(name, str(fault)))
            return absent(f"{name} {fault}")
    extra = [path for path in listing.top() if re.fullmatch(r"scheduler(_\d+)?\.bin|scaler\.pt", path)]
    return present(", ".join([*names[:3], *extra[:3]]))


def _position(listing: Listing, problems: list[Problem]) -> Finding:
    states = [path for path in listing.top() if re.fullmatch(r"dl_state_dict(_\d+)?\.bin", path)]
    if states:
        try:
            torch_files.read(listing, states[0])
        except Unreadable as fault:
            problems.append(Problem(states[0], str(fault)))
            return absent(f"{states[0]} {fault}")
        return present(f"{states[0]}: the state of the loader", PositionEvidence.STATE)
    sampler = next((path for path in listing.top() if re.fullmatch(r"sampler(_\d+)?\.bin", path)), None)
    what = f"{sampler} tells the order of the epoch, not" if sampler else "no dl_state_dict.bin: nothing tells"
    return unknown(f"{what} how far it went; the script has to skip batches by a count of its own")


def _random_state(listing: Listing, problems: list[Problem]) -> tuple[Finding, int | None]:
    ranks = sorted(int(found[1]) for path in listing.top() if (found := _RANDOM.fullmatch(path)))
    world_size = ranks[-1] + 1
    if len(ranks) < world_size:
        reason = f"random states of {world_size - len(ranks)} of {world_size} ranks are missing"
        problems.append(Problem("", reason))
        return absent(reason), world_size
    first = f"random_states_{ranks[0]}.pkl"
    if cut := cut_short(listing, [f"random_states_{rank}.pkl" for rank in ranks]):
        problems.extend(cut)
        return absent(f"{cut[0].path} {cut[0].reason}"), world_size
    try:
        value = torch_files.read(listing, first).value
        if not isinstance(value, dict) or "random_state" not in value:
            raise Unreadable("holds no random states")
    except Unreadable as fault:
        problems.append(Problem(first, str(fault)))
        return absent(f"{first} {fault}"), world_size
    return present(first if world_size == 1 else f"{first} to random_states_{ranks[-1]}.pkl"), world_size


def _scheduler_facts(listing: Listing) -> dict[str, int]:
    """How often the scheduler went on: steps or epochs, times the number of processes, as the script calls it."""
    if "scheduler.bin" not in listing:
        return {}
    try:
        value = torch_files.read(listing, "scheduler.bin").value
    except Unreadable:
        return {}
    counted = value.get("last_epoch") if isinstance(value, dict) else None
    return {"scheduler_count": counted} if isinstance(counted, int) else {}
