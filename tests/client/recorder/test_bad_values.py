"""A value that a script has wrong costs no more than itself, whatever call it stands in."""

from pathlib import Path
from typing import Any

import cairn
import pytest
from cairn import Client
from cairn.recorder import Recorder, engine
from cairn.spool.flush import list_refused

from tests.client.until import LATEST


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def begin(project: str, run: str = "r", **more: Any) -> Recorder:
    recorder = cairn.start(project, run, capture=False, **more)
    assert isinstance(recorder, Recorder)
    return recorder


def attempt_of(live: Client, project: str, run: str = "r") -> dict[str, Any]:
    (attempt,) = live.list_attempts(live.find_run(project, run))
    return attempt.raw


@pytest.mark.parametrize("origin", [3.7, [1], True, {"bogus": 1}, b"x", object(), "/no/such/path", "nope", "a b"])
def test_an_origin_that_names_no_checkpoint_is_said_and_recorded_as_unknown(
    live: Client, project: str, said: list[str], origin: Any
) -> None:
    run = begin(project, resumed_from=origin)
    run.saved(step=7)
    other = begin(project, "other")
    other.saved(step=8)
    assert other.flush(LATEST)
    known = attempt_of(live, project)
    assert (known["resumed_from"], known["restart"]) == (None, False)
    assert "what it loaded is unknown: resumed_from=" in known["reason"]
    assert attempt_of(live, project, "other")["reason"] is None
    engine.shut_down(LATEST)
    assert len([each for each in said if "resumed_from=" in each]) == 1


@pytest.mark.parametrize(
    ("origin", "run", "attempt", "step"),
    [
        ("r@60", None, 1, 60),
        ("{project}/r@60", None, 1, 60),
        ("{project}/r@1.60", None, 1, 60),
        ("{project}/before@2.60", "before", 2, 60),
        ("before@60", "before", None, 60),
        ({"run": {"id": "x", "name": "before"}, "attempt": 2, "step": 60, "more": 1}, "before", 2, 60),
    ],
)
def test_an_origin_may_be_said_as_the_command_line_says_it(
    live: Client, project: str, origin: Any, run: str | None, attempt: int | None, step: int
) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 60)
    recorder = begin(project, resumed_from=origin.format(project=project) if isinstance(origin, str) else origin)
    recorder.saved(step=70)
    assert recorder.flush(LATEST)
    point = live.list_attempts(live.find_run(project, "r"))[1].raw["resumed_from"]
    assert (point["run"], point["attempt"], point["step"]) == (run, attempt, step)


@pytest.mark.parametrize(
    ("pieces", "present", "is_said"),
    [
        ("all", {"weights", "optimizer", "data_position", "random_state"}, False),
        ("weights, optimizer", {"weights", "optimizer"}, False),
        (["weights"], {"weights"}, False),
        ({"weights": True, "optimizer": {"state": "present", "evidence": "mine"}}, {"weights", "optimizer"}, False),
        ({"weights": "present", "optimizer": "yes", "foo": "present", Hostile: 1}, {"weights"}, True),
        (7, set(), True),
        (Hostile(), set(), True),
    ],
)
def test_pieces_may_be_said_in_any_form(
    live: Client, project: str, said: list[str], pieces: Any, present: set[str], is_said: bool
) -> None:
    run = begin(project)
    assert run.saved(step=7, pieces=pieces)
    assert run.flush(LATEST)
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    states = live.get_checkpoint(found).raw["pieces"]
    assert {name for name, state in states.items() if state == "present"} == present
    engine.shut_down(LATEST)
    assert any("pieces" in each for each in said) is is_said


def test_a_bad_name_or_step_costs_no_good_point(live: Client, project: str, said: list[str]) -> None:
    run = begin(project)
    for step in range(1, 51):
        run.log(step, **{"loss": 1.0 / step, "a\0b": 1, "": 2, "half \ud800": 3, "tab\t": 4})
        run.log(step, {Hostile(): 1, "huge": 2**1024 - 1})
    for bad in (2**70, -1, 2**63, 1.5, None):
        run.log(bad, loss=1.0)
    metrics = {"\n": 1, Hostile(): 1, "good": 2}
    run.saved(step=50, epoch=-1, tokens=2**70, scores={"": 1, "gsm8k": 0.5}, metrics=metrics)
    run.finish(exit_code=2**40)
    assert run.flush(LATEST)
    curves = {each.name: len(each.steps) for each in live.read_series(live.find_run(project, "r"))}
    assert curves == {"loss": 50, "a\N{SYMBOL FOR NULL}b": 50, "half \\ud800": 50, "tab": 50}
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    raw = live.get_checkpoint(found).raw
    assert (raw["epoch"], raw["tokens_seen"], raw["metrics"]) == (None, None, {"good": 2.0})
    assert [each["benchmark"] for each in raw["scores"]] == ["gsm8k"]
    assert list_refused() == []
    engine.shut_down(LATEST)
    assert len([each for each in said if "'a\\x00b'" in each]) == 1
    assert len([each for each in said if "is no step" in each]) >= 1


def test_what_describes_an_execution_costs_no_more_than_itself(live: Client, project: str) -> None:
    wrong: dict[str, Any] = {"nodes": 5, "parameter_count": "many", "layout": {"tp": 0}, "tags": 7}
    run = begin(project, key="\n", kind=Hostile(), data=Hostile(), team="mine", **wrong)
    run.saved(step=7)
    run.flush(LATEST)
    found = live.find_run(project, "r")
    assert found.raw["team"] == "mine"
    assert [each.step for each in live.iter_checkpoints(filter=f"project = '{project}'")] == [7]


def test_what_an_earlier_job_left_and_nobody_can_send_holds_up_no_other(
    live: Client, project: str, spool: Path
) -> None:
    from tests.client.spool.left import leave, saved, start

    bad = ({"kind": "points", "key": "old", "curves": 5}, {"kind": "finish", "key": "old", "changes": 5})
    leave(spool, start(project, "old", resumed_from=3.7), *bad, saved(project, 1, "old", pieces=7))
    leave(spool, start("no project", "worse"), saved("no project", 2, "worse"))
    run = begin(project)
    run.saved(step=7)
    assert run.flush(LATEST)
    found = {(each.run.name, each.step) for each in live.iter_checkpoints(filter=f"project = '{project}'") if each.run}
    assert found == {("old", 1), ("r", 7)}
    assert len(list_refused()) == 2


def test_what_an_earlier_job_left_is_said_to_be_not_of_this_one(
    live: Client, project: str, said: list[str], spool: Path
) -> None:
    from tests.client.spool.left import leave, saved, start

    live.register_checkpoint(live.create_run(project, "toy"), 1000)
    folder = leave(spool, start(project, "toy"), saved(project, 1, "toy"))
    run = begin(project)
    run.saved(step=7)
    assert run.flush(LATEST)
    engine.shut_down(LATEST)
    (told,) = [each for each in said if "'toy'" in each]
    assert told.startswith("cairn: records of an earlier job, of run 'toy', wait")
    assert f"`cairn spool discard {folder}`" in told
    assert "this execution" not in told
