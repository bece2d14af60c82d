"""What an execution loaded, told from its first step: only what the steps really tell."""

import pytest
from cairn.spool.origin import Committed, Evidence, explain, loaded_by_steps

KEPT = [Committed(1, step, "archive") for step in (1000, 2000, 3000)]


@pytest.mark.parametrize(
    ("step", "is_save", "loaded"),
    [
        (3001, False, 3000),  # the next step
        (3000, False, 3000),  # loops whose checkpoint counts finished steps
        (3010, False, 3000),  # logged every ten steps
        (2001, False, 2000),  # an older one was loaded: 3000 was bad
        (4000, True, 3000),  # nothing was logged, the next save tells
        (3000, True, 2000),  # a save at 3000 cannot have come from the one at 3000
        (1, False, None),  # it may have started over, or counts anew
        (0, False, None),
        (1000, True, None),  # the same script once more
    ],
)
def test_the_newest_checkpoint_at_or_before_the_first_step(step: int, is_save: bool, loaded: int | None) -> None:
    found = loaded_by_steps(Evidence(step, is_save), KEPT)
    assert (found and found.step) == loaded


def test_at_one_step_the_newest_attempt_and_the_archive_count() -> None:
    several = [Committed(1, 5, "archive"), Committed(2, 5, "light"), Committed(2, 5, "archive")]
    assert loaded_by_steps(Evidence(6, False), several) == Committed(2, 5, "archive")


def test_the_assumption_is_said_in_words() -> None:
    assert "assumed" in explain(Evidence(6, False), Committed(2, 5, "archive"))
    assert "attempt 2, step 5" in explain(Evidence(6, True), Committed(2, 5, "archive"))
