"""DeepSpeed's checkpoints: ZeRO 0 to 3 as they are saved (`global_step600/`), and Universal (`zero/<parameter>/`).

`latest` beside the folders names the newest; it is written after the states. Which ranks there should be is told by
the names and by the degrees in the model states. One file of model states and one of the optimizer are followed by
their opcodes; of the others the names, the sizes and the ends are looked at.
"""

from collections.abc import Sequence

from cairn.formats.checkpoints import torch_files, torch_weights
from cairn.formats.checkpoints.deepspeed_content import States, read_states
from cairn.formats.checkpoints.deepspeed_layout import layout_of
from cairn.formats.checkpoints.deepspeed_names import Names, missing_of, names_of
from cairn.formats.checkpoints.deepspeed_universal import (
    SETTINGS,
    missing_universal,
    universal_optimizer,
    universal_weights,
)
from cairn.formats.checkpoints.documents import read_text
from cairn.formats.checkpoints.pointed import read_inside
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Pieces,
    Presence,
    Tensor,
    Unreadable,
    absent,
    lacking,
    path_text,
    present,
    unknown,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, claims_of_place, decide_step, step_from_name
from cairn.formats.checkpoints.weights import Weights
from cairn.formats.checkpoints.zip_ends import cut_short

NAME = "deepspeed"
LOOKS_FOR = "mp_rank_*_model_states.pt, zero_pp_rank_*_optim_states.pt, or zero/<parameter>/fp32.pt"
POINTERS = ("latest", "latest_universal")


def matches(listing: Listing) -> bool:
    return _folder(listing) is not None


def read(listing: Listing) -> Inspection:
    folder = _folder(listing)
    if not folder:
        return _read(listing, ())
    inner = listing.below(folder)
    said = {name: _text(listing, name) for name in POINTERS if name in listing}
    named = folder in said.values()
    found = read_inside(inner, lambda own: _read(own, claims_of_place(listing.root), named=named))
    others = sorted(each for each in _state_folders(listing) if each != folder)
    facts = {**found.facts, **said, **({"other_checkpoints": others} if others else {})}
    # `latest` may outlive what it names (rotation), or be of a save that did not end.
    gone = {} if named else said
    told = tuple(f"{name} says {gone[name]!r}, and {folder} is what is there" for name in gone)
    found = found.having(facts=facts, disagreements=(*found.disagreements, *told))
    return _with_random_files(found, listing)


def _folder(listing: Listing) -> str | None:
    """'' where the states lie in the root, or the folder that `latest` means; None where neither is there."""
    if _holds_states(listing):
        return ""
    folders = _state_folders(listing)
    for name in POINTERS:
        if name in listing and _text(listing, name) in folders:
            return _text(listing, name)
    # Without a pointer the one folder that there is; of several none is chosen.
    named = [each for each in folders if step_from_name(each) is not None]
    return named[0] if len(named) == 1 else None


def _state_folders(listing: Listing) -> list[str]:
    return [each for each in listing.folders() if each != "zero" and _holds_states(listing.below(each))]


def _holds_states(listing: Listing) -> bool:
    names = names_of(listing)
    universal = any("fp32" in states for states in names.universal.values())
    files = (*names.model.values(), *names.optim.values())
    # The names are DeepSpeed's alone; one look keeps out a folder of somebody's notes.
    return universal or any(torch_files.looks_so(listing, path) or not listing.size(path) for path in files[:3])


def _text(listing: Listing, path: str) -> str:
    try:
        return path_text(read_text(listing, path, 1024))
    except Unreadable:
        return ""


def _read(listing: Listing, outer: Sequence[StepClaim], *, named: bool = False) -> Inspection:
    """`named`: by `latest`, so that what there is of it is all."""
    names = names_of(listing)
    problems = cut_short(listing, [*names.files(), *(path for path in (SETTINGS,) if path in listing)])
    states = read_states(listing, _first(names.model), _first(names.optim), problems)
    layout, disagreements = layout_of(names, states)
    dp, mp = states.count("dp_world_size"), states.count("mp_world_size")
    missing = missing_of(names, None if names.universal else dp, mp) + missing_universal(names, states, listing)
    step = decide_step((*states.claims(), *claims_of_place(listing.root), *outer))
    weights = _weights_of(states, names)
    pieces = _pieces(names, states, missing)
    # Model states come first: alone they are a save without an optimizer, or the beginning of one.
    whole = named or pieces.optimizer.state is Presence.PRESENT
    known = bool(names.universal) or (dp is not None and mp is not None and whole)
    return Inspection(
        format="deepspeed-universal" if names.universal else "deepspeed-zero",
        format_version=states.version(),
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=(*step.disagreements, *disagreements),
        pieces=pieces,
        layout=layout,
        parameter_count=weights.parameter_count if weights.read else None,
        dtypes=weights.dtypes,
        tensor_count=weights.tensor_count if weights.read else None,
        tensors=tuple(weights.tensors),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=False if problems or missing else True if known else None,
        missing=tuple(missing),
        problems=tuple(problems),
        facts={**states.facts(), "files_of_model": len(names.model), "files_of_optimizer": len(names.optim)},
    )


def _pieces(names: Names, states: States, missing: Sequence[str]) -> Pieces:
    """A file of model states that is missing takes weights with it, one of optimizer states its part of the moments;
    under ZeRO 3 the weights are partitioned among the latter."""
    of_optimizer = [path for path in missing if "optim_states" in path or "/exp_avg" in path or path == SETTINGS]
    of_model = [path for path in missing if path not in of_optimizer]
    return Pieces(
        lacking(_weights(names, states), missing if names.partitioned else of_model),
        lacking(_optimizer(names, states), missing if names.universal else of_optimizer),
        states.position(),
        states.random(),
    )


def _first(files: dict[tuple[int, int], str]) -> str | None:
    return files[min(files)] if files else None


def _weights_of(states: States, names: Names) -> Weights:
    """Tensors of the whole model: only where one model-parallel rank holds it all."""
    found = Weights(files=[states.file])
    if (states.count("mp_world_size") or names.mp) != 1 or names.layers or names.experts:
        return found
    if not names.partitioned and states.has_module():
        torch_weights.add_tensors(found, states.value.get("module"), states.file)
    else:
        for name, shape in states.shapes().items():
            found.add(Tensor(path_text(name), "unknown", shape), counted=True)
        found.dtypes = {}
    found.read = int(found.tensor_count > 0)
    return found


def _weights(names: Names, states: States) -> Finding:
    if names.universal:
        return universal_weights(names)
    if names.layers:
        return present(f"{len(names.layers):,} files of pipeline layers")
    if names.partitioned:
        # Under ZeRO 3 the parameters are partitioned with the optimizer's master copies.
        if names.optim:
            return present(f"ZeRO 3: partitions in {len(names.optim):,} optimizer files, {_first(names.optim)} and on")
        return absent("ZeRO 3: the partitions are in the optimizer files, and none is there")
    if not names.model:
        return absent("no file of model states")
    if not states.value:
        return unknown(f"{states.file} could not be read")
    if states.has_module():
        return present(f"{states.file} module")
    return absent(f"{states.file} module holds no tensor")


def _optimizer(names: Names, states: States) -> Finding:
    scheduler = states.scheduler()
    if names.universal:
        return universal_optimizer(names, scheduler)
    if names.optim or names.expert_optim:
        count = len(names.optim) + len(names.expert_optim)
        first = _first(names.optim) or _first(names.expert_optim)
        return present(f"{count:,} files of optimizer states, {first} and on{scheduler}")
    if not states.value:
        return unknown("no model states could be read")
    if states.value.get("optimizer") is not None:
        return present(f"{states.file} optimizer{scheduler}")
    return absent(f"no file of optimizer states, and {states.file} has no optimizer")


def _with_random_files(found: Inspection, listing: Listing) -> Inspection:
    """Accelerate and Trainer keep random states beside the folder of DeepSpeed."""
    beside = [path for path in listing.top() if path.startswith(("random_states_", "rng_state"))]
    if not beside or found.pieces.random_state.state is Presence.PRESENT:
        return found
    told = present(f"{beside[0]}, {len(beside)} files beside the states")
    pieces = Pieces(**{**dict(found.pieces.items()), "random_state": told})
    return found.having(pieces=pieces)
