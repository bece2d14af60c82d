"""Result files of lm-evaluation-harness 0.3 and its forks, each oddity as a small file of that shape."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn.formats import EvalFile, EvalScore, Refused, find_format, read_evals

PUBLISHED = Path(__file__).parents[5] / "shared" / "data"
HF_ARGS = "use_accelerate=True,pretrained=org/model-1b,revision=step3000"


def document(results: Any, **more: Any) -> dict[str, Any]:
    config = {"model": "hf-causal", "model_args": HF_ARGS, "num_fewshot": 0, "limit": None, "description_dict": {}}
    versions = dict.fromkeys(results, 0) if isinstance(results, dict) else {}
    return {"results": results, "versions": versions, "config": config, **more}


def config(**more: Any) -> dict[str, Any]:
    return {**document({})["config"], **more}


def read(value: Any, name: str = "") -> EvalFile:
    return read_evals(json.dumps(value).encode(), name=name)


def only(file: EvalFile) -> EvalScore:
    assert len(file.scores) == 1
    return file.scores[0]


ONE = {"piqa": {"acc": 0.7, "acc_stderr": 0.01}}


def test_a_plain_result_is_read_whole() -> None:
    file = read(document({"lambada_openai": {"ppl": 676543210.9, "ppl_stderr": 12.5, "acc": 0, "acc_stderr": 0.0}}))
    assert [(s.benchmark, s.metric, s.value, s.stderr) for s in file.scores] == [
        ("lambada_openai", "ppl", 676543210.9, 12.5),
        ("lambada_openai", "acc", 0.0, 0.0),
    ]
    assert {(s.version, s.n_shot, s.filter, s.harness, s.harness_version) for s in file.scores} == {
        ("0", 0, "", "lm-evaluation-harness", None)
    }
    assert (file.format, file.step, file.step_source) == ("lm-eval-v03", 3000, "revision")
    assert (file.model_path, file.model_revision) == ("org/model-1b", "step3000")
    assert (file.skipped, file.problems) == ((), ())


def test_the_wire_form_has_the_fields_of_the_call() -> None:
    sent = only(read(document(ONE))).to_wire()
    assert sent == {
        "benchmark": "piqa",
        "metric": "acc",
        "filter": "",
        "value": 0.7,
        "stderr": 0.01,
        "n_shot": 0,
        "version": "0",
        "harness": "lm-evaluation-harness",
    }


def test_non_finite_results_are_kept_as_such() -> None:
    file = read(document({"t": {"a": math.nan, "b": math.inf, "c": "-Infinity"}}))
    assert [s.to_wire()["value"] for s in file.scores] == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("stderr", ["N/A", None, math.nan, -0.5, math.inf, True, "0.01"])
def test_an_error_that_is_none_is_missing_not_zero(stderr: Any) -> None:
    assert only(read(document({"t": {"acc": 0.5, "acc_stderr": stderr}}))).stderr is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "missing in the file"),
        ("N/A", "missing in the file"),
        (True, "expected a number, found True"),
        ("0.5", "expected a number"),
        ([1], "expected a number"),
    ],
)
def test_what_is_no_number_is_left_out_and_named(value: Any, reason: str) -> None:
    file = read(document({"t": {"bad": value, "acc": 0.5}}))
    assert only(file).metric == "acc"
    assert [each.item for each in file.skipped] == ["t.bad"]
    assert reason in file.skipped[0].reason


def test_a_number_that_no_double_holds_is_not_infinity() -> None:
    text = json.dumps(document({"t": {"acc": 0.5, "big": 7}})).replace('"big": 7', '"big": 1e999')
    file = read_evals(text.encode())
    assert only(file).metric == "acc"
    assert "1e999 is beyond" in file.skipped[0].reason


def test_an_error_without_its_score_is_named() -> None:
    file = read(document({"t": {"acc": 0.5, "f1_stderr": 0.1}}))
    assert [each.item for each in file.skipped] == ["t.f1_stderr"]


def test_a_repeated_key_with_two_values_is_left_out_and_named() -> None:
    head = '{"versions": {}, "config": {}, "results": '
    file = read_evals((head + '{"t": {"acc": 0.1, "acc": 0.9, "f1": 0.5}}}').encode())
    assert only(file).metric == "f1"
    assert (file.skipped[0].item, "twice" in file.skipped[0].reason) == ("t.acc", True)
    same = read_evals((head + '{"t": {"acc": 0.1, "acc": 0.1}}}').encode())
    assert only(same).value == 0.1
    twice = read_evals((head + '{"t": {"acc": 0.1}, "u": {"acc": 0.3}, "t": {"acc": 0.9}}}').encode())
    assert (only(twice).benchmark, twice.skipped[0].item) == ("u", "t")
    with pytest.raises(Refused, match="'results' stands twice"):
        read_evals(b'{"results": {"t": {"acc": 1}}, "results": {"t": {"acc": 2}}, "versions": {}}')


def test_a_repeated_setting_is_reported() -> None:
    file = read_evals(
        b'{"results": {"t": {"acc": 1}}, "versions": {"t": 0, "t": 1}, "config": {"limit": 1, "limit": 2}}'
    )
    assert any(problem.startswith("versions.t stands twice") for problem in file.problems)
    assert any(problem.startswith("config.limit stands twice") for problem in file.problems)


# The forks


def test_a_list_of_results_is_read_under_task_and_prompt() -> None:
    entry = {
        "task_name": "wino_bias_type1_pro",
        "prompt_name": "refers_to",
        "prompt_id": "13b2dbe4",
        "prompt_jinja": "{{ text }} ||| {{ answer }}",
        "prompt_original_task": True,
        "fixed_answer_choice_list": None,
        "em": 0.02,
        "em_stderr": 0.007,
    }
    label = "wino_bias_type1_pro+refers_to"
    score = only(read(document([entry, "junk"], versions={label: 0}, table_results={})))
    assert (score.benchmark, score.metric, score.value, score.stderr) == (label, "em", 0.02, 0.007)
    assert (score.version, score.comparability) == ("0", {"prompt_id": "13b2dbe4"})


def test_results_under_a_time_are_read_oldest_first() -> None:
    dated = {"2022-07-14-10-00-00": {"acc": 0.6}, "2022-07-13-11-18-33": {"acc": 0.5, "acc_stderr": 0.1}}
    file = read(document({"arc": dated}, versions={"arc": 0}))
    assert [(s.benchmark, s.value, s.version) for s in file.scores] == [("arc", 0.5, "0"), ("arc", 0.6, "0")]
    assert all(s.evaluated_at is None for s in file.scores)
    assert "without a zone" in file.problems[0]


def test_versions_under_a_time_are_found_too() -> None:
    when = "2022-07-13-11-18-33"
    file = read(document({"arc": {when: {"acc": 0.5}}}, versions={"arc": {when: 2}}))
    assert only(file).version == "2"


def test_two_prompt_templates_of_one_task_are_not_comparable() -> None:
    one, other = (
        only(read(document({name: {"acc": value}}, versions={name: 1.1})))
        for name, value in (("jcommonsenseqa-1.1-0.1", 0.428), ("jcommonsenseqa-1.1-0.2", 0.197))
    )
    assert one.benchmark == other.benchmark == "jcommonsenseqa"
    assert one.version == other.version == "1.1"
    assert (one.comparability, other.comparability) == ({"prompt_template": "0.1"}, {"prompt_template": "0.2"})


def test_the_tail_of_a_name_is_a_template_only_where_the_version_agrees() -> None:
    assert only(read(document({"task-1.1-0.2": {"acc": 1}}, versions={"task-1.1-0.2": 2}))).benchmark == "task-1.1-0.2"


# Shots


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"model_args": {"eval_results_prefix": "evals/1.3B-5shot-global_step11500"}}, ""),
        ({}, "pythia-1.4b-deduped-5shot-global_step11500.json"),
        ({}, "five-shot.json"),
    ],
)
def test_a_number_of_shots_that_the_file_contradicts_is_unknown(more: dict[str, Any], name: str) -> None:
    file = read(document(ONE, config=config(**more)), name)
    assert only(file).n_shot is None
    assert only(file).comparability == {"num_fewshot_claims": "0|5"}
    assert any("number of shots is unknown" in problem for problem in file.problems)


@pytest.mark.parametrize("name", ["", "a-5shot.json", "shots.json", "model15shot2.json"])
def test_a_number_of_shots_that_nothing_contradicts_stands(name: str) -> None:
    assert only(read(document(ONE, config=config(num_fewshot=5)), name)).n_shot == 5


def test_a_list_of_shots_names_no_tasks() -> None:
    mixed = read(document(ONE, config=config(num_fewshot=[3, 0])))
    assert only(mixed).n_shot is None
    assert only(mixed).comparability == {"num_fewshot_list": "3,0"}
    assert only(read(document(ONE, config=config(num_fewshot=[3, 3])))).n_shot == 3


def test_a_partial_evaluation_compares_only_with_its_like() -> None:
    file = read(document(ONE, config=config(limit=100, description_dict={"piqa": "Answer."})))
    assert only(file).comparability.keys() == {"limit", "description_digest"}
    assert "only the first 100 items" in file.problems[0]


# Step and model


@pytest.mark.parametrize(
    ("model_args", "step"),
    [
        ("pretrained=org/m,revision=step0", 0),
        ("pretrained=/ckpt/run-7/checkpoint-9000", 9000),
        ("pretrained=/ckpt/global_step512/", 512),
        ({"iteration": 113000, "eval_results_prefix": "19M-global_step113000"}, 113000),
        ("pretrained=org/m", None),
        ("pretrained=org/model-step-by-step", None),
        ("pretrained=org/3b-ja50_rp50-700b", None),
        ("pretrained=org/m,revision=step99999999999999999999", None),
        ({"iteration": True}, None),
        ({"iteration": 5, "eval_results_prefix": "global_step6"}, None),
        (None, None),
        (7, None),
    ],
)
def test_the_step_comes_from_what_says_it_and_from_no_lookalike(model_args: Any, step: int | None) -> None:
    assert read(document(ONE, config=config(model_args=model_args))).step == step


def test_two_steps_in_one_file_are_reported() -> None:
    args = {"iteration": 5, "eval_results_prefix": "global_step6"}
    file = read(document(ONE, config=config(model_args=args)))
    assert file.problems == ("the step is unknown: iteration says 5, eval_results_prefix says 6",)


def test_a_name_that_contradicts_the_step_is_reported_and_not_believed() -> None:
    file = read(document(ONE), "model_step4000.json")
    assert file.step == 3000
    assert file.problems == ("the file's name says step 4000, revision says 3000",)


def test_the_adapter_is_not_the_model() -> None:
    file = read(document(ONE, config=config(model="gpt2", model_args="pretrained=facebook/opt-350m")))
    assert (file.model_path, file.facts["model"]) == ("facebook/opt-350m", "gpt2")


def test_a_whole_training_config_inside_is_survived() -> None:
    args = {f"key{index}": index for index in range(190)} | {
        "config_files": {"1.4B.yml": '{\n "pipe-parallel-size": 1, # no JSON\n}'},
        "load": "/ckpt/1.4b",
        "git_hash": "70c285c",
        "iteration": 3000,
    }
    file = read(document(ONE, config=config(model="neox", model_args=args)))
    assert (file.step, file.model_path) == (3000, "/ckpt/1.4b")
    assert file.facts["model_args.git_hash"] == "70c285c"
    assert "model_args.key5" not in file.facts


@pytest.mark.parametrize("broken", [None, [], "text"])
def test_a_missing_config_is_reported(broken: Any) -> None:
    file = read(document(ONE, config=broken))
    assert (only(file).n_shot, file.step) == (None, None)
    assert "no config" in file.problems[0]


# What is refused


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no JSON"),
        (b'{"results": }', "no JSON: Expecting value at line 1, column 13"),
        (b"|Task|Version|", "text that starts with"),
        (b"\tscore\tstate\n0\t1\t2", "a table with the columns"),
        (b"\x89PNG\r\n", "no UTF-8"),
        (b"[1]", "JSON array"),
        (b"null", "JSON null"),
        (b"{}", "empty object"),
        (b'{"best_metric": null, "global_step": 5}', "its keys are 'best_metric', 'global_step'"),
        (b'{"config_general": 5, "results": {}}', "'config_general'"),
        (b'{"results": {}, "versions": {}, "n-shot": {}}', "the shape of lm-eval-v04 but holds no score"),
        (b'{"results": {}, "versions": {}}', "holds no score"),
        (b'{"results": {"t": 5}, "versions": {}}', "expected an object of metrics"),
        (b'{"results": {"t": {"acc": null}}, "versions": {}}', "first: t.acc: missing"),
        (b'{"results": {"t\\u0000": {"acc": 1}}, "versions": {}}', "control character"),
        (b'{"results": {"t": {"\\ud800": 1}}, "versions": {}}', "lone surrogate"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nested more than 64"),
        (b"[" * 200_000, "nested more than 64"),
        (b'{"a": ' + b"9" * 5000 + b"}", "its keys are 'a'"),
    ],
)
def test_what_is_no_result_file_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_evals(content)


def test_64_levels_are_not_too_deep() -> None:
    assert find_format(b'{"a":' * 64 + b"1" + b"}" * 64) is None


def test_a_file_beyond_the_limit_is_not_even_parsed() -> None:
    with pytest.raises(Refused, match="bytes; a result file has at most"):
        read_evals(b" " * (32 * 1024 * 1024 + 1))


def test_the_format_is_found_by_content() -> None:
    assert find_format(json.dumps(document(ONE)).encode()) == "lm-eval-v03"
    assert find_format(b'{"results": 3, "versions": {}}') is None
    with pytest.raises(Refused, match="Unknown format 'nonsense'"):
        read_evals(b"{}", format="nonsense")


# Published files, where they are at hand


def published() -> Iterator[Path]:
    folders = (PUBLISHED / "pythia/raw", PUBLISHED / "evals/lm_eval_v03")
    yield from sorted(path for folder in folders if folder.is_dir() for path in folder.glob("*.json"))


@pytest.mark.parametrize("path", list(published()) or [None], ids=lambda path: path.name if path else "none")
def test_every_published_number_comes_through_to_the_digit(path: Path | None) -> None:
    if path is None:
        pytest.skip("the published result files are not on this machine")
    results = json.loads(path.read_text())["results"]
    tasks = results if isinstance(results, list) else results.values()
    expected = [
        value
        for task in tasks
        for metric, value in task.items()
        if not metric.endswith("_stderr") and type(value) in (int, float)
    ]
    file = read_evals(path.read_bytes(), name=path.name)
    assert [score.value for score in file.scores] == expected
    assert file.skipped == ()
    with_error = sum(metric.endswith("_stderr") for task in tasks for metric in task)
    assert sum(score.stderr is not None for score in file.scores) == with_error
