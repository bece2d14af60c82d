"""Numbers that arrive in any order are a set, and the end of its first stretch is known."""

from cairn.spool.numbers import Numbers
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(1, 60), max_size=120))
def test_it_holds_what_was_added(added: list[int]) -> None:
    numbers, known = Numbers(), set()
    for each in added:
        numbers.add(each)
        known.add(each)
        assert len(numbers) == len(known)
        assert numbers.through == next(number - 1 for number in range(1, 62) if number not in known)


def test_a_gap_costs_no_memory() -> None:
    numbers = Numbers()
    for each in (*range(2, 10_000), 20_000):
        numbers.add(each)
    assert numbers.through == 0
    assert len(numbers._ranges) == 2
