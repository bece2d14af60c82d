"""What undoes a spike of the loss: what is loaded, which data is skipped, and what is said where neither helps."""

import math

import pytest

from registry.recovery.remedy import Origin, Remedy, remedy
from registry.recovery.spikes import LEAD_STEPS, Spike


def spike(first: int, last: int, after: int | None, *, recovered: bool = False) -> Spike:
    return Spike(first, last, after, "sustained", 2.0, 6.0, last - first + 1, recovered)


def at_the_start(*, recovered: bool) -> Spike:
    return Spike(0, 5, None, "non-finite", math.nan, math.nan, 6, recovered)


def test_the_rewind_lies_before_what_may_have_caused_it() -> None:
    cure = remedy(spike(1000, 1020, 999), [700, 850, 950, 999, 1010])
    assert cure.rewind_to == 850  # 950 lies within LEAD_STEPS
    assert cure.skip == (1000 - LEAD_STEPS, 1020)


def test_where_only_a_late_checkpoint_is_left_the_skip_begins_after_it() -> None:
    cure = remedy(spike(1000, 1020, 999), [950, 1010])
    assert (cure.rewind_to, cure.skip) == (950, (951, 1020))


def test_a_curve_that_is_logged_seldom_moves_the_skip_to_the_last_good_point() -> None:
    cure = remedy(spike(10000, 10500, 9500), [9000, 9500, 10000])
    assert (cure.rewind_to, cure.skip) == (9500, (9501, 10500))


def test_a_spike_that_came_back_is_advised_on_without_urging() -> None:
    assert "To undo it all the same" in remedy(spike(1000, 1020, 999, recovered=True), [500]).sentence


def test_without_a_checkpoint_before_it_the_run_starts_again_without_that_data() -> None:
    cure = remedy(spike(50, 60, 49), [55])
    assert (cure.rewind_to, cure.skip, cure.is_needed) == (None, (0, 60), True)
    assert cure.sentence.endswith(
        "no loadable checkpoint was saved before it, so start again from nothing and skip the data of steps 0 to 60."
    )


def test_a_loss_that_was_never_finite_blames_no_data() -> None:
    cure = remedy(at_the_start(recovered=False), [3])
    assert (cure.rewind_to, cure.skip, cure.is_needed) == (None, None, True)
    assert "skip" not in cure.sentence
    assert "look for the cause in the setting before the data" in cure.sentence


def test_a_loss_that_only_began_not_finite_needs_nothing() -> None:
    cure = remedy(at_the_start(recovered=True), [3])
    assert (cure.skip, cure.is_needed) == (None, False)
    assert cure.sentence.endswith("there is nothing to go back to.")


@pytest.mark.parametrize(
    ("found", "origin", "skip"),
    [
        (at_the_start(recovered=False), Origin(5000, "base"), (0, 5)),  # counts its steps anew
        (spike(5001, 5006, None), Origin(5000, "base"), (5001, 5006)),  # counts on
        (spike(5300, 5306, 5299), Origin(5000, "base"), (5200, 5306)),
    ],
)
def test_a_run_that_came_from_another_starts_again_from_there(
    found: Spike, origin: Origin, skip: tuple[int, int]
) -> None:
    cure = remedy(found, [], origin)
    assert (cure.rewind_to, cure.skip) == (None, skip)
    assert f"start again from step 5000 of base and skip the data of steps {skip[0]} to {skip[1]}" in cure.sentence


def test_what_the_run_saved_itself_comes_before_what_it_came_from() -> None:
    cure = remedy(spike(1000, 1000, 999), [500], Origin(400, "base"))
    assert isinstance(cure, Remedy)
    assert cure.rewind_to == 500
    assert "rewind to step 500 and skip the data of steps 900 to 1000" in cure.sentence
