"""Times as they are typed into a form: as the command line reads them, and nothing that is none."""

import pytest
from cairn.cli.quantities import DURATION

from ui.durations import read_seconds


@pytest.mark.parametrize("text", ["600", "90s", "10m", "1h30m", "2d", "1.5h", "0.5"])
def test_the_page_and_the_command_line_read_a_time_alike(text: str) -> None:
    assert read_seconds(text) == DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10 min", 600), (" 1 200 ", 1200), ("1,200", 1200), ("90 S", 90), ("1\u202f200 s", 1200)]
)
def test_a_person_may_write_spaces_and_groups_of_digits(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "0", "-5", "1,5h", "10x", "m", "1e9", "nan", "9" * 40, "\u0661m", "40000d"]
)
def test_what_is_no_time_is_not_guessed(text: str) -> None:
    assert read_seconds(text) is None
