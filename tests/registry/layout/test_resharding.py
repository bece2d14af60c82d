"""Each cell of the table of formats and changes, the data position, and what is never a yes."""

import pytest

from registry.layout.cells import Verdict
from registry.layout.resharding import COUNTER, STATE, compatibility
from registry.layout.spec import ContradictoryLayout, Degrees, Saved, describe
from registry.types import PieceName, Presence

ALL_THERE = dict.fromkeys(PieceName, Presence.PRESENT)
E, C, D, R, N = Verdict
BASE = Degrees(world_size=64, tp=4, pp=2, dp=8, cp=1, ep=1)
# What a change of one degree leaves of the others: DP takes what TP, PP or CP give up.
CHANGED = {
    "dp": Degrees(world_size=32, tp=4, pp=2, dp=4, cp=1, ep=1),
    "tp": Degrees(world_size=32, tp=2, pp=2, dp=8, cp=1, ep=1),
    "pp": Degrees(world_size=32, tp=4, pp=1, dp=8, cp=1, ep=1),
    "ep": Degrees(world_size=64, tp=4, pp=2, dp=8, cp=1, ep=4),
    "cp": Degrees(world_size=128, tp=4, pp=2, dp=8, cp=2, ep=1),
}
DCP = ("torch-dcp", None, {})
DCP_GLOBAL = ("torch-dcp", None, {"global_names": True})
DCP_FLATTENED = ("torch-dcp", None, {"global_names": True, "flattened_optimizer": True})
FULL = ("megatron-dist", None, {"distrib_optim_sharding_type": "fully_reshardable"})
FULL_LEGACY = ("megatron-dist", "fully_sharded_model_space", {})
DP = ("megatron-dist", "dp_reshardable", {})
GATHERED = ("megatron-dist", "dp_zero_gather_scatter", {})
MEGATRON = ("megatron-dist", None, {})
ZERO_2 = ("deepspeed", "zero-2", {"zero_stage": 2})
ELASTIC = ("deepspeed", "zero-1", {"zero_stage": 1, "elastic_checkpoint": True})
ZERO_3 = ("deepspeed", "zero-3", {"zero_stage": 3})
UNIVERSAL_2 = ("deepspeed", "universal", {"zero_stage": 2})
UNIVERSAL_3 = ("deepspeed", "universal", {"zero_stage": 3})
UNIVERSAL = ("deepspeed", "universal", {})
WEIGHTS = ("safetensors", None, {})
TRAINER = ("hf-trainer", None, {})
OTHER = ("something-new", None, {})

# format, then for dp, tp, pp, ep, cp: verdicts of (weights, optimizer).
TABLE = [
    (DCP, (E, E), (D, D), (D, D), (D, D), (E, E)),
    (DCP_GLOBAL, (E, E), (E, E), (E, D), (D, D), (E, E)),
    (DCP_FLATTENED, (E, E), (E, E), (E, E), (D, D), (E, E)),
    (FULL, (E, E), (E, E), (E, E), (D, D), (E, E)),
    (FULL_LEGACY, (E, E), (E, E), (E, E), (D, D), (E, E)),
    (DP, (E, E), (E, R), (E, R), (D, D), (D, D)),
    (GATHERED, (E, E), (E, R), (E, R), (D, D), (E, E)),
    (MEGATRON, (E, D), (E, D), (E, D), (D, D), (D, D)),
    (ZERO_2, (E, C), (C, C), (C, C), (D, D), (D, D)),
    (ELASTIC, (E, D), (C, C), (C, C), (D, D), (D, D)),
    (ZERO_3, (E, D), (D, D), (N, N), (N, N), (D, D)),
    (UNIVERSAL_2, (E, E), (E, E), (E, E), (D, D), (E, E)),
    (UNIVERSAL_3, (D, D), (D, D), (N, N), (N, N), (D, D)),
    (UNIVERSAL, (D, D), (D, D), (D, D), (D, D), (D, D)),
    (WEIGHTS, (E, D), (E, D), (E, D), (E, D), (E, D)),
    (TRAINER, (E, D), (E, D), (E, D), (E, D), (E, D)),
    (OTHER, (D, D), (D, D), (D, D), (D, D), (D, D)),
]
CELLS = [
    pytest.param(what, degree, expected, id=f"{what[1] or what[0]}-{place}-{degree}")
    for place, (what, *cells) in enumerate(TABLE)
    for degree, expected in zip(CHANGED, cells, strict=True)
]


def verdicts(saved: Saved, now: Degrees, **known: object) -> dict[str, Verdict]:
    found = compatibility(saved, now, ALL_THERE, **known)  # type: ignore[arg-type]
    return {name.value: fit.verdict for name, fit in found.pieces.items()}


def recorded(what: tuple[str, str | None, dict[str, object]], degrees: Degrees = BASE) -> Saved:
    name, sharding, extra = what
    return describe(name, sharding, degrees, extra)


@pytest.mark.parametrize(("what", "degree", "expected"), CELLS)
def test_each_cell_of_the_table(
    what: tuple[str, str | None, dict[str, object]], degree: str, expected: tuple[Verdict, Verdict]
) -> None:
    found = verdicts(recorded(what), CHANGED[degree], position=COUNTER)
    assert (found["weights"], found["optimizer"]) == expected


@pytest.mark.parametrize("what", [row[0] for row in TABLE])
def test_the_same_layout_loads_everything_exactly(what: tuple[str, str | None, dict[str, object]]) -> None:
    assert set(verdicts(recorded(what), BASE, position=STATE).values()) == {E}
    assert set(verdicts(recorded(what), Degrees(), position=STATE).values()) == {E}


@pytest.mark.parametrize("what", [DCP, FULL, DP, GATHERED, ZERO_2, UNIVERSAL_2, OTHER])
@pytest.mark.parametrize("degree", ["dp", "tp", "pp", "ep", "cp"])
def test_an_unknown_degree_is_never_a_yes_and_never_a_refusal(
    what: tuple[str, str | None, dict[str, object]], degree: str
) -> None:
    saved = recorded(what, Degrees(**{each: getattr(BASE, each) for each in CHANGED if each != degree}))
    asked = Degrees(**{degree: getattr(CHANGED[degree], degree)})
    found = verdicts(saved, asked, position=COUNTER)
    assert (found["weights"], found["optimizer"]) == (D, D)


@pytest.mark.parametrize("what", [FULL, DP, GATHERED])
@pytest.mark.parametrize("degree", ["tp", "pp"])
def test_megatron_drops_the_random_state_where_tp_or_pp_change(
    what: tuple[str, str | None, dict[str, object]], degree: str
) -> None:
    fit = compatibility(recorded(what), CHANGED[degree], ALL_THERE).pieces[PieceName.RANDOM_STATE]
    assert fit.verdict is R
    assert "dropped" in fit.words


@pytest.mark.parametrize(
    ("before", "after", "extra", "expected"),
    [
        (40, 20, {}, E),  # 1 M x DP does not exceed 40 M on either side
        (80, 40, {}, R),  # 80 M against 40 M
        (80, 64, {}, R),
        (80, 40, {"ddp_bucket_size": 40_000_000}, E),
    ],
)
def test_dp_reshardable_asserts_bucket_sizes_which_change_past_forty(
    before: int, after: int, extra: dict[str, object], expected: Verdict
) -> None:
    saved = recorded((*DP[:2], extra), Degrees(tp=1, pp=1, dp=before, cp=1, ep=1))
    found = compatibility(saved, Degrees(dp=after), ALL_THERE, position=COUNTER)
    assert found.pieces[PieceName.OPTIMIZER].verdict is expected
    assert found.pieces[PieceName.WEIGHTS].verdict is E
    if expected is R:
        assert "ddp_bucket_size" in found.pieces[PieceName.OPTIMIZER].words


def test_bucket_sizes_of_an_unknown_cp_need_a_drill() -> None:
    saved = recorded(DP, Degrees(tp=1, pp=1, dp=16))
    assert verdicts(saved, Degrees(dp=8), position=COUNTER)["optimizer"] is D


# The data position.


@pytest.mark.parametrize(
    ("known", "degree", "expected"),
    [
        ({"position": STATE}, "dp", R),  # the loader asserts an equal number of DP ranks
        ({"position": STATE, "counted": True}, "dp", D),  # the way out: skip by consumed samples
        ({"position": STATE}, "tp", E),
        ({"position": STATE}, "pp", E),
        ({"position": COUNTER}, "dp", D),
        ({"position": COUNTER}, "tp", E),
        ({}, "dp", D),
    ],
)
def test_a_loader_state_does_not_follow_another_number_of_dp_ranks(
    known: dict[str, object], degree: str, expected: Verdict
) -> None:
    assert verdicts(recorded(FULL), CHANGED[degree], **known)["data_position"] is expected


def test_a_counter_says_what_it_rests_on() -> None:
    found = compatibility(recorded(FULL), CHANGED["tp"], ALL_THERE, position=COUNTER)
    assert "seed and global batch size are equal" in found.pieces[PieceName.DATA_POSITION].words
    free = recorded((*FULL[:2], {"layout_free_order": True, **FULL[2]}))
    assert verdicts(free, CHANGED["dp"], position=COUNTER)["data_position"] is E


def test_the_fault_of_a_cursor_dropped_in_silence_is_a_refusal_of_that_piece_alone() -> None:
    """Data-parallel 2 to 1: tensors load, the cursor does not, and the answer says both."""
    saved = recorded(DCP, Degrees(world_size=2, tp=1, pp=1, dp=2, cp=1, ep=1))
    found = verdicts(saved, Degrees(world_size=1), position=STATE)
    assert found == {"weights": E, "optimizer": E, "data_position": R, "random_state": D}


# Number of ranks alone; what cannot be at all.


def test_a_number_of_ranks_keeps_tp_and_pp_and_changes_dp() -> None:
    found = compatibility(recorded(FULL), Degrees(world_size=32), ALL_THERE, position=COUNTER)
    assert found.told == "dp 8 to 4"
    assert found.assumed == ("tp stays 4", "pp stays 2")


def test_ranks_that_cannot_hold_what_was_saved_load_nothing() -> None:
    found = compatibility(recorded(FULL), Degrees(world_size=30), ALL_THERE, position=COUNTER)
    assert {fit.verdict for fit in found.pieces.values()} == {N}
    assert "30 ranks" in found.pieces[PieceName.WEIGHTS].words


def test_a_change_of_ranks_whose_split_is_unknown_needs_a_drill() -> None:
    found = compatibility(recorded(FULL, Degrees(world_size=64)), Degrees(world_size=32), ALL_THERE, position=COUNTER)
    assert found.told == "world_size 64 to 32"
    assert {fit.verdict for fit in found.pieces.values()} == {D}


@pytest.mark.parametrize("target", [Degrees(world_size=32, tp=4, pp=2, dp=8, cp=1), Degrees(world_size=30, tp=4)])
def test_a_target_that_contradicts_itself_is_refused(target: Degrees) -> None:
    with pytest.raises(ContradictoryLayout, match="contradicts itself"):
        compatibility(recorded(FULL), target, ALL_THERE)


def test_another_model_loads_nothing() -> None:
    found = compatibility(recorded(FULL), BASE, ALL_THERE, impossible="the number of layers is 32 and was saved as 24")
    assert {fit.verdict for fit in found.pieces.values()} == {N}


def test_a_piece_that_is_absent_or_unknown_is_not_promised() -> None:
    presence = {**ALL_THERE, PieceName.OPTIMIZER: Presence.ABSENT, PieceName.RANDOM_STATE: Presence.UNKNOWN}
    found = compatibility(recorded(FULL), BASE, presence)
    assert found.pieces[PieceName.OPTIMIZER].verdict is N
    assert found.pieces[PieceName.RANDOM_STATE].verdict is D
    assert found.pieces[PieceName.WEIGHTS].verdict is E


def test_optimizer_states_of_megatron_core_0_14_are_converted_for_0_15() -> None:
    old = recorded((*FULL[:2], {**FULL[2], "mcore_version": "0.14.0"}))
    assert verdicts(old, BASE, mcore=(0, 15))["optimizer"] is C
    assert verdicts(old, BASE, mcore=(0, 14))["optimizer"] is E
    new = recorded((*FULL[:2], {**FULL[2], "mcore_version": "0.15"}))
    assert verdicts(new, BASE, mcore=(0, 15))["optimizer"] is E


def test_a_change_of_tp_warns_of_the_vocabulary_padding() -> None:
    found = compatibility(recorded(FULL), CHANGED["tp"], ALL_THERE)
    assert "trim or pad" in found.pieces[PieceName.WEIGHTS].words


def test_several_changes_give_the_worst_of_their_cells() -> None:
    now = Degrees(world_size=16, tp=2, pp=2, dp=4, cp=1, ep=1)
    found = verdicts(recorded(DP), now, position=COUNTER)
    assert (found["weights"], found["optimizer"]) == (E, R)
    now = Degrees(world_size=32, tp=2, pp=1, dp=16, cp=1, ep=4)
    assert verdicts(recorded(FULL), now, position=COUNTER)["optimizer"] is D
