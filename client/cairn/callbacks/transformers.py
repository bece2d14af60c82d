"""Hugging Face Transformers: `Trainer(..., callbacks=[CairnCallback("llm", "7b-sft")])`.

A checkpoint is recorded once its folder is whole, with the evaluation of its step; losses and learning rates become
curves. Only the world's process zero records. What the Trainer removes by its own limit stays in the registry, as what
was saved; `cairn watch` and `cairn scan` tell what is still there.
"""

import atexit
import os
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

import cairn
from cairn.callbacks.quiet import numbers_of, quiet
from cairn.formats.checkpoints.steps import step_from_name

# How long an evaluation took is no result of it.
_SPEEDS = ("_runtime", "_samples_per_second", "_steps_per_second", "_tokens_per_second", "_compilation_time")
_KNOWN = {"loss": "loss", "learning_rate": "lr"}


class CairnCallback(TrainerCallback):  # type: ignore[misc]
    """Records what a Trainer saves and measures.

    `project` and `run` are names; by default those of CAIRN_RUN, or the run's name of the TrainingArguments. Further
    options are those of `cairn.start`, such as `data`, `tags`, `owner`, `restart`.
    """

    def __init__(self, project: str | None = None, run: str | None = None, **options: Any) -> None:
        self._project, self._run, self._options = project, run, options
        self._recorder: Any = None
        self._scores: dict[int, list[dict[str, Any]]] = {}
        self._last_loss: dict[str, Any] = {}
        self._saved: set[int] = set()
        self._began, self._ended = 0, False

    @quiet
    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An execution begins; one that was resumed has its step in the state already."""
        self._finish("finished" if self._ended else "stopped")  # of a Trainer that trains once more
        self._scores, self._saved, self._last_loss = {}, set(), {}
        self._began, self._ended = int(state.global_step), False
        options = {"config": _config(args, more.get("model")), **self._options}
        if state.global_step and "resumed_from" not in options:
            options["resumed_from"] = {"step": int(state.global_step)}
        if args.push_to_hub and args.hub_model_id:
            options["tags"] = {"hub_model_id": str(args.hub_model_id), **(options.get("tags") or {})}
        run = self._run or (None if os.environ.get("CAIRN_RUN") else _run_name(args))
        rank = 0 if state.is_world_process_zero else 1
        self._recorder = cairn.start(self._project, run, **{"rank": rank, **options})
        # After training one may still evaluate: it ends with the process.
        atexit.register(self._at_exit)

    @quiet
    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Whatever was to be saved of the step before has been by now."""
        self._keep_as_points()

    @quiet
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        """Numbers of a step; of an evaluation they come by `on_evaluate`."""
        if self._recorder is None:
            return
        found = {
            _KNOWN.get(name, name): value
            for name, value in numbers_of(logs).items()
            if not name.startswith(("eval_", "train_", "predict_")) and name != "epoch"
        }
        if "loss" in found:
            self._last_loss = {"step": state.global_step, **found}
        if found:
            self._recorder.log(state.global_step, found)

    @quiet
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any) -> None:
        """Scores of the model as it stands; after training that may be the best one, which was loaded again."""
        if self._recorder is None:
            return
        step = self._evaluated_step(args, state)
        scores = [*_scores(metrics)]
        if step in self._saved or 0 < step <= self._began:  # an earlier execution may have saved what is evaluated
            self._recorder.scored(step, scores)
        else:
            self._scores.setdefault(step, []).extend(scores)

    @quiet
    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The folder of this step is whole."""
        if self._recorder is None or not state.is_world_process_zero:
            return
        step = int(state.global_step)
        path = _folder(args, state, step)
        if path is None or step in self._saved:
            return
        told = self._last_loss if self._last_loss.get("step") == step else {}
        said = {name: told[name] for name in ("loss", "lr") if name in told}
        tokens = int(getattr(state, "num_input_tokens_seen", 0) or 0)
        self._saved.add(step)
        self._recorder.saved(
            path,
            step=step,
            epoch=state.epoch,
            tokens=tokens or None,
            scores=self._scores.pop(step, None),
            kind="archive",
            **said,
        )

    @quiet
    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._ended = True
        self._keep_as_points()

    def _keep_as_points(self) -> None:
        """Evaluations without a checkpoint of their step, as points of a curve."""
        for step, scores in self._scores.items():
            if self._recorder is not None:
                self._recorder.log(step, {f"{each['benchmark']}/{each['metric']}": each["value"] for each in scores})
        self._scores = {}

    def _evaluated_step(self, args: Any, state: Any) -> int:
        """Once training has ended, `load_best_model_at_end` has put the best checkpoint's weights in place."""
        best = getattr(state, "best_model_checkpoint", None)
        if self._ended and args.load_best_model_at_end and best:
            return step_from_name(os.path.basename(str(best))) or int(state.global_step)
        return int(state.global_step)

    @quiet
    def _at_exit(self) -> None:
        """Of a training that did not come to its end the recorder itself tells how the process ended."""
        if self._ended:
            self._finish("finished")

    def _finish(self, state: str) -> None:
        recorder, self._recorder = self._recorder, None
        atexit.unregister(self._at_exit)
        if recorder is not None:
            recorder.finish(state)


def _config(args: Any, model: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"training": args.to_dict()}
    config = getattr(model, "config", None)
    if config is not None and callable(getattr(config, "to_dict", None)):
        said["model"] = config.to_dict()
    return said


def _run_name(args: Any) -> str:
    """What the run is called where nobody said: its name in the arguments, else the folder of its output."""
    name = getattr(args, "run_name", None)
    return str(name or os.path.basename(os.path.abspath(args.output_dir)))


def _folder(args: Any, state: Any, step: int) -> str | None:
    """Where this step was saved; a search over hyperparameters has a folder for each trial."""
    name = f"{PREFIX_CHECKPOINT_DIR}-{step}"
    trial = getattr(state, "trial_name", None)
    for base in (args.output_dir, *([os.path.join(args.output_dir, str(trial))] if trial else [])):
        path = os.path.join(base, name)
        if os.path.isdir(path):
            return os.path.abspath(path)
    return None


def _scores(metrics: Any) -> Any:
    """As the readers of `trainer_state.json` name them: the set that was evaluated, and the metric."""
    found = numbers_of(metrics)
    sets = sorted((name[: -len("_runtime")] for name in found if name.endswith("_runtime")), key=len, reverse=True)
    for name, value in found.items():
        if name == "epoch" or name.endswith(_SPEEDS):
            continue
        benchmark = next((each for each in sets if name.startswith(f"{each}_")), "eval")
        metric = name[len(benchmark) + 1 :] if name.startswith(f"{benchmark}_") else name
        yield {"benchmark": benchmark, "metric": metric, "value": value, "harness": "transformers-trainer"}
