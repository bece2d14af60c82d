"""DeepSpeed's Universal form: for each parameter a folder with its master copy and moments, whole.

zero/<parameter>/fp32.pt, exp_avg.pt, exp_avg_sq.pt, step.pt        and zero/optimizer_state.pt
"""

from collections import Counter

from cairn.formats.checkpoints.deepspeed_content import States
from cairn.formats.checkpoints.deepspeed_names import Names
from cairn.formats.checkpoints.shapes import Finding, absent, present
from cairn.formats.checkpoints.source import Listing

MASTER = "fp32"
SETTINGS = "zero/optimizer_state.pt"


def universal_weights(names: Names) -> Finding:
    whole = sum(MASTER in states for states in names.universal.values())
    if not whole:
        return absent("no zero/<parameter>/fp32.pt")
    return present(f"fp32.pt of {whole:,} parameters below zero/")


def universal_optimizer(names: Names, scheduler: str) -> Finding:
    kinds = _kinds(names) - {MASTER, "step"}
    if not kinds:
        return absent("the parameters below zero/ have no moments")
    return present(f"{', '.join(f'{each}.pt' for each in sorted(kinds))} below zero/{scheduler}")


def missing_universal(names: Names, states: States, listing: Listing) -> list[str]:
    """What some parameters have and others lack, and parameters that the model states name and no folder holds."""
    if not names.universal:
        return []
    counts = Counter(frozenset(files) for files in names.universal.values())
    wanted = {kinds: _wanted(kinds, counts) for kinds in counts}
    missing = [
        f"zero/{name}/{kind}.pt"
        for name, files in names.universal.items()
        for kind in sorted(wanted[frozenset(files)] - files.keys())
    ]
    frozen = states.value.get("frozen_param_shapes")
    trained = [name for name in states.shapes() if not (isinstance(frozen, dict) and name in frozen)]
    missing += [f"zero/{name}/{MASTER}.pt" for name in trained if name not in names.universal]
    return missing + ([SETTINGS] if SETTINGS not in listing else [])


def _kinds(names: Names) -> set[str]:
    return {kind for files in names.universal.values() for kind in files}


def _wanted(kinds: frozenset[str], counts: Counter[frozenset[str]]) -> frozenset[str]:
    """What a parameter should have: the states of others that have all of its own, and more.

    Under Muon some have a momentum and others two moments, so only a part of what another has is suspicious.
    """
    larger = [each for each in counts if kinds < each]
    return max(larger, key=lambda each: (len(each), counts[each]), default=kinds)
