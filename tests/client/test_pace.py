"""A background thread that keeps a pace rests between small pieces of its work, and hurries for who waits for it."""

import threading
import time
from collections.abc import Callable

import pytest
from cairn import pace as paces
from cairn.pace import Pace, is_gentle, rest


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> Callable[[Pace | None, float], list[float]]:
    """How long a thread of this pace rests in five pieces of so many seconds of work."""

    def measure(pace: Pace | None, piece: float) -> list[float]:
        slept: list[float] = []
        really_sleep = time.sleep

        def sleep(seconds: float) -> None:
            """Noted for the measured thread alone: others of this process may sleep meanwhile."""
            if threading.current_thread() is thread:
                slept.append(seconds)
            else:
                really_sleep(seconds)

        def run() -> None:
            if pace is not None:
                pace.keep()
            for _ in range(5):
                ends = time.thread_time() + piece
                while time.thread_time() < ends:
                    pass
                rest()

        thread = threading.Thread(target=run)
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", sleep)
            thread.start()
            thread.join()
        return slept

    return measure


def test_most_of_the_time_is_left_to_training(rests: Callable[[Pace | None, float], list[float]]) -> None:
    found = rests(Pace(), 0.001)
    assert len(found) == 5
    assert all(each >= 0.001 * paces.REST_FOR_WORK for each in found)


def test_a_piece_that_was_long_is_rested_from_for_a_bounded_time(
    rests: Callable[[Pace | None, float], list[float]],
) -> None:
    assert rests(Pace(), 0.03) == [paces.LONGEST_REST_SECONDS] * 5


def test_nobody_rests_where_somebody_waits_or_the_process_ends(
    rests: Callable[[Pace | None, float], list[float]],
) -> None:
    pace = Pace()
    with pace.hurried():
        assert rests(pace, 0.001) == []
    assert len(rests(pace, 0.001)) == 5
    pace.hurry()
    assert rests(pace, 0.001) == []


def test_a_thread_without_a_pace_never_rests(rests: Callable[[Pace | None, float], list[float]]) -> None:
    assert rests(None, 0.001) == []
    assert not is_gentle()
