"""Lists of steps and addresses, as OLMo publishes them."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cairn.formats import Refused
from cairn.scan import scan

SHARED = Path(__file__).parents[4] / "shared" / "data" / "olmo"
BASE = "https://checkpoints.example/llm"


def read(path: Path, **options: Any) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, str]]:
    """Items, problems by place, remarks by run."""
    with scan(str(path), project="p", **options) as plan:
        return list(plan.items()), dict(plan.problems()), dict(plan.remarks())


def listed(folder: Path, *lines: str, header: str = "Step,Checkpoint Directory", name: str = "model.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def rows(folder: str, *steps: int) -> list[str]:
    return [f"{step},{BASE}/{folder}/step{step}-unsharded/" for step in steps]


def test_a_list_of_one_folder_is_a_run_named_by_the_list(tmp_path: Path) -> None:
    items, problems, _ = read(listed(tmp_path, *rows("abc", 0, 150, 600)))
    assert [(each["run"], each["attempt"], each["step"]) for each in items] == [
        ("model", 1, 0),
        ("model", 1, 150),
        ("model", 1, 600),
    ]
    assert items[0]["uri"] == f"{BASE}/abc/step0-unsharded"
    assert problems == {}
    assert read(listed(tmp_path, *rows("abc", 0)), run="mine")[0][0]["run"] == "mine"


def test_folders_whose_steps_go_on_from_each_other_are_attempts(tmp_path: Path) -> None:
    path = listed(tmp_path, *rows("one", 0, 1000, 2000), *rows("two", 3000, 4000), *rows("three", 5000))
    items, _, remarks = read(path)
    assert [(each["run"], each["attempt"], each["step"]) for each in items] == [
        *(("model", 1, step) for step in (0, 1000, 2000)),
        *(("model", 2, step) for step in (3000, 4000)),
        ("model", 3, 5000),
    ]
    assert "3 folders" in remarks["model"]


def test_a_step_in_two_folders_is_reported_and_both_are_kept(tmp_path: Path) -> None:
    """The path that goes furthest is the newest attempt; the stub beside it comes before."""
    path = listed(tmp_path, *rows("main", 500, 600, 700), *rows("stub", 600), *rows("first", 100, 400))
    items, problems, _ = read(path)
    attempts = {(each["uri"].split("/")[-2], each["attempt"]) for each in items}
    assert attempts == {("first", 1), ("stub", 2), ("main", 3)}
    assert problems == {"step 600": "stands in 2 folders: stub, main"}


def test_folders_that_start_over_are_runs_of_their_own(tmp_path: Path) -> None:
    path = listed(tmp_path, *rows("seed1", 1000, 2000, 3000), *rows("seed2", 1000, 2000, 3000))
    items, _, _ = read(path)
    assert Counter(each["run"] for each in items) == {"model/seed1": 3, "model/seed2": 3}
    assert {each["attempt"] for each in items} == {1}


def test_another_column_tells_runs_apart_and_becomes_a_tag(tmp_path: Path) -> None:
    lines = [f"{part},{step},{BASE}/soup{part}/step{step}/" for part in (1, 2) for step in (10, 20)]
    path = listed(tmp_path, *lines, header="Ingredient,Step,Checkpoint Directory")
    with scan(str(path), project="p") as plan:
        bodies = [body for batch in plan.batches(10) for _, body in batch]
    assert {(body["run"], body["tags"]["ingredient"]) for body in bodies} == {
        ("model/soup1", "1"),
        ("model/soup2", "2"),
    }
    assert all(body["replicas"] == [{"uri": body["replicas"][0]["uri"], "tier": "object"}] for body in bodies)
    assert all("pieces" not in body for body in bodies), "what was not looked at is unknown"


def test_repeated_and_contradicting_lines_are_reported(tmp_path: Path) -> None:
    lines = [*rows("abc", 10, 20), *rows("abc", 10), f"30,{BASE}/abc/step20-unsharded/", f"40,{BASE}/abc/step50/"]
    items, problems, _ = read(listed(tmp_path, *lines))
    assert [each["step"] for each in items] == [10, 20, 40]
    assert problems["line 4"] == "repeats line 2"
    assert problems["line 5"] == "says step 30 of what line 3 says 20"
    assert items[-1]["notes"] == ["its address says step 50, the list 40"]


def test_lines_that_are_no_checkpoint_are_problems_of_those_lines(tmp_path: Path) -> None:
    secret = f"5,{BASE}/x/step5?signature=abc"
    items, problems, _ = read(listed(tmp_path, *rows("abc", 10), f"ten,{BASE}/x/step10", "-1,/x/step1", secret))
    assert [each["step"] for each in items] == [10]
    assert set(problems) == {"line 3", "line 4", "line 5"}
    assert "abc" not in problems["line 5"]


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "step,loss\n1,2.5\n", "\x80\n", "step,path,uri\n1,/a,/b\n"])
def test_other_tables_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(Refused):
        read(path)


def test_a_tab_separated_list_with_a_mark_of_its_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "list.tsv"
    path.write_bytes(b"\xef\xbb\xbfiteration\tpath\r\n7\t/ckpt/iter_0000007\r\n")
    assert [(each["step"], each["uri"]) for each in read(path)[0]] == [(7, "/ckpt/iter_0000007")]


@pytest.mark.skipif(not SHARED.exists(), reason="the published lists are not beside the repository")
@pytest.mark.parametrize(
    ("name", "count", "runs", "attempts", "problems"),
    [
        ("OLMo-2-1124-7B.csv", 935, 1, 1, set()),
        ("OLMo-7B-0724.csv", 564, 1, 39, {"step 557000"}),
        ("OLMo-2-1124-7B-stage2.csv", 36, 3, 1, set()),
    ],
)
def test_the_published_lists_of_olmo(name: str, count: int, runs: int, attempts: int, problems: set[str]) -> None:
    items, said, _ = read(SHARED / name)
    assert len(items) == count
    assert len({each["run"] for each in items}) == runs
    assert max(each["attempt"] for each in items) == attempts
    assert set(said) == problems
