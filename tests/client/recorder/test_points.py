"""Points are on disk before the save that follows them, however many they are and wherever their numbers lie."""

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import cairn
import pytest
from cairn.recorder import Recorder, engine
from cairn.recorder.points import QUICK_VALUES
from cairn.spool.backlog import Backlog

from tests.client.until import LATEST, until


class OnDevice:
    """A number of a GPU that is busy."""

    is_cuda = True

    def detach(self) -> "OnDevice":
        return self

    clone = detach

    def item(self) -> float:
        time.sleep(0.05)
        return 2.5


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """One whose background does nothing by itself for a minute."""
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CAIRN_TOKEN", "a-token")
    monkeypatch.setattr(engine, "TICK_SECONDS", 600.0)
    went_round = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(engine.Engine, "_speak", lambda self: went_round.set())  # what the disk's thread does last
        engine.engine()
        assert went_round.wait(LATEST)
    begun = cairn.start("p", "r", capture=False)
    assert isinstance(begun, Recorder)
    return begun


@pytest.fixture
def may_write(run: Recorder, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until it is set, the background does nothing at all."""
    told, real = threading.Event(), run._engine.writer.tick

    def tick() -> None:
        told.wait(LATEST)
        real()

    monkeypatch.setattr(run._engine.writer, "tick", tick)
    yield told
    told.set()


def written(run: Recorder) -> list[tuple[str, Any]]:
    """What stands on disk, in order: of points their steps, of saves theirs."""
    folder = run._engine.writer.folder
    assert folder is not None
    records = [each.record for each in Backlog(folder).records()]
    return [
        (each["kind"], each["curves"]["loss"]["steps"] if each["kind"] == "points" else each.get("step"))
        for each in records
        if each["kind"] != "start"
    ]


def written_through(run: Recorder, last: tuple[str, Any]) -> list[tuple[str, Any]]:
    until(lambda: last in written(run) and not run._engine.writer.waiting)
    return written(run)


def test_what_was_logged_before_a_save_is_on_disk_with_it(run: Recorder) -> None:
    for step in (1, 2, 3):
        run.log(step, loss=1.0 / step)
    assert run.saving(3)
    run.log(4, loss=0.1)
    assert run.saved("/ckpt/3", step=3)
    assert written(run) == [("points", [1, 2, 3]), ("saving", 3), ("points", [4]), ("saved", 3)]


@pytest.mark.parametrize(
    "values", [[1.0] * (QUICK_VALUES + 1), [OnDevice()]], ids=["more than a call may write", "on a GPU"]
)
def test_a_save_after_what_takes_longer_waits_behind_it_for_a_moment(
    run: Recorder, may_write: threading.Event, values: list[Any]
) -> None:
    for step, value in enumerate(values):
        run.log(step, loss=value)
    assert not run.saved("/ckpt/a", step=500)
    run.log(501, loss=1.0)
    assert not run.saved("/ckpt/b", step=501)
    may_write.set()
    found = written_through(run, ("saved", 501))
    order = [step for kind, steps in found for step in (steps if kind == "points" else [f"save {steps}"])]
    assert [each for each in order if each != 501] == [*range(len(values)), "save 500", "save 501"]
    assert order.index(501) < order.index("save 501")


def test_a_save_that_is_told_again_is_on_disk_no_sooner_than_it_is(run: Recorder, may_write: threading.Event) -> None:
    run.log(1, loss=OnDevice())
    assert not run.saved("/ckpt/a", step=1)
    assert not run.saved("/ckpt/a", step=1)
    may_write.set()
    written_through(run, ("saved", 1))
    assert run.saved("/ckpt/a", step=1)
    assert [kind for kind, _ in written(run)] == ["points", "saved"]


def test_the_end_of_an_attempt_tells_the_last_points_that_were_still_being_read(run: Recorder) -> None:
    run.log(1, loss=OnDevice())
    run.log(2, loss=OnDevice())
    run.finish()
    found = written_through(run, ("finish", None))
    assert found == [("points", [1, 2]), ("points", [1, 2]), ("finish", None)]


def test_a_save_and_the_points_before_it_are_one_write(run: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write gives the turn to whatever else runs in the process, and has to wait to get it back."""
    writes: list[bytes] = []
    real, here = os.write, threading.current_thread()

    def write(handle: int, content: bytes) -> int:
        if threading.current_thread() is here:  # the background has its own
            writes.append(content)
        return real(handle, content)

    run.log(1, loss=1.0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        assert run.saved("/ckpt/1", step=1, loss=1.0)
    assert [each.count(b"\n") for each in writes] == [2]


def test_a_save_that_cannot_be_written_down_costs_no_point(run: Recorder) -> None:
    run.log(1, loss=1.0)
    with pytest.raises(TypeError):
        run._points.write_before({"kind": "saved", "key": run.key, "step": object()})
    assert written(run) == [("points", [1])]


def test_what_is_logged_fast_is_written_so_often_that_a_save_need_not_wait_for_it(run: Recorder) -> None:
    for step in range(QUICK_VALUES // 2):
        run.log(step, loss=1.0)
    written_through(run, ("points", list(range(QUICK_VALUES // 2))))
    for step in range(QUICK_VALUES // 2, QUICK_VALUES + 1):
        run.log(step, loss=1.0)
    assert run.saved("/ckpt/a", step=QUICK_VALUES)
