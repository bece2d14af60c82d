"""`cairn why`: the answer in words, and a search that a command drives, against the real service."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.bisecting import Placeholders, Template, UnusableCommand
from cairn.bisecting.command import path_of

from tests.client.conftest import Cli

# Evaluates like lm-eval: correct on 60 % of the items until step 1100, on 50 % after; writes a results file.
EVALUATE = """
import json, pathlib, sys
path, items, output, log = sys.argv[1:5]
step = int(path.rsplit("-", 1)[1])
value = 0.60 if step <= 1100 else 0.50
with open(log, "a") as file:
    file.write(f"{step} {items}\\n")
folder = pathlib.Path(output) / "model"
folder.mkdir()
(folder / "results_2026-11-01T00-00-00.json").write_text(json.dumps({
    "results": {"gsm8k": {"exact_match,strict-match": value, "exact_match_stderr,strict-match": 0.0135}},
    "versions": {"gsm8k": 3}, "n-shot": {"gsm8k": 5}, "configs": {"gsm8k": {}},
    "n-samples": {"gsm8k": {"original": 1319, "effective": int(items)}},
    "config": {"model": "hf", "model_args": "pretrained=m"},
}))
"""


def trained(live: Client, project: str) -> Client:
    items: list[dict[str, Any]] = []
    for step in range(0, 3300, 100):
        score = {"benchmark": "gsm8k", "metric": "exact_match", "filter": "strict-match", "n_samples": 1319}
        value = {0: 0.60, 3200: 0.50}.get(step)
        items.append(
            {
                "project": project,
                "run": "7b",
                "step": step,
                "config": {"optimizer": {"lr": 1e-3 if step < 1200 else 2e-3}},
                "replicas": [{"uri": f"file:///shared/{project}/ckpt%20x-{step}", "tier": "shared"}],
                "scores": [] if value is None else [score | {"value": value}],
            }
        )
    live.register_batch(items)
    return live


def command(tmp_path: Path, *, body: str = EVALUATE) -> tuple[str, Path]:
    script, log = tmp_path / "evaluate it.py", tmp_path / "log"
    script.write_text(body)
    return f"'{sys.executable}' '{script}' {{path}} {{items}} {{output}} '{log}'", log


def test_why_says_what_fell_and_what_changed(live: Client, project: str, cli: Cli) -> None:
    trained(live, project)
    code, out, _ = cli("why", f"{project}/7b@0", f"{project}/7b@3200")
    assert code == 0
    assert "math: regressed" in out
    assert "1. config.optimizer.learning_rate" in out
    assert "optimizer.lr went from 0.001 to 0.002" in out
    assert "associations, not causes" in out
    assert json.loads(cli("why", f"{project}/7b@0", f"{project}/7b@3200", "--json")[1])["suspects"]
    code, out, _ = cli("why", f"{project}/7b@0", f"{project}/7b@0")
    assert (code, out.splitlines()[0]) == (0, "Nothing fell beyond its uncertainty.")


def test_a_command_drives_the_search_to_the_gap(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    trained(live, project)
    evaluate, log = command(tmp_path)
    ends = ("--good", f"{project}/7b@0", "--bad", f"{project}/7b@3200")
    code, out, err = cli("why", *ends, "--bisect", "--eval", evaluate)
    assert code == 0, err
    assert "It fell between 7b step 1,100 and 7b step 1,200" in err
    assert out.splitlines()[1].startswith("7b · 1 · 1100\t7b · 1 · 1200\t0.9")
    asked = [line.split() for line in log.read_text().splitlines()]
    assert asked[0] == ["1600", "240"]
    assert len(asked) <= 12
    again = cli("why", *ends, "--bisect", "--eval", evaluate)
    assert (again[0], again[1]) == (code, out)
    assert len(log.read_text().splitlines()) == len(asked)  # it was over: nothing is evaluated twice


def test_a_search_that_was_stopped_goes_on_where_it_was(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    trained(live, project)
    evaluate, log = command(tmp_path)
    search = ("why", f"{project}/7b@0", f"{project}/7b@3200", "--bisect", "--benchmark", "gsm8k")
    code, _, err = cli(*search, "--eval", evaluate, "--most", "2")
    assert (code, "Stopped: 2 evaluations were run" in err) == (1, True)
    assert cli(*search, "--eval", evaluate)[0] == 0
    steps = [line.split()[0] for line in log.read_text().splitlines()]
    assert steps[:2] == ["1600", "800"]
    assert steps.count("1600") == 1


def test_an_evaluation_of_the_whole_benchmark_is_a_score_and_one_of_a_part_is_not(
    live: Client, project: str, cli: Cli, tmp_path: Path
) -> None:
    trained(live, project)
    whole = EVALUATE.replace("int(items)", "1319 if step == 1600 else int(items)")
    evaluate, _ = command(tmp_path, body=whole)
    search = ("why", f"{project}/7b@0", f"{project}/7b@3200", "--bisect", "--benchmark", "gsm8k")
    code, _, err = cli(*search, "--eval", evaluate, "--most", "2")
    assert code == 1, err
    assert "gsm8k of 7b · 1 · 1600: 0.5, recorded as a score of it." in err
    assert "gsm8k of 7b · 1 · 800: 0.6 of 240 items, kept with the search and not as a score" in err
    found = {each.step: live.list_scores(each.id) for each in live.iter_checkpoints(filter=f"project = '{project}'")}
    (score,) = found[1600]
    assert (score.value, score.n_samples, score.stderr, score.n_shot) == (0.5, 1319, 0.0135, 5)
    assert found[800] == ()


def test_interrupting_an_evaluation_records_nothing_of_it(
    live: Client, project: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(live, project)
    evaluate, log = command(tmp_path)

    def interrupted(words: object) -> int:
        raise KeyboardInterrupt

    search = ("why", f"{project}/7b@0", f"{project}/7b@3200", "--bisect", "--benchmark", "gsm8k")
    with monkeypatch.context() as patch:
        patch.setattr("cairn.bisecting.driving.run_command", interrupted)
        assert cli(*search, "--eval", evaluate)[0] == 130
    assert not log.exists()
    assert json.loads(cli(*search, "--json")[1])["evaluations"] == []
    assert cli(*search, "--eval", evaluate)[0] == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise SystemExit(3)", "ended with 3; nothing was recorded"),
        ("pass", "The command wrote no result file"),
        (EVALUATE.replace('"gsm8k"', '"mmlu"'), "The results hold no gsm8k"),
        (EVALUATE.replace("0.60 if", "float('nan') if"), "that is no score to compare"),
        (EVALUATE.replace("0.60 if", "60.0 if"), "60 lies outside the fraction scale (0 to 1)"),
    ],
)
def test_an_evaluation_without_a_score_ends_the_search_with_the_reason(
    live: Client, project: str, cli: Cli, tmp_path: Path, body: str, said: str
) -> None:
    trained(live, project)
    evaluate, _ = command(tmp_path, body=body.replace("1100", "9999"))
    code, _, err = cli("why", f"{project}/7b@0", f"{project}/7b@3200", "--bisect", "--eval", evaluate)
    assert code in (2, 3)
    assert said in err


def test_without_a_command_it_says_what_to_evaluate(live: Client, project: str, cli: Cli) -> None:
    trained(live, project)
    code, _, err = cli("why", f"{project}/7b@0", f"{project}/7b@3200", "--bisect")
    assert code == 0
    assert "Searching for the fall of gsm8k.exact_match.strict-match" in err
    assert "Next: evaluate 7b · 1 · 1600" in err
    assert "on 240 items" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("why", "a"), "Name two checkpoints"),
        (("why", "a", "b", "--eval", "x {path} {output}"), "add --bisect"),
        (("why", "a", "b", "--bisect", "--eval", "x {path}"), "has no {output}"),
        (("why", "a", "b", "--bisect", "--eval", "'open"), "cannot be split"),
        (("why", "a", "b", "--bisect", "--capability", "math", "--eval", "x {path} {output}"), "--benchmark"),
    ],
)
def test_a_wrong_call_ends_with_2(live: Client, cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = cli(*arguments)
    assert code == 2
    assert said in err


def test_what_is_filled_in_is_one_word_and_never_read_again() -> None:
    template = Template("sh -c 'true {x}' --path={path} {output}/{items} {checkpoint}")
    words = template.filled(Placeholders("/a b; rm -rf {output}", "c1", 5, Path("/o")))
    assert words == ["sh", "-c", "true {x}", "--path=/a b; rm -rf {output}", "/o/5", "c1"]
    with pytest.raises(UnusableCommand):
        Template("")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/c", "/a b/c"),
        ("/a b", "/a b"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("file://host/a", "file://host/a"),
    ],
)
def test_a_file_address_is_given_as_a_path(uri: str, path: str) -> None:
    assert path_of(uri) == path


def test_how_the_candidate_was_made_is_said_first(live: Client, project: str, cli: Cli) -> None:
    def score(value: float) -> list[dict[str, Any]]:
        return [{"benchmark": "mmlu", "metric": "acc", "value": value, "n_samples": 14042}]

    source = live.register_checkpoint(live.create_run(project, "7b"), 1, scores=score(0.6))
    parents = [{"checkpoint_id": source.id, "relation": "quantised_from"}]
    live.register_checkpoint(live.create_run(project, "int4"), 1, scores=score(0.5), parents=parents)
    code, out, _ = cli("why", f"{project}/7b@1", f"{project}/int4@1")
    assert (code, out.splitlines()[0]) == (0, "The candidate was quantised from the baseline.")
    assert "1. lineage.quantised_from (some, 100 % of the suspicion)" in out
    _, _, err = cli("compare", f"{project}/7b@1", f"{project}/int4@1")
    assert "Lineage: the candidate was quantised from the baseline." in err
    said = "lineage.quantised_from (the candidate was quantised from the baseline)"
    assert f"Suspect (some, 100 % of the suspicion): {said}" in err


def test_two_that_share_no_benchmark_are_no_good_news(live: Client, project: str, cli: Cli) -> None:
    live.register_checkpoint(live.create_run(project, "a"), 1, scores={"gsm8k": 0.6})
    live.register_checkpoint(live.create_run(project, "b"), 1, scores={"mmlu": 0.1})
    code, out, _ = cli("why", f"{project}/a@1", f"{project}/b@1")
    assert (code, out.splitlines()[-1]) == (1, "Nothing can be said: no benchmark was measured on both.")


def test_scores_under_other_conditions_are_no_good_news_either(live: Client, project: str, cli: Cli) -> None:
    def scored(shots: int) -> list[dict[str, Any]]:
        return [{"benchmark": "gsm8k", "metric": "acc", "value": 0.5, "n_shot": shots}]

    live.register_checkpoint(live.create_run(project, "a"), 1, scores=scored(0))
    live.register_checkpoint(live.create_run(project, "b"), 1, scores=scored(8))
    code, out, _ = cli("why", f"{project}/a@1", f"{project}/b@1")
    assert code == 1
    assert "no score of one is comparable with one of the other: gsm8k.acc" in out
