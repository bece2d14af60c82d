"""Folders of Hugging Face's Trainer: `checkpoint-500` with model, optimizer, scheduler, random states and state.

Trainer writes weights, optimizer, scheduler, random states and then `trainer_state.json`, so a folder with the rest and
without it is not finished. Its versions before 4.37 write the random states after that file; and of several ranks the
first writes it without waiting for the random states of the others. It loads the optimizer only where the scheduler
lies beside it. With DeepSpeed or FSDP the optimizer is in subfolders.
"""

import re
from collections.abc import Sequence

from cairn.formats.checkpoints import lora, safetensors, torch_files, torch_weights
from cairn.formats.checkpoints.documents import read_json
from cairn.formats.checkpoints.hf_shards import Sharded, sharded
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Layout,
    Pieces,
    PositionEvidence,
    Presence,
    Problem,
    Unreadable,
    absent,
    present,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, claims_of_place, decide_step, step_from_name
from cairn.formats.checkpoints.trainer_state import NAME as STATE
from cairn.formats.checkpoints.trainer_state import TrainerState, is_trainer_state, read_trainer_state
from cairn.formats.checkpoints.weights import Weights, numbers_of
from cairn.formats.checkpoints.zip_ends import cut_short

NAME = "hf-trainer"
LOOKS_FOR = "trainer_state.json of Trainer, or optimizer.pt with rng_state*.pth"
_RANDOM = re.compile(r"rng_state(?:_(\d+))?\.pth")
_OTHER_CHECKPOINT = re.compile(r"checkpoint-\d+")


def matches(listing: Listing) -> bool:
    if STATE in listing:
        try:
            return is_trainer_state(read_json(listing, STATE))
        except Unreadable:
            return _is_unfinished(listing)
    return _is_unfinished(listing)


def _is_unfinished(listing: Listing) -> bool:
    """Everything but the state: Trainer had not come to its end."""
    random = any(_RANDOM.fullmatch(path) for path in listing.top())
    optimizer = "optimizer.pt" in listing or "scheduler.pt" in listing or "training_args.bin" in listing
    return random and optimizer and torch_files.looks_so(listing, _random_files(listing)[0])


def read(listing: Listing) -> Inspection:
    own, others = _own(listing)
    problems: list[Problem] = []
    state = _state(own, problems)
    weights, shards = _weights(own), sharded(own)
    step = decide_step(_claims(own, state, shards))
    random, world_size = _random_state(own, problems)
    optimizer = _optimizer(own, problems, shards)
    # One rank leaves every degree one; of more, the files do not tell which were of data.
    layout, told = Layout(world_size=world_size, dp=1 if world_size == 1 else None), tuple[str, ...]()
    if shards:
        layout, told = shards.layout(world_size)
        problems.extend(shards.found.problems)
    _compare_moments(own, state, problems)
    split = shards is not None and not weights.files
    finding = shards.finding("weights") if shards and split else weights.finding
    missing = [*weights.missing, *(shards.found.missing if shards else ()), *([] if STATE in own else [STATE])]
    if finding.state is Presence.ABSENT and weights.sound and shards is None:
        problems.append(Problem("", "holds no weights: still being written, or broken off"))
    sound = weights.sound and not missing and (shards is None or shards.found.complete is not False)
    complete = sound and finding.state is not Presence.ABSENT and state is not None
    complete = complete and not _is_cut(optimizer) and not _is_cut(random)
    facts = {**(state.facts() if state else {}), **_more_facts(own, others)}
    if "adapter_config.json" in own:
        facts |= lora.facts_of(own, problems)
        if finding.state is Presence.PRESENT:
            finding = present(f"{finding.evidence}, of an adapter of {facts.get('base_model') or 'an unnamed model'}")
    return Inspection(
        format=NAME,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=(*step.disagreements, *told),
        pieces=Pieces(finding, optimizer, _position(own, state), random),
        layout=layout,
        **(numbers_of(shards.found) if shards and split else weights.numbers()),
        bytes=own.total_bytes,
        files=len(own.files),
        complete=complete,
        missing=tuple(missing),
        last_written=(STATE,) if complete and _is_last(own, optimizer) else (),
        problems=(*weights.problems, *problems),
        facts=facts,
    )


def _own(listing: Listing) -> tuple[Listing, list[str]]:
    """Without the checkpoints in folders below, which are others of the same run."""
    others = [folder for folder in listing.folders() if _OTHER_CHECKPOINT.fullmatch(folder)]
    if not others:
        return listing, []
    return listing.only(path for path in listing if path.partition("/")[0] not in others), others


def _state(listing: Listing, problems: list[Problem]) -> TrainerState | None:
    if STATE not in listing:
        problems.append(Problem(STATE, "is not there; Trainer writes it last: still being written, or broken off"))
        return None
    try:
        return read_trainer_state(listing)
    except Unreadable as fault:
        problems.append(Problem(STATE, str(fault)))
        return None


def _claims(listing: Listing, state: TrainerState | None, shards: Sharded | None) -> list[StepClaim]:
    claims = [StepClaim(state.global_step, f"{STATE} global_step")] if state else []
    return [*claims, *(shards.claims() if shards else ()), *claims_of_place(listing.root)]


def _weights(listing: Listing) -> Weights:
    """As Trainer would load it: whole files first."""
    top = listing.top()
    if any(path.endswith((".safetensors", ".safetensors.index.json")) for path in top):
        return safetensors.read_weights(listing)[0]
    names = ("pytorch_model.bin", "adapter_model.bin", "pytorch_model_fsdp.bin")
    bins = [path for path in names if path in listing][:1]
    if bins or torch_weights.INDEX in listing:
        return torch_weights.read_weights(listing, bins)
    numbered = [path for path in top if re.fullmatch(r"pytorch_model-\d+-of-\d+\.bin", path)]
    if numbered:
        return torch_weights.read_weights(listing, numbered)
    return Weights()


def _optimizer(listing: Listing, problems: list[Problem], shards: Sharded | None) -> Finding:
    if shards:
        found = shards.finding("optimizer")
        return found if shards.by == "deepspeed" else _with_scheduler(listing, found)
    name = next((each for each in ("optimizer.pt", "optimizer.bin") if each in listing), None)
    if name is None:
        return absent("no optimizer.pt, and no folder of DeepSpeed or FSDP")
    try:
        file = torch_files.read(listing, name)
        if file.problems or not torch_weights.is_optimizer(file.value):
            raise Unreadable(file.problems[0] if file.problems else "holds no state of an optimizer")
    except Unreadable as fault:
        problems.append(Problem(name, str(fault)))
        return absent(f"{name} {fault}")
    return _with_scheduler(listing, present(name))


def _with_scheduler(listing: Listing, optimizer: Finding) -> Finding:
    if optimizer.state is not Presence.PRESENT:
        return optimizer
    if "scheduler.pt" not in listing:
        return absent(f"{optimizer.evidence} without scheduler.pt: Trainer then loads neither")
    extra = ", scaler.pt" if "scaler.pt" in listing else ""
    return present(f"{optimizer.evidence}, scheduler.pt{extra}")


def _position(listing: Listing, state: TrainerState | None) -> Finding:
    if state is None:
        what = f"{STATE} cannot be read" if STATE in listing else f"no {STATE}"
        return absent(f"{what}, so nothing says how much of the data was consumed")
    how = (
        f"{STATE} global_step {state.global_step}: Trainer skips the batches before it, unless ignore_data_skip is set"
    )
    return present(how, PositionEvidence.COUNTER)


def _random_files(listing: Listing) -> Sequence[str]:
    return [path for path in listing.top() if _RANDOM.fullmatch(path)]


def _random_state(listing: Listing, problems: list[Problem]) -> tuple[Finding, int | None]:
    """The finding, and the number of ranks that the names tell."""
    files = _random_files(listing)
    if not files:
        return absent("no rng_state*.pth"), None
    if files == ["rng_state.pth"]:
        return _checked_random(listing, files, problems, "rng_state.pth"), 1
    ranks = {int(found[1]) for path in files if (found := _RANDOM.fullmatch(path)) and found[1]}
    world_size = max(ranks, default=-1) + 1
    if len(ranks) < world_size:
        lost = sorted(set(range(world_size)) - ranks) if world_size < 1_000_000 else []
        reason = f"rng_state of {len(lost) or 'many'} ranks are missing, first rank {lost[0] if lost else '?'}"
        problems.append(Problem("", reason))
        return absent(reason), world_size
    return _checked_random(listing, files, problems, f"rng_state_0.pth to rng_state_{world_size - 1}.pth"), world_size


def _checked_random(listing: Listing, files: Sequence[str], problems: list[Problem], what: str) -> Finding:
    """All ends are looked at; one file is read to see that it is what its name says."""
    if cut := cut_short(listing, files):
        problems.extend(cut)
        return absent(f"{cut[0].path} {cut[0].reason}")
    try:
        value = torch_files.read(listing, files[0]).value
        if not isinstance(value, dict) or not {"python", "numpy", "cpu"} & value.keys():
            raise Unreadable("holds no random states")
    except Unreadable as fault:
        problems.append(Problem(files[0], str(fault)))
        return absent(f"{files[0]} {fault}")
    return present(what)


def _compare_moments(listing: Listing, state: TrainerState | None, problems: list[Problem]) -> None:
    """The scheduler counts steps too: pieces of different moments must not pass as one checkpoint."""
    if state is None or "scheduler.pt" not in listing:
        return
    try:
        value = torch_files.read(listing, "scheduler.pt").value
    except Unreadable as fault:
        problems.append(Problem("scheduler.pt", str(fault)))
        return
    counted = value.get("last_epoch") if isinstance(value, dict) else None
    if isinstance(counted, int) and not isinstance(counted, bool) and counted != state.global_step:
        why = "pieces of different moments, or steps that were skipped because of an overflow"
        problems.append(Problem("scheduler.pt", f"counts {counted} steps, {STATE} {state.global_step}: {why}"))


def _more_facts(listing: Listing, others: Sequence[str]) -> dict[str, object]:
    facts: dict[str, object] = {}
    if "training_args.bin" in listing:
        facts["training_args_bytes"] = listing.size("training_args.bin")
    if others:
        facts["checkpoints_below"] = sorted(others, key=lambda name: step_from_name(name) or 0)
    return facts


def _is_last(listing: Listing, optimizer: Finding) -> bool:
    """Whether nothing is to come after the state: one rank, whose random states are there; or weights alone."""
    random = _random_files(listing)
    return random == ["rng_state.pth"] or (not random and optimizer.evidence.startswith("no "))


def _is_cut(finding: Finding) -> bool:
    """Absent although a file of it is there."""
    return finding.state is Presence.ABSENT and not finding.evidence.startswith("no ")
