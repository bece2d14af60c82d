"""What a folder of weights says, whatever wrote them: their numbers, and the state that lies beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from cairn.formats.checkpoints.beside import read_beside
from cairn.formats.checkpoints.shapes import Finding, Inspection, Problem
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import StepClaim, claims_of_place, decide_step
from cairn.formats.checkpoints.trainer_state import of_another_program
from cairn.formats.checkpoints.weights import Weights


def describe_weights(
    listing: Listing,
    name: str,
    found: Weights,
    *,
    finding: Finding | None = None,
    claims: Sequence[StepClaim] = (),
    problems: Sequence[Problem] = (),
    facts: Mapping[str, Any] | None = None,
) -> Inspection:
    """The inspection of format `name`; a reader adds what only it knows, its step claims coming first."""
    beside = read_beside(listing, finding or found.finding, found.files)
    step = decide_step([*claims, *beside.steps, *claims_of_place(listing.root)])
    return Inspection(
        format=name,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements,
        pieces=beside.pieces,
        **found.numbers(),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=found.sound and not beside.problems,
        missing=tuple(found.missing),
        problems=(*found.problems, *problems, *beside.problems, *of_another_program(listing)),
        facts={**beside.facts, **(facts or {})},
    )
