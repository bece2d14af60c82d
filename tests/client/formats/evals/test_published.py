"""Every published result file at hand is imported, or refused for the right reason; the refusals stand here."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn.formats import EvalFile, Refused
from cairn.formats.evals import read_eval_folder, read_eval_path, together

PUBLISHED = Path(__file__).parents[5] / "shared" / "data"
FOLDERS = ("evals", "pythia/raw", "trainer_state", "dclm/evals")
NO_EVALUATION = r"trainer_state\.json holds no evaluation"
REFUSED = {
    "pythia/raw/polypythias_training_maps.tsv": r"a table with the columns , score, state, step, seed, group",
    "trainer_state/AriesChen-UPC__GeoLLM.json": f"{NO_EVALUATION}: 300 entries",
    "trainer_state/HenokB__amharic-to-geez.json": f"{NO_EVALUATION}: 6 entries",
    "trainer_state/O5-7__chat_glm2_in4_LIL_prefix__checkpoint-1000.json": f"{NO_EVALUATION}: 100 entries",
    "trainer_state/O5-7__chat_glm2_in4_LIL_prefix__checkpoint-2000.json": f"{NO_EVALUATION}: 200 entries",
    "trainer_state/Ray-Cheng-11__Tau-Bench-Model-Training.json": f"{NO_EVALUATION}: 1 entries",
    "trainer_state/XXX616519__CogniDet_Repository.json": f"{NO_EVALUATION}: 120 entries",
}
COUNTS = {
    "dclm": 106,
    "every-eval-ever": 1,
    "helm": 2,
    "inspect-ai": 4,
    "lighteval": 1,
    "lm-eval-markdown": 3,
    "lm-eval-samples": 1,
    "lm-eval-v03": 17,
    "lm-eval-v04": 1,
    "opencompass": 2,
    "trainer-state": 7,
}

pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published result files are not on this machine")


def results() -> Iterator[tuple[str, EvalFile | Refused]]:
    """Each file, or each folder whose files belong together, under the name of its first file."""
    files = sorted(path for folder in FOLDERS for path in (PUBLISHED / folder).rglob("*") if path.is_file())
    names = [path.relative_to(PUBLISHED).as_posix() for path in files]
    for group in together(names):
        try:
            yield names[group[0]], _read([files[at] for at in group])
        except Refused as refusal:
            yield names[group[0]], refusal


def _read(files: list[Path]) -> EvalFile:
    if len(files) == 1:
        return read_eval_path(files[0])
    return read_eval_folder({path.name: path.read_bytes() for path in files}, folder=files[0].parent.name)


def published(name: str) -> EvalFile:
    return read_eval_path(PUBLISHED / name)


def test_every_file_is_imported_or_refused_for_the_reason_that_stands_here() -> None:
    found = dict(results())
    refused = {name: str(answer) for name, answer in found.items() if isinstance(answer, Refused)}
    assert refused.keys() == REFUSED.keys()
    for name, reason in REFUSED.items():
        assert re.search(reason, refused[name]), refused[name]
    counts: dict[str, int] = {}
    for answer in found.values():
        if isinstance(answer, EvalFile):
            assert answer.scores
            counts[answer.format] = counts.get(answer.format, 0) + 1
    assert counts == COUNTS


def test_one_current_score_comes_of_each_name_in_a_file() -> None:
    """A second score under one name and step would hide the first; only repeated evaluations may stand twice."""
    for name, answer in results():
        if isinstance(answer, EvalFile):
            keys = [(score.benchmark, score.metric, score.filter, score.place) for score in answer.scores]
            assert len(keys) == len(set(keys)), name


def test_numbers_come_through_to_the_digit() -> None:
    whole = json.loads((PUBLISHED / "dclm/evals/evaluation_Qwen_Qwen2-7B.json").read_text())
    figures = {score.benchmark: score.value for score in published("dclm/evals/evaluation_Qwen_Qwen2-7B.json").scores}
    assert {task: figures[task] for task in whole["eval_metrics"]["icl"]} == whole["eval_metrics"]["icl"]
    state = "trainer_state/CoralReefFish__whisper-tiny-nbaiLab.json"
    logged = [entry for entry in json.loads((PUBLISHED / state).read_text())["log_history"] if "eval_wer" in entry]
    expected = {(entry["step"], metric): entry[f"eval_{metric}"] for entry in logged for metric in ("wer", "loss")}
    assert {(score.place.step, score.metric): score.value for score in published(state).scores} == expected


def test_an_inspect_log_says_the_same_as_json_and_as_an_archive() -> None:
    one, other = (published(f"evals/inspect_ai/log_formats.{suffix}") for suffix in ("json", "eval"))
    assert [(s.benchmark, s.metric, s.value, s.stderr) for s in one.scores] == [
        (s.benchmark, s.metric, s.value, s.stderr) for s in other.scores
    ]


def test_oddities_of_single_files_are_met() -> None:
    markdown = {(s.benchmark, s.metric): s for s in published("evals/lm_eval_v04/md_awq_mmlu.md").scores}
    assert markdown["mmlu", "acc"].stderr == 0.1287999886693372  # np.float64(...), and far too large: kept as published
    assert markdown["mmlu_formal_logic", "acc"].value == 0.3333
    indented = published("evals/lm_eval_v04/md_Qwen1.5-MoE-A2.7B.md")
    assert {"mmlu_humanities", "mmlu_formal_logic"} <= {score.benchmark for score in indented.scores}
    summary = {s.benchmark: s for s in published("evals/opencompass/summary_internlm2-1.8b.csv").scores}
    assert (summary["ceval-accountant"].version, summary["ceval-stem"].version) == ("002837", None)
    groups = published("trainer_state/aigoncharov__trainer_state_viz.json")
    assert {score.benchmark for score in groups.scores} == {f"eval_g{number}" for number in range(6)}
    assert len(groups.scores) == 6 * 31 * 2
    rouge = published("trainer_state/Jaong__Checkpoint-of-CPT.json")
    assert {"rouge-1", "rouge-2", "rouge-l"} <= {score.metric for score in rouge.scores}


def test_two_prompt_templates_of_one_checkpoint_are_not_comparable() -> None:
    def score(template: str) -> Any:
        file = published(f"evals/lm_eval_v03/stablelm-jp-3b-ja50_rp50-700b_template-{template}.json")
        return next(s for s in file.scores if (s.benchmark, s.metric) == ("jcommonsenseqa", "acc"))

    one, other = score("0.1"), score("0.2")
    assert (round(one.value, 3), round(other.value, 3)) == (0.428, 0.197)
    assert one.comparability["prompt_template"] != other.comparability["prompt_template"]


def test_tables_that_were_made_of_published_files_are_read_too() -> None:
    paths = sorted((PUBLISHED / "pythia").glob("pythia-v*/*-1.4b-deduped__*.scores.csv"))
    assert len(paths) == 6
    for path in paths:
        file = read_eval_path(path)
        assert len(file.scores) == len(path.read_text().splitlines()) - 1
        assert len({score.place.step for score in file.scores}) > 1
