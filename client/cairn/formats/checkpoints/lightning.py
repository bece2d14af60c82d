"""Lightning's `.ckpt`: one file of `torch.save` whose keys say what is in it.

Lightning does not save random states, and it does not skip batches on a restart: in the middle of an epoch the
data position is there only where the loader gave its own state; at an epoch's end its count is enough.
"""

import re
from collections.abc import Mapping
from typing import Any

from cairn.formats.checkpoints import torch_files, torch_weights
from cairn.formats.checkpoints.shapes import (
    Finding,
    Inspection,
    Pieces,
    PositionEvidence,
    Problem,
    Unreadable,
    absent,
    present,
    unknown,
)
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import claim_of, claims_of_place, decide_step
from cairn.formats.checkpoints.weights import Weights

NAME = "lightning"
LOOKS_FOR = "a .ckpt file of torch.save with the key pytorch-lightning_version"
VERSION = "pytorch-lightning_version"


def matches(listing: Listing) -> bool:
    """One file, since every `.ckpt` is a checkpoint of its own."""
    if len(listing.files) != 1:
        return False
    (path,) = listing.files
    if not torch_files.looks_so(listing, path):
        return False
    try:
        head = listing.head(path)
        if VERSION.encode() in head:
            return True
        value = torch_files.read(listing, path).value if path.endswith(".ckpt") else None
    except Unreadable:
        return False
    return isinstance(value, dict) and VERSION in value


def read(listing: Listing) -> Inspection:
    (path,) = listing.files
    weights = Weights(files=[path])
    try:
        file = torch_files.read(listing, path)
    except Unreadable as fault:
        weights.fault(path, str(fault))
        return _unread(listing, weights)
    value = file.value if isinstance(file.value, dict) else {}
    if isinstance(value.get("state_dict"), dict):
        torch_weights.add_tensors(weights, value["state_dict"], path)
    for problem in file.problems:
        weights.fault(path, problem)
    claims = [*claim_of(value.get("global_step"), f"{path} global_step"), *claims_of_place(listing.root)]
    step = decide_step(claims)
    opaque = tuple(name for name in file.globals if not _is_torch(name))
    problems = [Problem(path, f"names classes that are not built here: {', '.join(opaque[:5])}")] if opaque else []
    return Inspection(
        format=NAME,
        format_version=str(value[VERSION]) if isinstance(value.get(VERSION), str) else None,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements,
        pieces=Pieces(
            weights.finding if "state_dict" in value else absent(f"{path} has no state_dict"),
            _optimizer(value),
            _position(value),
            _random(value),
        ),
        **weights.numbers(),
        bytes=listing.total_bytes,
        files=1,
        complete=weights.sound,
        problems=(*weights.problems, *problems),
        facts=_facts(value),
    )


def _unread(listing: Listing, weights: Weights) -> Inspection:
    """Of a file that is cut short or hostile: its name, and why nothing of it is told."""
    nothing = unknown("the file could not be read")
    step = decide_step(claims_of_place(listing.root))
    return Inspection(
        format=NAME,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        pieces=Pieces(weights.finding, nothing, nothing, nothing),
        bytes=listing.total_bytes,
        files=1,
        complete=False,
        problems=tuple(weights.problems),
    )


def _optimizer(value: Mapping[str, Any]) -> Finding:
    states = value.get("optimizer_states")
    if not isinstance(states, list):
        return absent("no key optimizer_states: saved with weights only")
    if not states:
        return absent("optimizer_states is empty")
    schedulers = value.get("lr_schedulers")
    count = len(schedulers) if isinstance(schedulers, list) else 0
    scalers = [key for key in value if isinstance(key, str) and key.endswith(("MixedPrecision", "Precision"))]
    return present(f"optimizer_states ({len(states)}), lr_schedulers ({count}){', ' + scalers[0] if scalers else ''}")


def _position(value: Mapping[str, Any]) -> Finding:
    loops = value.get("loops")
    fit = loops.get("fit_loop") if isinstance(loops, dict) else None
    if not isinstance(fit, dict):
        return absent("no key loops.fit_loop")
    if loaders := _at(fit, "state_dict", "combined_loader"):
        how = f"loops.fit_loop combined_loader: the state of {len(loaders)} loaders"
        return present(how, PositionEvidence.STATE)
    # A callback saves before the batch counts as completed.
    done = _at(fit, "epoch_loop.batch_progress", "current", "processed")
    if done is None:
        return unknown("loops.fit_loop without a count of batches")
    if done == 0 or _at(fit, "epoch_loop.batch_progress", "is_last_batch") is True:
        epochs = _at(fit, "epoch_progress", "current", "completed")
        return present(f"loops.fit_loop: at the end of an epoch ({epochs} completed)", PositionEvidence.COUNTER)
    return absent(
        f"loops.fit_loop: {done} batches into an epoch; the loader gave no state, and Lightning does not skip batches"
    )


def _random(value: Mapping[str, Any]) -> Finding:
    for key in value:
        if isinstance(key, str) and re.search(r"rng|random_state", key):
            return present(f"key {key}")
    return absent("Lightning saves no random states, and no key names one")


def _facts(value: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if isinstance(value.get("epoch"), int):
        facts["epoch"] = value["epoch"]
    if name := value.get("hparams_name"):
        facts["hyper_parameters_as"] = str(name)
    callbacks = value.get("callbacks")
    if isinstance(callbacks, dict):
        facts["callbacks"] = [str(key).partition("{")[0] for key in callbacks]
        for state in callbacks.values():
            if isinstance(state, dict) and isinstance(state.get("best_model_path"), str) and state["best_model_path"]:
                facts["best"] = {"checkpoint": state["best_model_path"], "monitor": state.get("monitor")}
    facts["keys"] = [str(key) for key in value]
    return facts


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_torch(name: str) -> bool:
    return name.startswith(
        ("torch.", "collections.", "builtins.", "numpy.", "_codecs.", "lightning.", "pytorch_lightning.")
    )
