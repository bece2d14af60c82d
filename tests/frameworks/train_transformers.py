"""A training with the real Trainer, in a process that the test may lose: arguments are a JSON object.

python train_transformers.py '{"folder": ..., "steps": 6, "die_at": 5, "resume": true, "evaluate": true}'
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}

from cairn.callbacks.transformers import CairnCallback
from transformers import Trainer, TrainerCallback, TrainingArguments

from tests.frameworks.dying import die
from tests.frameworks.make_fixtures import Tokens, tiny_llama


class EndAt(TrainerCallback):
    def __init__(self, step: int, end: Callable[[], None]) -> None:
        self.step, self.end = step, end

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if state.global_step == self.step:
            self.end()


def fail() -> None:
    raise RuntimeError("what a training fails with")


def main(asked: dict[str, Any]) -> None:
    settings = TrainingArguments(
        asked["folder"],
        max_steps=asked["steps"],
        per_device_train_batch_size=2,
        save_steps=asked.get("save_steps", 2),
        eval_strategy="steps",
        eval_steps=2,
        logging_steps=1,
        save_total_limit=asked.get("limit"),
        load_best_model_at_end=asked.get("best", False),
        include_num_input_tokens_seen="all",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    recorder = CairnCallback("llm", "tiny", data={"web": 0.6, "code": 0.4})
    ends = [EndAt(asked[name], end) for name, end in (("die_at", die), ("fail_at", fail)) if name in asked]
    callbacks = [recorder, *ends]
    trainer = Trainer(
        model=tiny_llama(), args=settings, train_dataset=Tokens(), eval_dataset=Tokens(), callbacks=callbacks
    )
    trainer.train(resume_from_checkpoint=asked.get("resume") or None)
    if asked.get("evaluate"):
        trainer.evaluate(metric_key_prefix="eval_final")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
