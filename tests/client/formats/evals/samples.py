"""A small file of every format, in the shape that its program writes, with figures of our own."""

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

MODEL_ARGS = "pretrained=org/model-1b,revision=step3000,dtype=bfloat16"


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def lm_eval_v04(**more: Any) -> dict[str, Any]:
    """One task with two filters, a group of two subtasks, an error that is `N/A`."""
    strict, flexible = "exact_match,strict-match", "exact_match,flexible-extract"
    return {
        "results": {
            "gsm8k": {
                "alias": "gsm8k",
                strict: 0.25,
                "exact_match_stderr,strict-match": 0.05,
                flexible: 0.5,
                "exact_match_stderr,flexible-extract": "N/A",
            },
            "mmlu": {" ": " ", "alias": "mmlu", "acc,none": 0.4, "acc_stderr,none": 0.01},
            "mmlu_anatomy": {"alias": "  - anatomy", "acc,none": 0.5, "acc_stderr,none": 0.04},
            "mmlu_virology": {"alias": "  - virology", "acc,none": 0.3, "acc_stderr,none": 0.03},
            "wikitext": {"word_perplexity,none": 12.5, "word_perplexity_stderr,none": "N/A"},
        },
        "groups": {"mmlu": {" ": " ", "alias": "mmlu", "acc,none": 0.4, "acc_stderr,none": 0.01}},
        "group_subtasks": {"mmlu": ["mmlu_anatomy", "mmlu_virology"], "gsm8k": [], "wikitext": []},
        "configs": {
            "gsm8k": {
                "task": "gsm8k",
                "doc_to_text": "Question: {{question}}",
                "process_docs": "<function process_docs at 0x7f0a>",
                "num_fewshot": 5,
            }
        },
        "versions": {"gsm8k": 3.0, "mmlu": 2, "mmlu_anatomy": 1.0, "mmlu_virology": 1.0, "wikitext": 2.0},
        "n-shot": {"gsm8k": 5, "mmlu_anatomy": 0, "mmlu_virology": 0, "wikitext": 0},
        "n-samples": {
            "gsm8k": {"original": 1319, "effective": 100},
            "mmlu_anatomy": {"original": 135, "effective": 100},
            "mmlu_virology": {"original": 166, "effective": 80},
        },
        "config": {"model": "hf", "model_args": MODEL_ARGS, "limit": 100.0, "gen_kwargs": None},
        "git_hash": "1f84a09f",
        "date": 1768964383.5,
        "lm_eval_version": "0.4.9",
        "task_hashes": {"gsm8k": "aa11"},
        "chat_template_sha": "bb22",
        "system_instruction_sha": None,
        "fewshot_as_multiturn": True,
        **more,
    }


MARKDOWN = """hf (pretrained=org/model,revision=step500), gen_kwargs: (None), limit: 40.0, num_fewshot: 5, batch_size: 4
|      Tasks      |Version|     Filter     |n-shot|  Metric   |   | Value |   |Stderr|
|-----------------|------:|----------------|-----:|-----------|---|------:|---|------|
|arc_challenge    |      1|none            |     0|acc        |↑  | 0.4220|±  |0.0156|
|                 |       |none            |     0|acc_norm   |↑  | 0.4390|±  |   N/A|
|gsm8k            |      3|flexible-extract|     5|exact_match|↑  | 0.6100|±  |0.0134|
|mmlu             |      2|none            |      |acc        |↑  | 0.6153|±  |0.0040|
| - humanities    |      2|none            |      |acc        |↑  | 0.5641|±  |0.0071|
|  - formal_logic |      1|none            |     0|acc        |↑  |np.float64(0.3175)|±  |np.float64(0.0416)|
|wikitext         |      2|none            |     0|word_perplexity|↓  |    inf|±  |N/A|

|Groups|Version|Filter|n-shot|Metric|   |Value |   |Stderr|
|------|------:|------|-----:|------|---|-----:|---|-----:|
|mmlu  |      2|none  |      |acc   |↑  |0.6153|±  |0.0040|
"""

LIGHTEVAL = {
    "config_general": {
        "lighteval_sha": "494ee122",
        "model_name": "org/model-8b",
        "max_samples": None,
        "start_time": 1781075.6,
        "model_config": {"revision": "step-700"},
    },
    "results": {
        "leaderboard|arc:challenge|25": {"acc_norm": 0.54, "acc_norm_stderr": 0.0145},
        "leaderboard|mmlu:anatomy|5": {"acc": 0.61, "acc_stderr": 0.04},
        "leaderboard|mmlu:_average|5": {"acc": 0.58, "acc_stderr": 0.02},
        "extended|ifeval|0|0": {"prompt_level_strict_acc": float("nan")},
        "all": {"acc": 0.5},
    },
    "versions": {"leaderboard|arc:challenge|25": 0},
    "summary_tasks": {
        "leaderboard|arc:challenge|25": {"hashes": {"hash_examples": "17b0", "hash_full_prompts": "9f3c"}}
    },
}

OPENCOMPASS = """dataset,version,metric,mode,model-step1000-hf,model-step2000-hf
ceval-accountant,002837,accuracy,gen,36.73,37.5
ceval,-,naive_average,gen,47.03,-
mt_bench,b12,score,gen,6.5,6.75
"""


def inspect_log(**more: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "inspect_evals/arc_easy",
            "task_version": 1,
            "created": "2026-10-21T01:12:03+02:00",
            "model": "hf/org/model",
            "model_args": {"model_path": "/ckpt/run-a/checkpoint-800"},
            "task_args": {"fewshot": 3},
            "config": {"limit": 50, "epochs": 2},
            "packages": {"inspect_ai": "0.3.138"},
        },
        "plan": {"steps": [{"solver": "multiple_choice", "params": {"template": "Answer: {question}"}}]},
        "results": {
            "completed_samples": 50,
            "scores": [
                {
                    "name": "choice",
                    "reducer": "mean",
                    "scored_samples": 48,
                    "metrics": {"accuracy": {"value": 0.75}, "stderr": {"value": 0.06}, "f1": {"value": None}},
                }
            ],
        },
        "stats": {"completed_at": "2026-10-21T01:14:16+02:00"},
        **more,
    }


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()


def inspect_archive(log: dict[str, Any] | None = None) -> bytes:
    header = encoded(inspect_log() if log is None else log)
    return archive({"_journal/start.json": b"{}", "samples/1_epoch_1.json": b"{}", "header.json": header})


def trainer_state(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "best_metric": None,
        "epoch": 2.0,
        "global_step": 2000,
        "is_world_process_zero": True,
        "max_steps": 4000,
        "num_train_epochs": 4,
        "total_flos": 1e18,
        "log_history": [{"step": 500, "loss": 2.5, "learning_rate": 1e-4}, *entries],
        **more,
    }


SPEEDS = {"eval_runtime": 12.5, "eval_samples_per_second": 8.0, "eval_steps_per_second": 1.0}
TRAINER_STATE = trainer_state(
    {"step": 1000, "eval_loss": 0.75, "eval_wer": 61.5, "eval_rouge-1": 40.0, "eval_rewards/chosen": -0.5, **SPEEDS},
    {"step": 2000, "eval_loss": float("nan"), "eval_wer": 48.25, **SPEEDS},
)

EVERY_EVAL_EVER = {
    "schema_version": "0.3.0",
    "evaluation_id": "source/org_model/1",
    "evaluation_timestamp": "1750000000",
    "eval_library": {"name": "unknown", "version": "unknown"},
    "model_info": {"name": "model", "id": "org/model-step900"},
    "evaluation_results": [
        {
            "evaluation_name": "source.bench",
            "source_data": {"dataset_name": "bench"},
            "metric_config": {"metric_id": "accuracy", "min_score": 0.0, "max_score": 100.0},
            "score_details": {
                "score": 75.5,
                "uncertainty": {"standard_error": {"value": 1.5}, "num_samples": 400},
            },
        }
    ],
}

DCLM = {
    "name": "../eval/heavy",
    "uuid": "5c62",
    "model": "open_lm_1b",
    "creation_date": "2026_06_12-07_07_17",
    "eval_metrics": {
        "icl": {"mmlu_zeroshot": 0.5, "copa": 0.75},
        "perplexity": 2.5,
        "downstream_perpexity": {"mmlu": 1.5},
    },
    "Core": -0.125,
    "Extended": 0.25,
    "eval_version": "v2",
}


def sample(doc: int, value: Any, filter: str = "none", **more: Any) -> dict[str, Any]:
    return {
        "doc_id": doc,
        "doc_hash": f"d{doc}",
        "prompt_hash": f"p{doc}",
        "filter": filter,
        "filtered_resps": ["x"],
        "metrics": ["acc"],
        "acc": value,
        **more,
    }


def lines(rows: Sequence[Any]) -> bytes:
    return b"\n".join(map(encoded, rows)) + b"\n"


SAMPLES = lines([sample(doc, float(doc < 6)) for doc in range(8)])
PLAIN = b"""checkpoint,benchmark,metric,value,stderr,n_samples,n_shot,version,comparability.template,remark
1000,gsm8k,exact_match,0.25,0.01,1319,5,3,a,first
1000,piqa,,nan,,,,,,
run-b@2.4000,gsm8k,exact_match,0.5,,,,,,
"""


def stat(name: str, mean: float | None, split: str = "valid", count: int = 1, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": {"name": name, "split": split, **more}, "count": count, "sum": mean or 0}
    return found if mean is None else {**found, "mean": mean, "stddev": 0.0}


HELM_FOLDER = "mmlu-subject=anatomy,method=multiple_choice_joint,model=org_model"
HELM_SPEC = {
    "name": "mmlu:subject=anatomy,method=multiple_choice_joint,model=org/model",
    "scenario_spec": {"class_name": "MMLUScenario", "args": {"subject": "anatomy"}},
    "adapter_spec": {
        "method": "multiple_choice_joint",
        "instructions": "Answer.",
        "max_train_instances": 5,
        "max_eval_instances": 10,
        "model": "org/model-step4000",
    },
    "groups": ["mmlu"],
}
ROBUST = {"perturbation": {"name": "robustness", "fairness": False}}
HELM_STATS = [
    stat("num_instances", 10.0),
    stat("num_instances", 9.0, **ROBUST),
    stat("exact_match", 0.3),
    stat("exact_match", 0.2, **ROBUST),
    stat("quasi_exact_match", None, count=0),
    stat("inference_runtime", 14.8),
    stat("perplexity", 1.0),
]
HELM = {
    f"{HELM_FOLDER}/run_spec.json": encoded(HELM_SPEC),
    f"{HELM_FOLDER}/scenario.json": b'{"name": "mmlu", "description": "", "tags": []}',
    f"{HELM_FOLDER}/stats.json": encoded(HELM_STATS),
}
