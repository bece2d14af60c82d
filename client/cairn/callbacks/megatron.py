"""Megatron-LM: one call before `pretrain(...)`, and every `save_checkpoint` is recorded by rank 0.

    import cairn.callbacks.megatron
    cairn.callbacks.megatron.record("llm", "7b-v3")

Nothing of Megatron changes but the function's name in the two modules that have it; the save itself runs as before.
"""

import importlib
import os
from collections.abc import Callable
from typing import Any

import cairn
from cairn.callbacks.quiet import quiet

_HOMES = (
    "megatron.training.checkpointing",
    "megatron.training.training",
    "megatron.checkpointing",
    "megatron.training",
)
_SECRET_FREE = (int, float, str, bool, type(None))


def record(project: str | None = None, run: str | None = None, **options: Any) -> int:
    """Wraps `save_checkpoint` in each module of Megatron that has it, and answers their number.

    Options are those of `cairn.start`.
    """
    recorder = _Recorder(project, run, options)
    count = 0
    for module in [found for name in _HOMES if (found := _module(name)) is not None]:
        save = getattr(module, "save_checkpoint", None)
        if callable(save) and not getattr(save, "_recorded", False):
            module.save_checkpoint = recorder.around(save)
            count += 1
    return count


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class _Recorder:
    def __init__(self, project: str | None, run: str | None, options: dict[str, Any]) -> None:
        self._project, self._run, self._options = project, run, options
        self._started: Any = None

    def around(self, save: Callable[..., Any]) -> Callable[..., Any]:
        def save_checkpoint(iteration: int, *arguments: Any, **named: Any) -> Any:
            self._before(iteration)
            done = save(iteration, *arguments, **named)
            self._after(iteration)
            return done

        save_checkpoint._recorded = True  # type: ignore[attr-defined]
        return save_checkpoint

    @quiet
    def _before(self, iteration: int) -> None:
        if self._started is None:
            args = _arguments()
            options = {"config": {"training": _plain(args)}, **self._options}
            loaded = getattr(args, "iteration", None)
            if loaded and getattr(args, "load", None) and "resumed_from" not in options:
                options["resumed_from"] = {"step": int(loaded)}
            self._started = cairn.start(self._project, self._run, **options)
        self._started.saving(iteration)

    @quiet
    def _after(self, iteration: int) -> None:
        args = _arguments()
        folder = getattr(args, "save", None)
        samples = getattr(args, "consumed_train_samples", None)
        length = getattr(args, "seq_length", None)
        self._started.saved(
            os.path.join(folder, f"iter_{iteration:07d}") if folder else None,
            step=iteration,
            tokens=samples * length if samples and length else None,
            cursor=None if samples is None else {"consumed_samples": int(samples)},
        )


def _arguments() -> Any:
    """Megatron's own, whichever module its version keeps them in."""
    for name in ("megatron.training.global_vars", "megatron.global_vars", "megatron.training"):
        try:
            return importlib.import_module(name).get_args()
        except (ImportError, AttributeError):
            continue
    return None


def _plain(args: Any) -> dict[str, Any]:
    """Its arguments that are plain values; the rest (dtypes, functions) by name."""
    found = {}
    for name, value in vars(args).items() if args is not None else ():
        if isinstance(value, _SECRET_FREE) or (isinstance(value, (list, tuple)) and len(value) < 1_000):
            found[name] = value
        else:
            found[name] = str(value)[:200]
    return found
