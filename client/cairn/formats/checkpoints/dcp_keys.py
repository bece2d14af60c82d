"""Which piece a key of a distributed checkpoint belongs to. Only its first three words count, so that a layer
called `scheduler` deep inside a model stays a weight."""

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

_OPTIMIZER = re.compile(
    r"(chained_\d+|optim|opt|optimizers?|optimizer_\d+|optimizer_states?|optim_state|optim_state_dict)"
)
_SCHEDULER = re.compile(r"(lr_?schedulers?|schedulers?|opt_param_scheduler|lr_scheduler_\d+|grad_scaler|scaler)")
_DATA = re.compile(
    r"((train_?)?(data_?(loaders?|iterators?|iters?|modules?|samplers?)|dataset_state|sampler|data_state)(_\d+)?)"
)
_RANDOM = re.compile(r"((\w+_)?rng(_\w+)?|random_states?|random_generators?)")
_AVERAGE = re.compile(r"(ema|ema_model|model_ema|ema_state|ema_params|average_model)")
_TRAINER = re.compile(
    r"(train_state|trainer|trainer_state|progress|step|steps|global_step|iteration|epoch|current_epoch|args|config|"
    r"tokens_seen|ntokens_seen|checkpoint_version|loops|callbacks|rerun_state_machine_state|job_config|metadata|"
    r"num_floating_point_operations_so_far|consumed_(train_|valid_)?samples|timestamp|content_metadata|hparams)"
)
_COUNTER = re.compile(r"(consumed_(train_)?samples|samples_seen|num_samples_seen|consumed_samples)")


class Kind(str, Enum):
    WEIGHTS = "weights"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    DATA = "data_position"
    COUNTER = "counter"
    RANDOM = "random_state"
    AVERAGE = "averaged weights"
    TRAINER = "trainer"


# The order decides where two would do: `optimizer.param_groups` before `trainer`.
_KINDS = (
    (_OPTIMIZER, Kind.OPTIMIZER),
    (_SCHEDULER, Kind.SCHEDULER),
    (_DATA, Kind.DATA),
    (_RANDOM, Kind.RANDOM),
    (_AVERAGE, Kind.AVERAGE),
    (_COUNTER, Kind.COUNTER),
    (_TRAINER, Kind.TRAINER),
)


@lru_cache(maxsize=65_536)  # every rank names the same tensors again
def kind_of(name: str) -> Kind:
    """Of a fully qualified name, `optimizer.state.layers.0.weight.exp_avg` or `rng_state/shard_0.0_2.2`."""
    words = name.split("/", 1)[0].split(".", 3)[:3]
    for word in words:
        for pattern, kind in _KINDS:
            if pattern.fullmatch(word) and (kind is not Kind.TRAINER or word == words[0]):
                return _counted(name) if kind is Kind.TRAINER else kind
    return Kind.WEIGHTS


def _counted(name: str) -> Kind:
    return Kind.COUNTER if _COUNTER.fullmatch(name.rpartition(".")[2]) else Kind.TRAINER


def by_kind(names: Iterable[str]) -> dict[Kind, list[str]]:
    found: dict[Kind, list[str]] = {}
    for name in names:
        found.setdefault(kind_of(name), []).append(name)
    return found
