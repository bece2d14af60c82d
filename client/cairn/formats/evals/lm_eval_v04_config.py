"""What a harness 0.4 result says about the model and its step, and what two results must share to be compared."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from cairn.formats.evals.setup import SCALAR, Setup, set_step, split_model_args
from cairn.formats.evals.values import limit_of, text_of, whole

CONFIG_FACTS = ("model", "model_num_parameters", "model_dtype", "model_sha", "batch_size", "limit", "num_fewshot")
DOCUMENT_FACTS = ("git_hash", "model_name", "model_source", "lm_eval_version", "transformers_version", "max_length")
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
# The parts of a task's config that make its prompt and its answer.
PROMPT_PARTS = (
    *("doc_to_text", "doc_to_target", "doc_to_choice", "description", "target_delimiter", "fewshot_delimiter"),
    *("fewshot_config", "fewshot_split", "process_docs", "output_type", "generation_kwargs", "dataset_path"),
    *("dataset_name", "test_split", "validation_split", "repeats"),
)
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def read_setup(document: Mapping[str, Any], name: str) -> Setup:
    setup = Setup()
    config = document.get("config")
    if not isinstance(config, dict):
        config = {}
        setup.note("the file has no config: the model is unknown")
    setup.facts = {key: config[key] for key in CONFIG_FACTS if isinstance(config.get(key), SCALAR)}
    setup.facts |= {key: document[key] for key in DOCUMENT_FACTS if isinstance(document.get(key), SCALAR)}
    setup.facts |= {key: config[key] for key in SEEDS if isinstance(config.get(key), SCALAR)}
    _read_model(config, document, setup)
    set_step(setup, name)
    setup.n_shot = whole(config.get("num_fewshot"))
    setup.comparability = run_keys(document, config)
    if "limit" in setup.comparability:
        setup.note(f"only the first {setup.comparability['limit']} items of each task were evaluated (config.limit)")
    return setup


def _read_model(config: Mapping[str, Any], document: Mapping[str, Any], setup: Setup) -> None:
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = split_model_args(arguments)
    arguments = arguments if isinstance(arguments, dict) else {}
    setup.facts |= {f"model_args.{key}": value for key, value in arguments.items() if isinstance(value, SCALAR)}
    path = text_of(arguments.get("pretrained")) or text_of(arguments.get("model")) or text_of(arguments.get("path"))
    setup.model_path = path or text_of(document.get("model_name"))
    setup.model_revision = text_of(arguments.get("revision")) or text_of(config.get("model_revision"))
    if path and "peft" in arguments:
        setup.note(f"an adapter was evaluated over the model: {str(arguments['peft'])[:200]}")


def run_keys(document: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What was said once for the whole run and changes what was measured."""
    keys: dict[str, Any] = {}
    for key in ("chat_template_sha", "system_instruction_sha"):
        if text := text_of(document.get(key)):
            keys[key] = text
    if document.get("fewshot_as_multiturn") is True:
        keys["fewshot_as_multiturn"] = "true"
    if (limit := limit_of(config.get("limit"))) is not None:
        keys["limit"] = limit
    if config.get("gen_kwargs"):
        keys["gen_kwargs"] = digest(config["gen_kwargs"])
    return keys


def task_keys(task: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """What was said for one task: the hash of its documents and prompts, and a digest of its prompt's config."""
    keys = {}
    hashes, configs = document.get("task_hashes"), document.get("configs")
    if isinstance(hashes, dict) and (text := text_of(hashes.get(task))):
        keys["task_hash"] = text
    config = configs.get(task) if isinstance(configs, dict) else None
    if isinstance(config, dict) and (parts := {key: config[key] for key in PROMPT_PARTS if key in config}):
        keys["prompt_digest"] = digest(parts)
    return keys


def digest(value: Any) -> str:
    """16 hexadecimal digits of a value's content; where functions were printed, without their addresses."""
    canonical = ADDRESS.sub("", json.dumps(value, sort_keys=True))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
