"""What the recorder wrote beside checkpoints is enough: an empty registry says of them what the lost one said."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cairn
import pytest
from cairn import Client, Retries
from cairn.capture import scheduler
from cairn.formats.checkpoints import cairn_json
from cairn.recorder import Recorder
from cairn.scan import compare, register, scan

from tests.client.background import end_background, wait_for_the_disk
from tests.client.conftest import Cli
from tests.client.live import running_service
from tests.client.scan.trees import fixture
from tests.client.until import LATEST

ALL_PRESENT = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
CURSOR = {"epoch": 1, "shards": [3, 1], "offset": 4096}
# What is found by the registry itself, or is another one in each.
OF_THE_REGISTRY = frozenset(
    {
        "checkpoint",
        "committed_at",
        "id",
        "run",
        "digest",
        "created_at",
        "updated_at",
        "created_by",
        "replicas",
        "scores",
    }
)


@pytest.fixture(autouse=True)
def recorded_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*scheduler.RANKS, *scheduler.WORLD_SIZES, "CAIRN_RUN", "CAIRN_ATTEMPT_KEY", "CAIRN_RESUMED_FROM"):
        monkeypatch.delenv(name, raising=False)
    wait_for_the_disk(monkeypatch)
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    yield
    end_background()


@pytest.fixture
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A registry that knows nothing."""
    with running_service(tmp_path_factory.mktemp("rebuilt")) as (url, home):
        token = (home / "admin-token").read_text().strip()
        with Client(url, token, timeout=60, retries=Retries(count=0)) as client:
            yield client


def begin(project: str, run: str = "r", **more: Any) -> Recorder:
    recorder = cairn.start(project, run, capture=False, **more)
    assert isinstance(recorder, Recorder)
    return recorder


def ended(run: Recorder) -> None:
    assert run.flush(LATEST)
    run.finish()
    assert run.flush(LATEST)


def own_format(folder: Path, step: int) -> Path:
    """A checkpoint as a loop of one's own may write it: no reader knows it."""
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(bytes([step % 251]) * 64)
    (folder / "state.json").write_text(json.dumps({"at": step}))
    return folder


def two_attempts(project: str, root: Path, make: Callable[[Path, int], Path] = own_format) -> None:
    """The second went on from step 20 of the first, which had come to 40."""
    first = begin(project)
    for step in (10, 20, 25, 40):
        folder = make(root / f"a1/step-{step}", step)
        first.saved(folder, step=step, loss=2.0 / step, tokens=step * 1_000, cursor=CURSOR, pieces=ALL_PRESENT)
    ended(first)
    second = begin(project, resumed_from=20)
    for step in (30, 50):
        folder = make(root / f"a2/step-{step}", step)
        scores = {"gsm8k.exact_match": step / 100}
        second.saved(folder, step=step, loss=1.0 / step, scores=scores, lr=3e-4, tags={"phase": "late"}, kind="light")
    ended(second)


def rebuild(client: Client, root: Path, project: str) -> dict[str, int]:
    with scan(str(root), project=project, tier="shared", settle_seconds=0) as plan:
        compare(plan, client)
        register(plan, client)
        assert list(plan.problems()) == []
        return dict(plan.counts())


def known(client: Client, project: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Run, attempt, step and kind to everything else that a registry says."""
    found = {}
    for each in client.iter_checkpoints(filter=f"project = '{project}'"):
        raw = client.get_checkpoint(each).raw
        said = {name: value for name, value in raw.items() if name not in OF_THE_REGISTRY}
        copies = [(copy["uri"], copy["bytes"], copy["file_count"]) for copy in raw["replicas"]]
        scores = sorted((score["benchmark"], score["metric"], score["value"]) for score in raw["scores"])
        run = each.run.name if each.run else ""
        found[run, each.attempt, each.step, each.kind] = {**said, "copies": copies, "all_scores": scores}
    return found


def same(found: dict[tuple[Any, ...], dict[str, Any]], before: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """By field, so that a difference can be read."""
    assert found.keys() == before.keys()
    for key, each in before.items():
        assert {name: (value, found[key][name]) for name, value in each.items() if found[key][name] != value} == {}


def test_two_attempts_come_back_field_by_field(live: Client, empty: Client, project: str, tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    two_attempts(project, root)
    before = known(live, project)
    superseded = {key[2] for key, each in before.items() if each["superseded"]}
    assert (len(before), superseded) == (6, {25, 40})
    assert before["r", 1, 10, "archive"]["resumability"] == "exact"
    assert rebuild(empty, root, project) == {"recorded": 6}
    same(known(empty, project), before)
    first, second = (client.list_attempts(client.find_run(project, "r"))[1].raw for client in (live, empty))
    assert (second["resumed_from"]["attempt"], second["resumed_from"]["step"]) == (1, 20)
    assert {**first["resumed_from"], "checkpoint_id": None} == {**second["resumed_from"], "checkpoint_id": None}
    assert rebuild(empty, root, project) == {"known": 6}


def test_what_the_training_said_of_pieces_outlives_what_its_files_say(
    live: Client, empty: Client, project: str, tmp_path: Path
) -> None:
    """The optimizer lies elsewhere, the position in the record: the files alone are weights."""

    def weights(folder: Path, step: int) -> Path:
        return fixture("safetensors_single", folder)

    root = tmp_path / "ckpt"
    two_attempts(project, root, weights)
    before = known(live, project)
    one = before["r", 1, 10, "archive"]
    assert (one["format"], one["resumability"], one["data_cursor"]) == ("safetensors", "exact", CURSOR)
    assert rebuild(empty, root, project) == {"recorded": 6}
    same(known(empty, project), before)


def test_a_piece_that_left_its_folder_is_no_longer_there(
    live: Client, empty: Client, project: str, tmp_path: Path
) -> None:
    folder = fixture("hf_trainer/checkpoint-4", tmp_path / "ckpt/checkpoint-4")
    run = begin(project)
    run.saved(folder, step=4)
    ended(run)
    assert known(live, project)["r", 1, 4, "archive"]["pieces"]["optimizer"] == "present"
    (folder / "optimizer.pt").unlink()
    rebuild(empty, tmp_path / "ckpt", project)
    assert known(empty, project)["r", 1, 4, "archive"]["pieces"]["optimizer"] == "absent"


def test_a_step_that_differed_from_its_files_comes_back_as_it_was_recorded(
    live: Client, empty: Client, project: str, tmp_path: Path
) -> None:
    folder = fixture("hf_trainer/checkpoint-4", tmp_path / "ckpt/checkpoint-4")
    run = begin(project)
    run.saved(folder, step=7)
    ended(run)
    rebuild(empty, tmp_path / "ckpt", project)
    assert set(known(empty, project)) == set(known(live, project)) == {("r", 1, 7, "archive")}


def test_a_folder_that_was_saved_over_is_not_taken_for_the_save_before(empty: Client, tmp_path: Path) -> None:
    folder = fixture("hf_trainer/checkpoint-4", tmp_path / "ckpt/latest")
    said = {"project": "p", "run": {"name": "r"}, "attempt": 3, "step": 2, "kind": "archive", "loss": 9.0}
    cairn_json.write(folder, said)
    with scan(str(tmp_path / "ckpt"), project="p", tier="shared", settle_seconds=0) as plan:
        (item,) = plan.items()
        noted = [text for _, text in plan.noted()]
    assert (item["step"], item["attempt"]) == (4, 1)
    assert any("cairn.json is left aside: it is of step 2" in each for each in noted)


def test_an_attempt_that_began_anew_leaves_all_before_it_behind(
    live: Client, empty: Client, project: str, tmp_path: Path
) -> None:
    root = tmp_path / "ckpt"
    for number, more in enumerate(({}, {"restart": True})):
        run = begin(project, **more)
        run.saved(own_format(root / f"{number}/step-10", 10), step=10)
        run.saved(own_format(root / f"{number}/step-20", 20), step=20)
        ended(run)
    before = known(live, project)
    assert [each["superseded"] for each in before.values()].count(True) == 2
    rebuild(empty, root, project)
    assert [each.raw["restart"] for each in empty.list_attempts(empty.find_run(project, "r"))] == [False, True]
    same(known(empty, project), before)


def test_attempts_that_left_nothing_keep_their_numbers(
    live: Client, empty: Client, project: str, tmp_path: Path
) -> None:
    root = tmp_path / "ckpt"
    run = begin(project)
    for step in (10, 20, 30):
        run.saved(own_format(root / f"a1/step-{step}", step), step=step)
    ended(run)
    for _ in range(2):
        ended(begin(project, resumed_from={"attempt": 1, "step": 20}))
    run = begin(project, resumed_from={"attempt": 1, "step": 20})
    run.saved(own_format(root / "a4/step-40", 40), step=40)
    ended(run)
    before = known(live, project)
    assert sorted(before) == [
        ("r", 1, 10, "archive"),
        ("r", 1, 20, "archive"),
        ("r", 1, 30, "archive"),
        ("r", 4, 40, "archive"),
    ]
    rebuild(empty, root, project)
    same(known(empty, project), before)


def test_without_its_word_what_an_attempt_loaded_is_assumed_and_that_is_said(empty: Client, tmp_path: Path) -> None:
    """As older recorders wrote it."""
    for attempt, step in ((1, 10), (1, 25), (2, 30)):
        folder = own_format(tmp_path / f"{attempt}/step-{step}", step)
        said = {"project": "p", "run": {"name": "r"}, "attempt": attempt, "step": step, "kind": "archive"}
        cairn_json.write(folder, said)
        assert json.loads((folder / "cairn.json").read_bytes())["cairn"] == 1
    with scan(str(tmp_path), project="p", tier="shared", settle_seconds=0) as plan:
        ((run, told),) = plan.remarks()
    assert run == "r"
    assert "the step before the first one that is here is assumed (attempt 2: step 29)" in told
    rebuild(empty, tmp_path, "p")
    assert not any(each["superseded"] for each in known(empty, "p").values())


def test_an_origin_that_cannot_be_is_left_aside(empty: Client, tmp_path: Path) -> None:
    for attempt, loaded in ((1, None), (2, {"attempt": 7, "step": 3})):
        folder = own_format(tmp_path / f"{attempt}/step-10", 10)
        said = {"project": "p", "run": {"name": "r"}, "attempt": attempt, "step": 10, "kind": "archive"}
        cairn_json.write(folder, {**said, **({"resumed_from": loaded} if loaded else {})})
    assert rebuild(empty, tmp_path, "p") == {"recorded": 2}
    assert [each.number for each in empty.list_attempts(empty.find_run("p", "r"))] == [1, 2]


def test_a_folder_of_no_known_format_is_resumed_from_without_the_registry(
    live: Client, project: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ckpt"
    run = begin(project)
    run.saved(own_format(root / "one", 10), step=10, pieces=ALL_PRESENT)
    run.saved(own_format(root / "two", 20), step=20, pieces=ALL_PRESENT)
    ended(run)
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    code, out, err = cli("resume", "--run", f"{project}/r", "--local-root", str(root))
    assert (code, out.strip()) == (0, str(root / "two")), err


def test_a_folder_that_its_cairn_json_does_not_name_soundly_is_none(tmp_path: Path) -> None:
    folder = own_format(tmp_path / "one", 10)
    (folder / "cairn.json").write_text('{"cairn": 1, "step": 10}')
    with scan(str(tmp_path), project="p", tier="shared", settle_seconds=0) as plan:
        ((path, told),) = plan.problems()
        assert plan.count() == 0
    assert path == "one"
    assert "of no known format" in told
    assert "cairn.json: project: is missing" in told


def test_a_folder_of_no_known_format_that_lost_files_is_not_whole(live: Client, project: str, tmp_path: Path) -> None:
    folder = own_format(tmp_path / "ckpt/one", 10)
    run = begin(project)
    run.saved(folder, step=10, pieces=ALL_PRESENT)
    ended(run)
    (folder / "eval.json").write_text("{}")
    for lost, status, told in (
        (None, "new", ""),
        ("state.json", "pending", "bytes, and had"),
        ("model.bin", "", "all that is left"),
    ):
        if lost is not None:
            (folder / lost).unlink()
        if lost == "model.bin":
            (folder / "eval.json").unlink()
        with scan(str(tmp_path / "ckpt"), project=project, tier="shared", settle_seconds=0) as plan:
            assert [each["status"] for each in plan.items()] == ([status] if status else [])
            assert told in "; ".join(text for _, text in [*plan.noted(), *plan.problems()])


def test_a_fork_is_tied_again_to_what_it_came_from(live: Client, empty: Client, project: str, tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    base = begin(project, "z-base")
    base.saved(own_format(root / "base/one", 10), step=10)
    ended(base)
    fork = begin(project, "a-fork", resumed_from={"run": "z-base", "attempt": 1, "step": 10, "kind": "archive"})
    fork.saved(own_format(root / "fork/one", 5), step=5)
    ended(fork)
    before = known(live, project)
    rebuild(empty, root, project)
    same(known(empty, project), before)
    (attempt,) = empty.list_attempts(empty.find_run(project, "a-fork"))
    (source,) = empty.iter_checkpoints(filter=f"project = '{project}' and run.name = 'z-base'")
    assert attempt.raw["resumed_from"]["checkpoint_id"] == source.id


def test_a_file_that_changed_after_it_was_told_makes_the_save_unended(tmp_path: Path) -> None:
    folder = own_format(tmp_path / "one", 10)
    cairn_json.write(folder, {"project": "p", "run": {"name": "r"}, "attempt": 1, "step": 10, "kind": "archive"})
    told = (folder / "cairn.json").stat().st_mtime
    for seconds, status in ((0, "new"), (30, "pending")):
        os.utime(folder / "model.bin", (told + seconds, told + seconds))
        with scan(str(tmp_path), project="p", tier="shared") as plan:
            assert [each["status"] for each in plan.items()] == [status]
