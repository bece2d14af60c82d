"""`cairn drill --due`: what nobody has drilled for so long is drilled, run by run."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.replicas import replica
from cairn.types import Drill

from tests.client.conftest import Cli

PIECES = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")


class Fleet:
    """Runs of one project with checkpoints on shared storage."""

    def __init__(self, live: Client, project: str, root: Path) -> None:
        self.live, self.project, self.root = live, project, root

    def save(self, run: str, step: int, **known: Any) -> Path:
        folder = self.root / run / str(step)
        folder.mkdir(parents=True)
        (folder / "weights.bin").write_bytes(b"w" * 100)
        copies = known.pop("replicas", None) or [replica(folder, tier="shared", digest=True)]
        owner = self.live.create_run(self.project, run)
        self.live.register_checkpoint(owner, step, pieces=PIECES, replicas=copies, **known)
        return folder

    def drilled(self, run: str, days_ago: float) -> None:
        at = datetime.now(UTC) - timedelta(days=days_ago)
        newest = next(self.live.iter_checkpoints(filter=f"project = '{self.project}' and run.name = '{run}'", limit=1))
        self.live.record_drill(newest, key=f"{run}-{days_ago}", host="h", started_at=at, ended_at=at, verdict="passed")

    def drills(self) -> list[Drill]:
        return list(self.live.list_drills(project=self.project))

    def steps(self) -> list[tuple[str, int | None]]:
        return sorted((str(each.checkpoint.run.name), each.checkpoint.step) for each in self.drills())


@pytest.fixture
def fleet(live: Client, project: str, tmp_path: Path) -> Fleet:
    return Fleet(live, project, tmp_path / "shared")


def due(cli: Cli, fleet: Fleet, *words: str) -> tuple[int, str, str]:
    return cli("drill", "--due", "7d", "--project", fleet.project, *words)


def test_the_newest_checkpoint_of_each_run_is_drilled_and_then_none_is_due(cli: Cli, fleet: Fleet) -> None:
    for run, step in (("a", 100), ("a", 200), ("b", 50)):
        fleet.save(run, step)
    fleet.live.create_run(fleet.project, "empty")
    code, _, err = due(cli, fleet)
    assert (code, fleet.steps()) == (0, [("a", 200), ("b", 50)]), err
    code, out, err = due(cli, fleet)
    assert (code, out) == (0, "")
    assert "No drill is due." in err
    assert len(fleet.drills()) == 2


def test_a_drill_counts_until_it_is_as_old_as_that(cli: Cli, fleet: Fleet) -> None:
    for run, days in (("old", 7.1), ("young", 6.9)):
        fleet.save(run, 10)
        fleet.drilled(run, days)
    fleet.drilled("young", 30)  # recorded later, made earlier
    code, out, err = due(cli, fleet, "--json")
    assert code == 0, err
    assert [each["checkpoint"]["run"]["name"] for each in json.loads(out)["items"]] == ["old"]


def test_an_archive_goes_before_a_newer_light_one(cli: Cli, fleet: Fleet) -> None:
    fleet.save("a", 100)
    fleet.save("a", 110, kind="light")
    fleet.save("b", 7, kind="light")
    assert due(cli, fleet)[0] == 0
    assert fleet.steps() == [("a", 100), ("b", 7)]


def test_one_that_fails_leaves_the_others(cli: Cli, fleet: Fleet) -> None:
    fleet.save("a", 1)
    (fleet.save("b", 1) / "weights.bin").write_bytes(b"x" * 100)
    fleet.save("c", 1)
    code, _, err = due(cli, fleet)
    assert code == 1, err
    assert {each.checkpoint.run.name: each.verdict for each in fleet.drills()} == {
        "a": "passed",
        "b": "failed",
        "c": "passed",
    }


def test_a_run_of_which_nothing_is_here_is_named_and_the_others_are_drilled(cli: Cli, fleet: Fleet) -> None:
    fleet.save("far", 10, replicas=[{"uri": "/nvme/10", "tier": "local", "host": "another-host"}])
    fleet.save("near", 10)
    code, _, err = due(cli, fleet)
    assert (code, fleet.steps()) == (1, [("near", 10)])
    assert "far is due, and nothing of it can be tried here" in err


def test_a_checkpoint_that_is_elsewhere_gives_way_to_an_older_one(cli: Cli, fleet: Fleet) -> None:
    fleet.save("a", 10)
    fleet.save("a", 20, replicas=[{"uri": "/nvme/20", "tier": "local", "host": "another-host"}])
    assert due(cli, fleet)[0] == 0
    assert fleet.steps() == [("a", 10)]


def test_the_command_after_the_dashes_is_run_for_each(cli: Cli, fleet: Fleet) -> None:
    for run in ("a", "b"):
        fleet.save(run, 100)
    code = 'import sys; print(\'{"step": 101, "loss": 1.0}\', flush=True)'
    done = due(cli, fleet, "--steps", "1", "--", sys.executable, "-c", code, "{path}")
    assert done[0] == 0, done[2]
    assert [each.steps_run for each in fleet.drills()] == [1, 1]


def test_only_the_runs_that_are_named(cli: Cli, fleet: Fleet) -> None:
    for run in ("a", "b", "c"):
        fleet.save(run, 1)
    named = [f"--run={fleet.project}/{run}" for run in ("a", "c")]
    assert cli("drill", "--due", "1h", *named)[0] == 0
    assert fleet.steps() == [("a", 1), ("c", 1)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name a CHECKPOINT, or say --due"),
        (["p/r@1", "--due", "7d"], "either CHECKPOINT"),
        (["p/r@1", "--project", "p"], "belong to --due"),
        (["--due", "7d", "--replica", "x"], "chooses the copies itself"),
        (["--due", "7d", "--project", "p", "--run", "p/r"], "either --project or --run"),
        (["--due", "soon"], "no duration"),
    ],
)
def test_a_question_that_contradicts_itself_is_refused(cli: Cli, live: Client, words: list[str], said: str) -> None:
    code, out, err = cli("drill", *words)
    assert (code, out) == (2, ""), err
    assert said in err
