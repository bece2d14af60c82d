"""Lightning: `Trainer(callbacks=[CairnCallback("llm", "7b"), ModelCheckpoint(...)])`.

A ModelCheckpoint tells the trainer's loggers once its file is written: there the callback listens, so that nothing is
recorded before it is on disk. Several of them may save; of one step the first file is recorded, and `last.ckpt` only
where the step has no file of its own.

Steps are `trainer.global_step`, finished optimizer steps, for curves and checkpoints alike: the loss at step 100 is
that of the 100th update, and the checkpoint at step 100 holds it. Lightning hands its loggers another number, that of
batches: one less with one optimizer, and far from it where a module steps several or not after every batch.
"""

import os
import weakref
from typing import Any

try:
    from lightning.pytorch import Callback
    from lightning.pytorch.loggers import Logger
except ImportError:  # the distribution under its older name
    from pytorch_lightning import Callback
    from pytorch_lightning.loggers import Logger

import cairn
from cairn.callbacks.quiet import numbers_of, quiet


class CairnCallback(Callback):  # type: ignore[misc]
    """Records what ModelCheckpoints save and what is logged.

    `project` and `run` are names, by default those of CAIRN_RUN. `loss` and `lr` name the metrics that are those of
    the training. Further options are those of `cairn.start`, such as `config`, `data`, `tags`, `restart`.
    """

    def __init__(
        self,
        project: str | None = None,
        run: str | None = None,
        *,
        loss: str = "train_loss",
        lr: str | None = None,
        **options: Any,
    ) -> None:
        self._project, self._run, self._options = project, run, options
        self._loss, self._lr = loss, lr
        self._recorder: Any = None
        self._saved: set[int] = set()

    @quiet
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The state of a checkpoint is restored by now, so that the step tells where training goes on."""
        options = {"config": _config(pl_module), **self._options}
        if trainer.ckpt_path and "resumed_from" not in options:
            options["resumed_from"] = _origin(str(trainer.ckpt_path), int(trainer.global_step))
        rank = 0 if trainer.is_global_zero else 1
        self._saved = set()
        self._recorder = cairn.start(self._project, self._run, **{"rank": rank, **options})
        trainer.loggers = [*trainer.loggers, _Listener(self, trainer)]

    @quiet
    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._end(trainer, "finished")

    @quiet
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end(trainer, "stopped" if isinstance(exception, KeyboardInterrupt) else "failed")

    @quiet
    def heard_save(self, trainer: Any, checkpoint_callback: Any) -> None:
        """A ModelCheckpoint has written its file."""
        path = getattr(checkpoint_callback, "_last_checkpoint_saved", "")
        step = int(trainer.global_step)
        if self._recorder is None or not path or step in self._saved:
            return
        # A name that the next save takes again says little about where this one will be.
        rolling = path == getattr(checkpoint_callback, "last_model_path", "")
        metrics = numbers_of(trainer.callback_metrics)
        self._saved.add(step)
        self._recorder.saved(
            path,
            step=step,
            epoch=int(trainer.current_epoch),
            loss=metrics.get(self._loss),
            lr=_learning_rate(trainer) if self._lr is None else metrics.get(self._lr),
            metrics=metrics,
            kind="light" if rolling else "archive",
        )

    @quiet
    def heard_metrics(self, trainer: Any, metrics: Any) -> None:
        if self._recorder is not None:
            found = {("loss" if name == self._loss else name): value for name, value in numbers_of(metrics).items()}
            found.pop("epoch", None)
            self._recorder.log(_step(trainer), found)

    def _end(self, trainer: Any, state: str) -> None:
        trainer.loggers = [each for each in trainer.loggers if not isinstance(each, _Listener)]
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.finish(state)


class _Listener(Logger):  # type: ignore[misc]
    """What the trainer tells its loggers. Its folder is the trainer's own, so that no path changes by its presence."""

    def __init__(self, callback: CairnCallback, trainer: Any) -> None:
        super().__init__()
        self._callback, self._trainer = callback, weakref.ref(trainer)

    @property
    def name(self) -> str:
        return "cairn"

    @property
    def version(self) -> str:
        return ""

    @property
    def save_dir(self) -> str | None:
        trainer = self._trainer()
        return None if trainer is None else str(trainer.default_root_dir)

    def log_hyperparams(self, params: Any, *arguments: Any, **named: Any) -> None:
        """Known from the module itself."""

    def log_metrics(self, metrics: Any, step: int | None = None) -> None:
        trainer = self._trainer()
        if trainer is not None and trainer.is_global_zero:
            self._callback.heard_metrics(trainer, metrics)

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        trainer = self._trainer()
        if trainer is not None:
            self._callback.heard_save(trainer, checkpoint_callback)


def _step(trainer: Any) -> int:
    """The optimizer step of what is logged now: the one to come between a batch's start and its update, where monitors
    tell the learning rate; else the last that was finished."""
    progress = getattr(getattr(trainer.fit_loop, "epoch_loop", None), "batch_progress", None)
    current = getattr(progress, "current", None)
    is_to_come = current is not None and current.ready > current.processed
    return int(trainer.global_step) + is_to_come


def _config(pl_module: Any) -> dict[str, Any]:
    said = getattr(pl_module, "hparams", None)
    return {"model": type(pl_module).__name__, **({"hparams": dict(said)} if said else {})}


def _origin(path: str, step: int) -> Any:
    """The path where its `cairn.json` says what it is, which may be of another run; else the step."""
    return path if os.path.isfile(os.path.join(path, "cairn.json")) else {"step": step}


def _learning_rate(trainer: Any) -> Any:
    """Of the first optimizer's first group."""
    for optimizer in trainer.optimizers:
        for group in optimizer.param_groups:
            return group.get("lr")
    return None
