"""DeepSpeed's layout: degrees from the states and from the names, each with its evidence; where they differ, both."""

from typing import Any

from cairn.formats.checkpoints.deepspeed_content import States
from cairn.formats.checkpoints.deepspeed_names import Names
from cairn.formats.checkpoints.shapes import Layout


def layout_of(names: Names, states: States) -> tuple[Layout, tuple[str, ...]]:
    """The layout, and what contradicts it. Of a Universal checkpoint the degrees are those that it came from."""
    evidence: dict[str, str] = {}
    told: list[str] = []
    dp = _degree("dp", states.count("dp_world_size"), f"{states.file} dp_world_size", names.dp, evidence, told)
    mp = _degree("mp", states.count("mp_world_size"), f"{states.file} mp_world_size", names.mp, evidence, told)
    tp, pp = _tensor_and_pipeline(names, states, mp, evidence)
    stage = _stage(names, states, evidence, told)
    said = states.said.layout()
    extra: dict[str, Any] = {"evidence": evidence}
    if mp is not None:
        extra["mp"] = mp
    if names.prefix:
        extra["optimizer_precision"] = names.prefix.rstrip("_")
    if dp is not None and mp is not None:
        evidence["world_size"] = f"{dp} data-parallel times {mp} model-parallel ranks"
    if names.ep is not None:
        evidence["ep"] = f"{len(names.expert_optim)} files expp_rank_*"
    layout = Layout(
        world_size=dp * mp if dp is not None and mp is not None else None,
        tp=tp,
        pp=pp,
        dp=dp,
        cp=said.cp,
        ep=names.ep or said.ep,
        sharding="universal" if names.universal else None if stage is None else f"zero-{stage}" if stage else "none",
        zero_stage=stage,
        extra=extra,
    )
    return layout, tuple(told)


def _degree(
    name: str, said: int | None, where: str, seen: int | None, evidence: dict[str, str], told: list[str]
) -> int | None:
    """What the states say before the highest rank among the names; the names of too many ranks are told."""
    if said:
        evidence[name] = where
        if seen is not None and seen > said:
            told.append(f"{where} says {said}, the files' names go up to rank {seen - 1}")
        return said
    if seen is not None:
        evidence[name] = f"the files' names go up to rank {seen - 1}"
    return seen


def _tensor_and_pipeline(
    names: Names, states: States, mp: int | None, evidence: dict[str, str]
) -> tuple[int | None, int | None]:
    recorded = states.value.get("checkpoint_parallel_dimensions")
    if isinstance(recorded, dict):
        tp, pp = recorded.get("tp_degree"), recorded.get("pp_degree")
        if type(tp) is int and type(pp) is int and tp > 0 and pp > 0:
            evidence["tp"] = evidence["pp"] = f"{states.file} checkpoint_parallel_dimensions"
            return tp, pp
    said = states.said.layout()
    if said.tp is not None and said.pp is not None:
        evidence["tp"] = evidence["pp"] = f"{states.file} args"
        return said.tp, said.pp
    if names.tp is not None and mp is not None and mp % names.tp == 0:
        evidence["tp"] = f"layer_*-model_* go up to rank {names.tp - 1}"
        evidence["pp"] = f"{mp} model-parallel ranks over TP {names.tp}"
        return names.tp, mp // names.tp
    if mp == 1:
        evidence["tp"] = evidence["pp"] = "one model-parallel rank"
        return 1, 1
    # Without a pipeline's layer files model-parallel could be tensor-parallel or the trainer's own: not told.
    return None, None


def _stage(names: Names, states: States, evidence: dict[str, str], told: list[str]) -> int | None:
    found = states.stage()
    by_name = 3 if names.partitioned else None
    if found is None:
        if by_name:
            evidence["zero_stage"] = "only ZeRO 3 writes model states for each rank"
        return by_name
    stage, where = found
    evidence["zero_stage"] = where
    if by_name and stage != by_name:
        told.append(f"{where} says ZeRO {stage}, and model states for each rank are written by ZeRO 3 alone")
    return stage
