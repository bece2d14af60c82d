"""DeepSpeed's file names: which ranks wrote, which should have.

mp_rank_00_model_states.pt                              model, one a model-parallel rank (ZeRO 0 to 2)
zero_pp_rank_3_mp_rank_00_model_states.pt               the same under ZeRO 3, one a rank
[bf16_|fp16_]zero_pp_rank_3_mp_rank_00_optim_states.pt  optimizer, one a rank (`pp` here means data-parallel)
layer_05-model_01-model_states.pt                       a pipeline's layer, one a tensor-parallel rank
layer_2_expert_7_mp_rank_00_model_states.pt, expp_rank_1_mp_rank_00_optim_states.pt      experts
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_MODEL = re.compile(r"(?:zero_pp_rank_(?P<dp>\d+)_)?mp_rank_(?P<mp>\d+)_model_states\.pt")
# The oldest releases left out the last underscore.
_OPTIM = re.compile(r"(?P<prefix>bf16_|fp16_)?zero_pp_rank_(?P<dp>\d+)_mp_rank_(?P<mp>\d+)_?optim_states\.pt")
_LAYER = re.compile(r"layer_(?P<layer>\d+)(?:-model_(?P<tp>\d+))?-model_states\.pt")
_EXPERT = re.compile(r"(?:layer_(?P<layer>\d+)_)?expert_(?P<expert>\d+)_mp_rank_(?P<mp>\d+)_model_states\.pt")
_EXPERT_OPTIM = re.compile(r"expp_rank_(?P<ep>\d+)_mp_rank_(?P<mp>\d+)_optim_states\.pt")
_UNIVERSAL = re.compile(r"zero/(?P<name>.+)/(?P<state>[^/]+)\.pt")
_MOST_RANKS = 1_000_000


@dataclass
class Names:
    """The files of one folder, by what their names say."""

    model: dict[tuple[int, int], str] = field(default_factory=dict)
    optim: dict[tuple[int, int], str] = field(default_factory=dict)
    layers: dict[tuple[int, int], str] = field(default_factory=dict)
    experts: dict[tuple[int, int, int], str] = field(default_factory=dict)
    expert_optim: dict[tuple[int, int], str] = field(default_factory=dict)
    universal: dict[str, dict[str, str]] = field(default_factory=dict)
    prefix: str = ""
    partitioned: bool = False
    layers_have_tp: bool = False
    old_ending: bool = False

    def __bool__(self) -> bool:
        return bool(self.model or self.optim or self.universal)

    def files(self) -> list[str]:
        groups = (self.model, self.optim, self.layers, self.experts, self.expert_optim)
        plain = [path for group in groups for path in group.values()]
        return plain + [path for states in self.universal.values() for path in states.values()]

    @property
    def dp(self) -> int | None:
        """By the highest rank of which a file is there."""
        ranks = [dp for dp, _ in (*self.optim, *(self.model if self.partitioned else ()))]
        return max(ranks) + 1 if ranks else None

    @property
    def mp(self) -> int | None:
        ranks = [mp for _, mp in (*self.model, *self.optim)]
        return max(ranks) + 1 if ranks else None

    @property
    def tp(self) -> int | None:
        """Of a pipeline: every layer is written by each tensor-parallel rank."""
        return max(tp for _, tp in self.layers) + 1 if self.layers else None

    @property
    def ep(self) -> int | None:
        return max(ep for ep, _ in self.expert_optim) + 1 if self.expert_optim else None


def names_of(paths: Iterable[str]) -> Names:
    """Of the files in a folder; those of other kinds are left out."""
    names = Names()
    for path in paths:
        if path.startswith("zero/"):
            if found := _UNIVERSAL.fullmatch(path):
                names.universal.setdefault(found["name"], {})[found["state"]] = path
        elif "/" not in path and path.endswith("_states.pt"):
            _add(names, path)
    return names


def _add(names: Names, path: str) -> None:
    if found := _OPTIM.fullmatch(path):
        names.optim[int(found["dp"]), int(found["mp"])] = path
        names.prefix = found["prefix"] or names.prefix
        names.old_ending = names.old_ending or "_optim_states" not in path
    elif found := _MODEL.fullmatch(path):
        names.partitioned = names.partitioned or found["dp"] is not None
        names.model[int(found["dp"] or 0), int(found["mp"])] = path
    elif found := _LAYER.fullmatch(path):
        names.layers_have_tp = names.layers_have_tp or found["tp"] is not None
        names.layers[int(found["layer"]), int(found["tp"] or 0)] = path
    elif found := _EXPERT.fullmatch(path):
        names.experts[int(found["layer"] or -1), int(found["expert"]), int(found["mp"])] = path
    elif found := _EXPERT_OPTIM.fullmatch(path):
        names.expert_optim[int(found["ep"]), int(found["mp"])] = path


def missing_of(names: Names, dp: int | None, mp: int | None) -> list[str]:
    """Files that each rank should have written and that are not there, given the degrees as far as they are known."""
    dp, mp = max(dp or 1, names.dp or 1), max(mp or 1, names.mp or 1)
    if dp * mp > _MOST_RANKS:
        return []
    missing = []
    if names.model or names.optim:
        ranks = [(rank, model) for model in range(mp) for rank in range(dp)]
        wanted = ranks if names.partitioned else [(0, model) for model in range(mp)]
        missing += [_model_name(names, *each) for each in wanted if each not in names.model]
        missing += [_optim_name(names, *each) for each in ranks if names.optim and each not in names.optim]
    return missing + _missing_layers(names) + _missing_experts(names, mp)


def _model_name(names: Names, dp: int, mp: int) -> str:
    return (
        f"zero_pp_rank_{dp}_mp_rank_{mp:02d}_model_states.pt"
        if names.partitioned
        else f"mp_rank_{mp:02d}_model_states.pt"
    )


def _optim_name(names: Names, dp: int, mp: int) -> str:
    return f"{names.prefix}zero_pp_rank_{dp}_mp_rank_{mp:02d}{'' if names.old_ending else '_'}optim_states.pt"


def _missing_layers(names: Names) -> list[str]:
    """Layers between have no number (activations), so only tensor-parallel ranks can be seen to lack."""
    layers = dict.fromkeys(layer for layer, _ in names.layers)
    wanted = [(layer, tp) for layer in layers for tp in range(names.tp or 0)]
    ending = "-model_{1:02d}" if names.layers_have_tp else ""
    return [f"layer_{{0:02d}}{ending}-model_states.pt".format(*each) for each in wanted if each not in names.layers]


def _missing_experts(names: Names, mp: int) -> list[str]:
    missing = []
    for layer in dict.fromkeys(layer for layer, _, _ in names.experts):
        count = max(expert for each, expert, _ in names.experts if each == layer) + 1
        ranks = range(max(model for each, _, model in names.experts if each == layer) + 1)
        start = f"layer_{layer}_" if layer >= 0 else ""
        missing += [
            f"{start}expert_{expert}_mp_rank_{model:02d}_model_states.pt"
            for expert in range(min(count, 4096))
            for model in ranks
            if (layer, expert, model) not in names.experts
        ]
    return missing
