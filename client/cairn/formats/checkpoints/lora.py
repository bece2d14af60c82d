"""Adapters (LoRA and its relatives) as PEFT writes them: `adapter_config.json` beside `adapter_model`."""

from typing import Any

from cairn.formats.checkpoints import safetensors, torch_weights
from cairn.formats.checkpoints.documents import read_json
from cairn.formats.checkpoints.shapes import Inspection, Presence, Problem, Unreadable, present
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.weights_alone import describe_weights

NAME = "lora"
LOOKS_FOR = "adapter_config.json with a peft_type"
CONFIG = "adapter_config.json"
_FACTS = {"peft_type": "adapter_type", "base_model_name_or_path": "base_model", "r": "rank", "lora_alpha": "alpha"}


def matches(listing: Listing) -> bool:
    if CONFIG not in listing:
        return False
    try:
        document = read_json(listing, CONFIG)
    except Unreadable:
        return False
    return isinstance(document, dict) and "peft_type" in document


def read(listing: Listing) -> Inspection:
    problems: list[Problem] = []
    facts = facts_of(listing, problems)
    is_torch = "adapter_model.safetensors" not in listing and "adapter_model.bin" in listing
    if is_torch:
        weights = torch_weights.read_weights(listing, ["adapter_model.bin"])
    else:
        weights = safetensors.read_weights(listing, ["adapter_model.safetensors"])[0]
    finding = weights.finding
    if finding.state is Presence.PRESENT:
        finding = present(f"{finding.evidence}, of an adapter of {facts.get('base_model') or 'an unnamed model'}")
    return describe_weights(listing, NAME, weights, finding=finding, problems=problems, facts=facts)


def facts_of(listing: Listing, problems: list[Problem]) -> dict[str, Any]:
    """What the adapter's configuration says of it and of the model that it needs."""
    try:
        document = read_json(listing, CONFIG)
    except Unreadable as fault:
        problems.append(Problem(CONFIG, str(fault)))
        return {}
    if not isinstance(document, dict):
        return {}
    facts = {ours: document[theirs] for theirs, ours in _FACTS.items() if document.get(theirs) not in (None, "")}
    modules = document.get("target_modules")
    if isinstance(modules, (list, str)):
        facts["target_modules"] = sorted(map(str, modules)) if isinstance(modules, list) else modules
    return facts
