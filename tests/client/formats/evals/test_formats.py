"""Every format by a small file of its own: what is read, what is kept beside it, what is left out."""

import json
import math
from typing import Any

import pytest
from cairn.formats import EvalFile, EvalScore, Refused, find_format, read_evals
from cairn.formats.evals import Place, read_eval_folder, together

from tests.client.formats.evals import samples
from tests.client.formats.evals.samples import encoded


def read(value: Any, name: str = "") -> EvalFile:
    return read_evals(value if isinstance(value, bytes) else encoded(value), name=name)


def by_name(file: EvalFile) -> dict[tuple[str, str, str], EvalScore]:
    found = {(score.benchmark, score.metric, score.filter): score for score in file.scores}
    assert len(found) == len(file.scores)
    return found


EVERY_FORMAT = {
    "lm-eval-v04": encoded(samples.lm_eval_v04()),
    "lm-eval-markdown": samples.MARKDOWN.encode(),
    "lighteval": encoded(samples.LIGHTEVAL),
    "opencompass": samples.OPENCOMPASS.encode(),
    "inspect-ai": encoded(samples.inspect_log()),
    "trainer-state": encoded(samples.TRAINER_STATE),
    "every-eval-ever": encoded(samples.EVERY_EVAL_EVER),
    "dclm": encoded(samples.DCLM),
    "lm-eval-samples": samples.SAMPLES,
    "plain-table": samples.PLAIN,
}


@pytest.mark.parametrize("format", EVERY_FORMAT)
def test_a_format_is_found_by_content_under_any_name(format: str) -> None:
    assert find_format(EVERY_FORMAT[format]) == format
    name = "samples_t_2026-01-21T03-44-18.jsonl"
    assert read(EVERY_FORMAT[format], name).format == format
    other = "dclm" if format != "dclm" else "lighteval"
    with pytest.raises(Refused, match=f"is {format}, not {other}"):
        read_evals(EVERY_FORMAT[format], format=other, name=name)


# lm-evaluation-harness 0.4


def test_a_result_of_harness_04_is_read_with_all_that_makes_it_comparable() -> None:
    file = read(samples.lm_eval_v04())
    found = by_name(file)
    strict = found["gsm8k", "exact_match", "strict-match"]
    assert (strict.value, strict.stderr, strict.n_shot, strict.n_samples, strict.version) == (0.25, 0.05, 5, 100, "3.0")
    assert (strict.harness, strict.harness_version) == ("lm-evaluation-harness", "0.4.9")
    assert strict.evaluated_at == "2026-01-21T02:59:43.500000Z"
    assert strict.comparability.keys() == {
        *("task_hash", "prompt_digest", "chat_template_sha", "fewshot_as_multiturn", "limit"),
    }
    assert found["gsm8k", "exact_match", "flexible-extract"].stderr is None
    assert found["wikitext", "word_perplexity", ""].value == 12.5
    assert (file.step, file.step_source, file.model_path) == (3000, "revision", "org/model-1b")
    assert file.skipped == ()


def test_a_group_counts_its_subtasks_samples() -> None:
    group = by_name(read(samples.lm_eval_v04()))["mmlu", "acc", ""]
    assert (group.value, group.n_samples, group.n_shot, group.version) == (0.4, 180, None, "2")
    unweighted = samples.lm_eval_v04(
        configs={"mmlu": {"aggregate_metric_list": [{"metric": "acc", "weight_by_size": False}]}}
    )
    assert by_name(read(unweighted))["mmlu", "acc", ""].n_samples is None
    unknown = samples.lm_eval_v04(**{"n-samples": {"mmlu_anatomy": {"effective": 100}}})
    assert by_name(read(unknown))["mmlu", "acc", ""].n_samples is None


def test_groups_that_contain_each_other_end() -> None:
    circular = samples.lm_eval_v04(group_subtasks={"mmlu": ["mmlu_anatomy", "mmlu"], "mmlu_anatomy": ["mmlu"]})
    assert len(read(circular).scores) == 6


def test_a_group_that_stands_only_under_groups_is_read_and_a_contradiction_noted() -> None:
    document = samples.lm_eval_v04()
    document["groups"] = {"bbh": {"acc,none": 0.3}, "mmlu": {"acc,none": 0.9}}
    file = read(document)
    assert by_name(file)["bbh", "acc", ""].value == 0.3
    assert by_name(file)["mmlu", "acc", ""].value == 0.4
    assert "mmlu: `groups` and `results` differ; `results` was read" in file.problems


def test_a_prompt_digest_does_not_depend_on_where_a_function_lay_in_memory() -> None:
    def digest(text: str) -> Any:
        document = samples.lm_eval_v04()
        document["configs"]["gsm8k"]["process_docs"] = text
        return by_name(read(document))["gsm8k", "exact_match", "strict-match"].comparability["prompt_digest"]

    assert digest("<function a at 0x7f01>") == digest("<function a at 0x9901>")
    assert digest("<function a at 0x7f01>") != digest("<function b at 0x7f01>")


@pytest.mark.parametrize("args", [samples.MODEL_ARGS, {"pretrained": "org/model-1b", "revision": "step3000"}])
def test_model_args_are_a_text_or_an_object(args: Any) -> None:
    file = read(samples.lm_eval_v04(config={"model_args": args}))
    assert (file.model_path, file.model_revision, file.step) == ("org/model-1b", "step3000", 3000)
    assert "limit" not in file.scores[0].comparability


def test_a_clock_that_does_not_count_from_1970_is_no_time_of_evaluation() -> None:
    assert read(samples.lm_eval_v04(date=3391296.9)).scores[0].evaluated_at is None


def test_the_markdown_table_gives_what_the_json_gives() -> None:
    file = read(samples.MARKDOWN.encode())
    found = by_name(file)
    assert {key: score.value for key, score in found.items()} == {
        ("arc_challenge", "acc", ""): 0.422,
        ("arc_challenge", "acc_norm", ""): 0.439,
        ("gsm8k", "exact_match", "flexible-extract"): 0.61,
        ("mmlu", "acc", ""): 0.6153,
        ("mmlu_humanities", "acc", ""): 0.5641,
        ("mmlu_formal_logic", "acc", ""): 0.3175,
        ("wikitext", "word_perplexity", ""): math.inf,
    }
    assert found["mmlu_formal_logic", "acc", ""].stderr == 0.0416
    assert found["arc_challenge", "acc_norm", ""].stderr is None
    assert (found["arc_challenge", "acc_norm", ""].version, found["arc_challenge", "acc_norm", ""].n_shot) == ("1", 0)
    assert found["mmlu", "acc", ""].n_shot is None
    assert all(score.comparability == {"limit": 40} for score in file.scores)
    assert (file.step, file.model_path, file.skipped) == (500, "org/model", ())


def test_tables_of_two_models_in_one_file_stay_apart() -> None:
    other = samples.MARKDOWN.replace("step500", "step900").replace("0.6153", "0.7000")
    file = read((samples.MARKDOWN + "\n" + other).encode())
    mmlu = {score.place: score.value for score in file.scores if score.benchmark == "mmlu"}
    assert mmlu == {Place(step=500, model="org/model"): 0.6153, Place(step=900, model="org/model"): 0.7}
    assert file.step is None


# Samples


def test_samples_become_a_mean_with_its_error() -> None:
    file = read(samples.SAMPLES, "out/samples_piqa_2026-01-21T03-44-18.458309.jsonl")
    score = file.scores[0]
    assert (score.benchmark, score.metric, score.value, score.n_samples) == ("piqa", "acc", 0.75, 8)
    assert score.stderr == pytest.approx(math.sqrt(0.75 * 0.25 / 7))
    assert [value for _, value in score.samples] == [
        float(row["acc"]) for row in map(json.loads, samples.SAMPLES.splitlines())
    ]


def test_the_digest_of_the_items_knows_the_same_items_in_another_order() -> None:
    def digest(rows: list[Any]) -> Any:
        return read(samples.lines(rows), "samples_t.jsonl").scores[0].comparability["items_digest"]

    rows = [samples.sample(doc, 1.0) for doc in range(5)]
    assert digest(rows) == digest(rows[::-1])
    assert digest(rows) != digest([*rows[:-1], samples.sample(4, 1.0, prompt_hash="other")])


def test_samples_of_two_filters_are_two_scores_and_what_is_no_mean_is_left_out() -> None:
    rows = [samples.sample(doc, doc % 2 == 0, filter) for doc in range(4) for filter in ("strict", "none")]
    rows += [samples.sample(9, [1, 2]), samples.sample(10, 1.0, metrics=["perplexity"], perplexity=-3.5)]
    file = read(samples.lines(rows), "samples_t.jsonl")
    assert {(score.filter, score.value, score.n_samples) for score in file.scores} == {("strict", 0.5, 4), ("", 0.5, 4)}
    assert {item.item for item in file.skipped} == {"acc", "perplexity"}


@pytest.mark.parametrize("name", ["", "results.jsonl", "samples_.jsonl", "samples_a\0.jsonl"])
def test_samples_that_do_not_say_their_task_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="do not name their task"):
        read(samples.SAMPLES, name)


def test_lines_that_are_cut_short_refuse_the_file() -> None:
    with pytest.raises(Refused, match="Line 8 is no JSON"):
        read(samples.SAMPLES[:-30], "samples_t.jsonl")
    assert read(samples.sample(0, 1.0), "samples_t.jsonl").scores[0].stderr is None, "one line is a document as well"


# lighteval, OpenCompass


def test_lighteval_names_suite_task_and_shots_in_one_key() -> None:
    file = read(samples.LIGHTEVAL)
    found = by_name(file)
    arc = found["arc:challenge", "acc_norm", ""]
    assert (arc.value, arc.stderr, arc.n_shot, arc.version) == (0.54, 0.0145, 25, "0")
    assert arc.comparability == {"suite": "leaderboard", "hash_examples": "17b0", "hash_full_prompts": "9f3c"}
    assert found["mmlu", "acc", ""].comparability["aggregate"] == "mean of subsets"
    assert math.isnan(found["ifeval", "prompt_level_strict_acc", ""].value)
    assert [item.item for item in file.skipped] == ["all"]
    assert (file.step, file.model_path, arc.evaluated_at) == (700, "org/model-8b", None)


def test_the_details_of_lighteval_are_refused_as_what_they_are() -> None:
    with pytest.raises(Refused, match="a Parquet file"):
        read(b"PAR1\x00\x01\x02")


def test_an_opencompass_summary_keeps_versions_as_text_and_models_apart() -> None:
    file = read(samples.OPENCOMPASS.encode())
    found = {(score.benchmark, score.place): score for score in file.scores}
    first, second = (Place(step=step, model=f"model-step{step}-hf") for step in (1000, 2000))
    assert {key: score.value for key, score in found.items()} == {
        ("ceval-accountant", first): 36.73,
        ("ceval-accountant", second): 37.5,
        ("ceval", first): 47.03,
        ("mt_bench", first): 6.5,
        ("mt_bench", second): 6.75,
    }
    assert (found["ceval-accountant", first].version, found["ceval", first].version) == ("002837", None)
    assert found["ceval", first].filter == "gen"
    assert [(item.item, item.reason) for item in file.skipped] == [
        ("ceval of model-step2000-hf", "missing in the file, which is not zero")
    ]
    single = read("\n".join(line.rpartition(",")[0] for line in samples.OPENCOMPASS.splitlines()).encode())
    assert (single.model_path, single.step) == ("model-step1000-hf", 1000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dataset,version,metric,mode\na,b,c,d\n", "no column of a model"),
        ("dataset,version,metric,mode,m,m\na,b,c,d,1,2\n", "'m' stands twice"),
        ("dataset,version,metric,mode,m\na,b,c,d\n", "Line 2 has 4 cells, its header 5"),
        ("dataset,version,metric,mode,m\na,b,c,d,-\n", "holds no score"),
    ],
)
def test_a_summary_that_cannot_be_one_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read(text.encode())


# HELM


def test_a_helm_run_is_read_from_its_folder() -> None:
    file = read_eval_folder(samples.HELM, folder=samples.HELM_FOLDER)
    plain, robust = file.scores
    assert (plain.benchmark, plain.metric, plain.value) == ("mmlu_anatomy", "exact_match", 0.3)
    assert (plain.n_samples, plain.n_shot, plain.stderr) == (10, 5, None)
    assert (robust.value, robust.n_samples) == (0.2, 9)
    assert plain.comparability["split"] == "valid"
    assert plain.comparability["max_eval_instances"] == 10
    assert (plain.filter, robust.filter, robust.comparability["perturbation"]) == ("", "robustness", "robustness")
    assert (file.format, file.model_path, file.step) == ("helm", "org/model-step4000", 4000)
    reasons = {item.item: item.reason for item in file.skipped}
    assert "count 0" in reasons["mmlu_anatomy.quasi_exact_match valid"]
    assert reasons["inference_runtime, num_instances, perplexity"] == "statistics of the run, not of the benchmark"
    assert file.problems == ()


def test_a_folder_named_after_another_run_is_noted() -> None:
    file = read_eval_folder(samples.HELM, folder="mmlu-subject=virology,model=org_model")
    assert "the folder is named 'mmlu-subject=virology" in file.problems[0]


def test_perplexity_is_a_score_where_language_modelling_is_measured() -> None:
    spec = {
        **samples.HELM_SPEC,
        "adapter_spec": {"method": "language_modeling", "model": "m"},
        "name": "ice:a=b,model=m",
    }
    files = {"run_spec.json": encoded({**spec, "groups": []}), "stats.json": encoded(samples.HELM_STATS)}
    found = by_name(read_eval_folder({**files}))
    assert found["ice", "perplexity", ""].value == 1.0
    assert found["ice", "perplexity", ""].comparability["arguments"] == "a=b"


def test_one_file_of_a_helm_run_is_refused_with_what_to_give() -> None:
    for name in ("run_spec.json", "stats.json"):
        with pytest.raises(Refused, match="give the folder"):
            read(samples.HELM[f"{samples.HELM_FOLDER}/{name}"])
    with pytest.raises(Refused, match=r"needs a run_spec\.json and a stats\.json"):
        read_eval_folder({"run_spec.json": encoded(samples.HELM_SPEC)})


def test_what_belongs_together_stands_in_one_folder() -> None:
    names = ["a/run_spec.json", "b/results.json", "a/stats.json", "c/stats.json", "a/x.json", "b/run_spec.json"]
    assert together(names) == [(0, 2), (1,), (3,), (4,), (5,)]


# inspect-ai


@pytest.mark.parametrize("content", [encoded(samples.inspect_log()), samples.inspect_archive()])
def test_a_log_of_inspect_says_the_same_in_both_forms(content: bytes) -> None:
    file = read(content)
    (score,) = file.scores
    assert (score.benchmark, score.metric, score.filter, score.value) == ("arc_easy", "accuracy", "choice", 0.75)
    assert (score.stderr, score.n_samples, score.n_shot, score.version) == (0.06, 48, 3, "1")
    assert (score.evaluated_at, score.harness_version) == ("2026-10-21T01:14:16+02:00", "0.3.138")
    assert score.comparability.keys() == {"limit", "epochs", "task_args", "plan", "reducer"}
    assert (file.step, file.model_path) == (800, "/ckpt/run-a/checkpoint-800")
    assert [item.item for item in file.skipped] == ["arc_easy.f1 (choice)"]


def test_an_evaluation_that_did_not_end_is_refused_or_noted() -> None:
    with pytest.raises(Refused, match="status 'error' and holds no results"):
        read(samples.inspect_log(status="error", results=None))
    with pytest.raises(Refused, match="never finished"):
        read(samples.archive({"_journal/start.json": b"{}"}))
    cancelled = read(samples.inspect_log(status="cancelled"))
    assert "the evaluation ended with the status 'cancelled': its results may be partial" in cancelled.problems


# trainer_state.json


def test_evaluations_of_the_trainer_stand_at_their_steps() -> None:
    file = read(samples.TRAINER_STATE)
    found = {(score.place.step, score.benchmark, score.metric): score.value for score in file.scores}
    assert math.isnan(found.pop((2000, "eval", "loss")))
    assert found == {
        (1000, "eval", "loss"): 0.75,
        (1000, "eval", "wer"): 61.5,
        (1000, "eval", "rouge-1"): 40.0,
        (1000, "eval", "rewards/chosen"): -0.5,
        (2000, "eval", "wer"): 48.25,
    }
    assert (file.step, file.facts["steps"]) == (None, (1000, 2000))


def test_sets_with_names_of_their_own_are_told_from_metrics() -> None:
    entries = [
        {"step": 10, "eval_g1_loss": 2.0, "eval_g1_accuracy": 0.5, "eval_g1_runtime": 1.0},
        {"step": 10, "eval_g1_long_loss": 3.0, "eval_g1_long_runtime": 1.0, "eval_g1_runtime": 1.0, "eval_loss": 1.0},
    ]
    file = read(samples.trainer_state(*entries))
    assert [(score.benchmark, score.metric, score.value) for score in file.scores] == [
        ("eval_g1", "loss", 2.0),
        ("eval_g1", "accuracy", 0.5),
        ("eval_g1_long", "loss", 3.0),
        ("eval", "loss", 1.0),
    ]
    assert (file.step, file.step_source) == (10, "log_history")


def test_repeated_steps_are_kept_once_if_equal_and_both_if_not() -> None:
    entries = [{"step": 10, "eval_loss": value} for value in (2.0, 2.0, 3.0)]
    file = read(samples.trainer_state(*entries))
    assert [score.value for score in file.scores] == [2.0, 3.0]
    assert "1 results stand beside another one" in file.problems[0]


def test_predictions_and_odd_entries_of_a_log_are_named() -> None:
    odd = [
        5,
        {"eval_loss": 1.0},
        {"step": 1.5, "eval_loss": 1.0},
        {"predict_loss": 2.0},
        {"step": 9000, "eval_loss": 1},
    ]
    file = read(samples.trainer_state(*odd))
    assert [item.item for item in file.skipped] == [
        *("log_history/1", "log_history/2", "log_history/3", "predict_* of 1 entries"),
    ]
    assert file.problems == ("an evaluation stands at step 9000, beyond the global_step 2000",)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (samples.trainer_state(), "holds no evaluation: 1 entries of training"),
        (
            {"global_step": 5, "log_history": [], "trainer": "ours"},
            "its keys are 'global_step', 'log_history', 'trainer'",
        ),
        ({"state": {"log_history": []}, "epoch": 1}, "its keys are 'state', 'epoch'"),
        (samples.trainer_state(log_history={"eval_loss": 1}), "its keys are"),
    ],
)
def test_a_state_without_evaluations_or_of_another_program_is_refused(document: Any, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read(document, "trainer_state.json")


# every_eval_ever, DCLM


def test_a_record_of_every_eval_ever_keeps_its_scale_beside_the_figure() -> None:
    file = read(samples.EVERY_EVAL_EVER)
    (score,) = file.scores
    assert (score.benchmark, score.metric, score.value, score.stderr) == ("bench", "accuracy", 75.5, 1.5)
    assert (score.n_samples, score.evaluated_at) == (400, "2025-06-15T15:06:40Z")
    assert score.comparability == {"max_score": 100.0}
    assert (score.harness, score.harness_version, file.step) == ("every-eval-ever", None, 900)


def test_dclm_figures_are_read_with_their_centred_aggregates() -> None:
    file = read(samples.DCLM)
    assert {(score.benchmark, score.metric): score.value for score in file.scores} == {
        ("mmlu_zeroshot", "accuracy"): 0.5,
        ("copa", "accuracy"): 0.75,
        ("dclm_validation", "perplexity"): 2.5,
        ("mmlu", "perplexity"): 1.5,
        ("dclm_core", "centered_accuracy"): -0.125,
        ("dclm_extended", "centered_accuracy"): 0.25,
    }
    assert [score.n_shot for score in file.scores[:2]] == [0, None]
    assert file.scores[0].harness_version == "v2"
    assert any("names no model record" in problem for problem in file.problems)


# Plain tables


def test_a_plain_table_names_checkpoints_in_several_ways() -> None:
    file = read(samples.PLAIN)
    first, second, third = file.scores
    assert (first.value, first.stderr, first.n_samples, first.n_shot, first.version) == (0.25, 0.01, 1319, 5, "3")
    assert first.comparability == {"template": "a"}
    assert (first.place, third.place) == (Place(step=1000), Place(step=4000, attempt=2, run="run-b"))
    assert math.isnan(second.value)
    assert file.problems == ("columns that are not read: 'remark'",)
    assert file.step is None


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        ("0c1d2e3f4g5h6", Place(checkpoint="0c1d2e3f4g5h6")),
        ("p/run@7", Place(step=7, run="run", project="p")),
        ("checkpoint-70", Place(step=70)),
        ("runs/a/global_step70", Place(step=70)),
        ("", Place()),
    ],
)
def test_a_checkpoint_of_a_row(cell: str, place: Place) -> None:
    assert read(f"checkpoint\tbenchmark\tvalue\n{cell}\tpiqa\t0.5\n".encode()).scores[0].place == place


def test_rows_that_cannot_be_read_are_left_out_one_by_one() -> None:
    rows = [
        "x y,1,piqa,0.5",
        "@@,1,piqa,0.5",
        "5,6,piqa,0.5",
        "5,1.5,piqa,0.5",
        "5,5,,0.5",
        "5,5,piqa,high",
        "5,5,piqa,.5",
    ]
    file = read("\n".join(["checkpoint,step,benchmark,value", *rows]).encode())
    assert [score.value for score in file.scores] == [0.5]
    said = [(item.item, item.reason) for item in file.skipped]
    assert [item for item, _ in said] == [f"line {at}: piqa" for at in (2, 3, 4, 5)] + ["line 6", "line 7: piqa"]
    assert "names no checkpoint" in said[0][1]
    assert said[2][1] == "its checkpoint says step 5, its step column 6"
    assert "'1.5' is no whole number" in said[3][1]


@pytest.mark.parametrize("wrap", [lambda rows: samples.lines(rows), encoded])
def test_rows_as_json_keep_their_types(wrap: Any) -> None:
    rows = [
        {"step": 7, "task": "piqa", "score": 0.5, "comparability.seed": 3},
        {"step": 7, "task": "arc", "score": "NaN"},
        {"step": 7, "task": "odd", "score": True},
    ]
    file = read(wrap(rows))
    assert [score.benchmark for score in file.scores] == ["piqa", "arc"]
    assert file.scores[0].comparability == {"seed": 3}
    assert (file.step, [item.item.partition(": ")[2] for item in file.skipped]) == (7, ["odd"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\tscore\tstate\tstep\n0\t-1.1\t0\t0\n", "a table with the columns , score, state, step"),
        ("step,url\n1,s3://a\n", "none of which names a benchmark and a value"),
        ("just a note", "it is text that starts with 'just a note'"),
        ("benchmark,value\n" + "a" * 140_000 + ",1\n", "cannot be read at line"),
        ("benchmark,value\npiqa\n", "Line 2 has 1 cells"),
        ("benchmark,value,value\npiqa,1,2\n", "'value' stands twice"),
    ],
)
def test_a_table_of_something_else_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read(text.encode())


def test_a_file_name_gives_a_step_only_where_the_file_has_none() -> None:
    silent = samples.lm_eval_v04(config={"model_args": "pretrained=org/model"})
    file = read(silent, "runs/model_step4000.json")
    assert (file.step, file.step_source) == (4000, "the file's name")
    assert "the step, 4000, is taken from the file's name" in file.problems[0]
    assert json.dumps(file.scores[0].to_wire())
