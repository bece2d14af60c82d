"""Counts and lists as sentences say them."""

import pytest

from registry.wording import counted, listed


def test_a_count_agrees_with_its_noun() -> None:
    assert (counted(1, "copy", "copies"), counted(0, "copy", "copies"), counted(3, "run")) == (
        "1 copy",
        "0 copies",
        "3 runs",
    )


@pytest.mark.parametrize(
    ("names", "most", "said"),
    [
        ("", None, ""),
        ("a", None, "a"),
        ("ab", None, "a and b"),
        ("abc", 3, "a, b and c"),
        ("abcd", 3, "a, b, c and 1 more"),
        ("abcdef", 1, "a and 5 more"),
        ("abcdef", None, "a, b, c, d, e and f"),
    ],
)
def test_a_list_ends_with_and_and_counts_what_it_does_not_name(names: str, most: int | None, said: str) -> None:
    assert listed(iter(names), most) == said
