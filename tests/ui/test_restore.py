"""The restore plan on a checkpoint's page: which copy, how long, what of it today's layout can load."""

from dataclasses import replace

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.checkpoints.registration import ReplicaSpec
from registry.ids import to_text
from registry.incidents.suspicion import say_suspect
from registry.models import Checkpoint
from registry.overview.briefs import read_briefs
from registry.recovery.drills import Checks, NewDrill, Step, record_drill
from registry.recovery.replay import Replay
from registry.series import Points, record_series
from registry.snapshots import LayoutSpec
from tests.factories import ALL_PIECES, at, make_checkpoint, make_project, make_run
from tests.ui.reading import Page
from tests.ui.test_pages import read

SIZE = 100_000_000_000


@pytest.fixture
def saved(session: Session) -> int:
    """A whole Megatron checkpoint of 64 ranks on shared storage and in an object store."""
    return make_checkpoint(
        session,
        make_run(session, make_project(session, "lang"), "7b"),
        1000,
        pieces=ALL_PIECES,
        format="megatron_dist",
        layout=LayoutSpec(world_size=64, tp=4, pp=2, dp=8, sharding="fully_sharded_model_space"),
        replicas=(
            ReplicaSpec("s3://bucket/7b/1000", "object", bytes=SIZE),
            ReplicaSpec("/shared/7b/1000", "shared", bytes=SIZE),
        ),
    )


def plan(browser: TestClient, number: int, query: str = "") -> str:
    page = read(browser, f"/checkpoints/{to_text(number)}{query}")
    assert page.links["Restore it"] == "#restore"
    return Page(page.html.partition('<section id="restore">')[2].partition("</section>")[0]).text


def test_the_fastest_copy_comes_first_with_its_time(browser: TestClient, saved: int) -> None:
    text = plan(browser, saved)
    assert text.startswith("Restore Restore it from shared storage, /shared/7b/1000, in about")
    assert text.index("shared storage/shared/7b/1000") < text.index("the object stores3://bucket/7b/1000")
    assert "fastest" in text
    assert "can be used" in text
    assert f"cairn fetch {to_text(saved)} FOLDER" in text


def test_without_a_question_it_is_for_the_layout_it_was_saved_in(browser: TestClient, saved: int) -> None:
    text = plan(browser, saved)
    assert "In the layout that it was saved in" in text
    assert text.count("loads exactly") == 4


def test_a_layout_in_the_address_is_judged_piece_by_piece(browser: TestClient, saved: int) -> None:
    text = plan(browser, saved, "?layout=tp%3D2%2Cpp%3D2%2Cdp%3D16")
    assert "In the layout tp=2,pp=2,dp=16" in text
    assert "The layout changes (tp 4 to 2, dp 8 to 16)" in text
    assert text.count("loads exactly") < 4


def test_a_time_to_restore_within_that_no_copy_meets_is_said(browser: TestClient, saved: int) -> None:
    assert "not usable" in plan(browser, saved, "?rto=1")


def test_a_time_to_restore_within_is_written_as_on_the_command_line(browser: TestClient, saved: int) -> None:
    assert "within the RTO of 2.5 h" in plan(browser, saved, "?rto=2h30m")
    assert plan(browser, saved, "?rto=2h30m").replace("2h30m", "9000") == plan(browser, saved, "?rto=9000")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("layout=flurb", "‘flurb’ is no degree of a layout such as tp=4,pp=2,dp=8"),
        ("layout=tp%3D0", "‘tp=0’ is no degree"),
        ("layout=tp%3D2%2Ctp%3D4", "‘tp=4’ is no degree"),
        ("layout=world_size%3D7%2Ctp%3D2%2Cpp%3D1%2Cdp%3D2", "The layout was left out:"),
        ("rto=soon", "‘soon’ is no time such as 600, 90s, 10m or 1h30m: it was left out."),
        ("rto=0", "‘0’ is no time such as 600"),
    ],
)
def test_what_of_the_question_cannot_be_read_is_said(browser: TestClient, saved: int, query: str, said: str) -> None:
    page = read(browser, f"/checkpoints/{to_text(saved)}?{query}")
    assert said in page.text
    assert "In the layout that it was saved in" in page.text


def test_a_local_copy_needs_its_host(browser: TestClient, session: Session) -> None:
    number = make_checkpoint(
        session, replicas=(ReplicaSpec("/nvme/1", "local", host="node1", bytes=SIZE),), pieces=ALL_PIECES
    )
    told = "Only node1 can load it, from local disk, /nvme/1. Whether node1 still runs is not known here"
    assert told in plan(browser, number)
    assert "Restore it from local disk, /nvme/1" in plan(browser, number, "?hosts=node1")


def test_a_checkpoint_without_a_copy_cannot_be_restored(browser: TestClient, session: Session) -> None:
    assert "It cannot be restored: no copy of it is recorded." in plan(browser, make_checkpoint(session))


def test_a_suspect_is_called_that_wherever_it_is_shown(browser: TestClient, session: Session, saved: int) -> None:
    row = session.get_one(Checkpoint, saved)
    say_suspect(session, row, suspect=True, reason="two attempts failed alike", actor="maria")
    session.flush()
    page = read(browser, f"/checkpoints/{to_text(saved)}")
    assert page.answer == "Suspect, so nothing resumes from it by itself: two attempts failed alike."
    assert "Do not restore it: it is suspect" in page.text
    run = read(browser, f"/runs/{to_text(row.run_id)}")
    assert "1 000 suspect" in run.text


def test_drills_stand_beside_the_plan_with_what_they_showed(browser: TestClient, session: Session, saved: int) -> None:
    text = plan(browser, saved)
    assert "No drill has shown yet that it restores." in text
    assert "To train again: nothing, the run stands at this checkpoint." in text
    assert f"cairn drill {to_text(saved)} -- python train.py --load {{path}}" in text
    began = at("2026-11-20T10:00")
    checks = Checks("passed", "passed", "passed", "passed")
    losses = [Step(1001, 2.0), Step(1002, 1.9)]
    seconds = {"read": 20.0, "verify": 6.0, "load": 34.0, "run": 5.0}
    good = NewDrill("a", "node1", began, began, "passed", losses=losses, checks=checks, seconds=seconds)
    record_drill(session, saved, good, actor="test")
    text = plan(browser, saved)
    assert "It came back in a drill on 2026-11-20 and trained 2 steps." in text
    assert ", and it came back in a drill." in Page(browser.get(f"/checkpoints/{to_text(saved)}").text).answer
    assert "passed" in text
    assert "1 min" in text
    assert "no recorded loss after the checkpoint" in text
    later = at("2026-11-21T10:00")
    bad = NewDrill(
        "b", "node<1>", later, later, "failed", reason="NCCL <timeout>", checks=replace(checks, run="failed")
    )
    record_drill(session, saved, bad, actor="test")
    text = plan(browser, saved)
    assert "Its last drill failed on 2026-11-21: NCCL <timeout>." in text
    assert (
        Page(browser.get(f"/checkpoints/{to_text(saved)}").text).answer
        == "Not proven to come back: its last drill failed."
    )
    assert "node<1>" in text  # as text: the page escapes it


@pytest.mark.parametrize(("offset", "verdict", "said"), [(0.0, "passed", "went on"), (1.4, "failed", "did not go on")])
def test_a_drill_says_in_words_whether_its_losses_went_on_before_the_figures(
    browser: TestClient, session: Session, saved: int, offset: float, verdict: str, said: str
) -> None:
    began = at("2026-11-20T10:00")
    run_id = read_briefs(session, [saved])[saved].run_id
    curve = [(step, 4 - step / 1000) for step in range(980, 1021)]
    record_series(session, run_id, [Points("loss", [step for step, _ in curve], [loss for _, loss in curve])])
    losses = [Step(step, loss + offset) for step, loss in curve if step > 1000]
    checks = Checks("passed", "passed", "passed", "passed")
    trained = NewDrill("a", "n1", began, began, "passed", losses=losses, checks=checks, steps_run=20)
    record_drill(session, saved, trained, actor="test")
    text = plan(browser, saved)
    assert f"{verdict} " in text
    assert f"Its losses {said} as recorded." in text


def test_a_drill_that_only_read_the_files_is_not_called_passed(
    browser: TestClient, session: Session, saved: int
) -> None:
    began = at("2026-11-20T10:00")
    read_it = NewDrill("a", "n1", began, began, "passed", checks=Checks("passed", "passed"))
    record_drill(session, saved, read_it, actor="test")
    drills = plan(browser, saved).partition("Drills")[2]
    assert "read only" in drills
    assert "passed" not in drills


@pytest.mark.parametrize(
    ("cursor", "shown"),
    [
        ({"offset": 60}, "offset 60"),
        ({"shard": 3, "inside": {"sample": 12, "done": False}}, "inside.done false, inside.sample 12, shard 3"),
        ("epoch-2", "epoch-2"),
        (17, "17"),
    ],
)
def test_a_data_cursor_is_shown_in_the_loader_s_own_names(
    browser: TestClient, session: Session, cursor: object, shown: str
) -> None:
    page = read(browser, f"/checkpoints/{to_text(make_checkpoint(session, data_cursor=cursor))}")
    assert f"data cursor {shown}" in page.text
    assert "{'" not in page.text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.6, "40 steps, to step 100, less than 1 s at 0.015 s"), (30.0, "step 100, about 30 s at 0.75 s")],
)
def test_a_time_is_about_so_much_or_less_than_that(seconds: float, told: str) -> None:
    assert told in Replay(40, seconds, 100, seconds / 40).words
