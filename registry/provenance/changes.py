"""What differs between two sides: config, layout, environment, data; and each difference as a possible suspect."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from registry.models import Layout
from registry.provenance.code_changes import CodeChanges, code_suspects
from registry.provenance.config_diff import ConfigChange, Scalar, diff_configs
from registry.provenance.data_mix import MixChange, SourceChange, compare_mixes, shares
from registry.provenance.data_seen import DataSeen, data_seen, stages_of
from registry.provenance.model_size import model_changes, model_suspects, one_size, without_model
from registry.provenance.sides import Recorded, Side
from registry.provenance.suspects import Change, changes_of_config, changes_of_mix, in_tokens, relative_change
from registry.wording import counted

WHOLLY_REPLACED = 0.999  # total variation from which two mixes have nothing in common
ANOTHER_VERSION = "another data version"  # how the words begin where only the names of two mixes are known
NAMED_GROUPS = 6  # of a config, which are named as not recorded


@dataclass(frozen=True, slots=True)
class DataChanges:
    """The data versions by name (None: not recorded), and how what was seen of their sources differs.

    `by_lineage`: a side has seen an earlier data version as well, through what it resumed from, and the shares are of
    the tokens seen. `note`: what of the past could not be counted. `tokens`: seen in all by either, None where unknown.
    """

    baseline: str | None
    candidate: str | None
    mix: MixChange
    by_lineage: bool = False
    note: str = ""
    tokens: tuple[int | None, int | None] = (None, None)


def possible_suspects(
    old: Side,
    new: Side,
    lineage: Sequence[Change],
    config: Sequence[ConfigChange],
    data: DataChanges,
    code: CodeChanges,
    environment: Sequence[ConfigChange],
) -> list[Change]:
    """Everything that changed, in the words and under the keys by which suspects and earlier pairs know it."""
    found = [
        *lineage,
        *_data_suspects(data),
        *model_suspects(old, new),
        *changes_of_config(without_model(config)),
        *code_suspects(code),
        *changes_of_config(environment, "environment"),
        *_attempt_suspects(old, new),
        *_training_suspects(data),
    ]
    return one_size(found)


# ---- what changed


def config_changes(old: Side, new: Side, recorded: Recorded) -> list[ConfigChange]:
    """Both configs, the layouts below `layout.`, and what the runs say of the model below `run.`.

    Nothing of what one side did not record, since that is unknown.
    """
    changes = []
    if old.config_id is not None and new.config_id is not None and old.config_id != new.config_id:
        changes = diff_configs(recorded.configs[old.config_id], recorded.configs[new.config_id])
    if old.layout is not None and new.layout is not None and old.layout.id != new.layout.id:
        layouts = diff_configs(_layout_values(old.layout), _layout_values(new.layout))
        changes += [replace(each, kind="parallel") for each in layouts]
    return [*changes, *model_changes(old, new)]


def not_recorded(what: str, known: tuple[bool, bool], changes: Sequence[ConfigChange]) -> str:
    """What cannot be compared since one side did not record it; what was not recorded has not been removed."""
    missing = [name for name, there in zip(("baseline", "candidate"), known, strict=True) if not there]
    if missing:
        return f"no {what} is recorded for the {' and the '.join(missing)}"
    said = []
    for side in ("baseline", "candidate"):
        paths = [each.path for each in changes if each.not_recorded_on == side]
        groups = list(dict.fromkeys(path.split(".", 1)[0] for path in paths))
        if groups:
            more = f" and {len(groups) - NAMED_GROUPS} more" if len(groups) > NAMED_GROUPS else ""
            values = counted(len(paths), "value")
            said.append(f"the {side} recorded nothing of {', '.join(groups[:NAMED_GROUPS])}{more} ({values})")
    return "; ".join(said)


def _layout_values(layout: Layout) -> dict[str, Scalar]:
    """What is known of a layout: an unknown degree is left out, so it shows as added or removed, never as one."""
    names = ("world_size", "tp", "pp", "dp", "cp", "ep", "sharding")
    known = {f"layout.{name}": getattr(layout, name) for name in names}
    return {path: value for path, value in known.items() if value is not None}


def environment_changes(old: Side, new: Side, recorded: Recorded) -> list[ConfigChange]:
    if old.environment_id is None or new.environment_id is None or old.environment_id == new.environment_id:
        return []
    found = diff_configs(recorded.environments[old.environment_id], recorded.environments[new.environment_id])
    return [replace(each, kind="env") for each in found]


def data_changes(old: Side, new: Side, recorded: Recorded) -> DataChanges:
    sides = [data_seen(stages_of(recorded.past, each.identity.id), recorded.mixes) for each in (old, new)]
    names = [each.name for each in sides]
    mix = compare_mixes(sides[0].mix, sides[1].mix, sides[0].tokens, sides[1].tokens)
    notes = "; ".join(
        f"{name}: {side.note}" for name, side in zip(("baseline", "candidate"), sides, strict=True) if side.note
    )
    by_lineage = any(each.by_lineage for each in sides)
    tokens = (sides[0].tokens, sides[1].tokens)
    return DataChanges(names[0], names[1], _as_recorded(mix, sides, names), by_lineage, notes, tokens)


def _as_recorded(mix: MixChange, sides: Sequence[DataSeen], names: Sequence[str | None]) -> MixChange:
    """Without the distance where it would only say that two data sets have two names.

    A data version whose one source has its own name, and of which the other side has nothing, is a name for a mix that
    nobody recorded: what the two share inside is unknown.
    """
    if None in names:
        return mix
    moved = mix.total_variation is not None and mix.total_variation > WHOLLY_REPLACED
    unknown = [
        name
        for name, side in zip(("baseline", "candidate"), sides, strict=True)
        if shares(side.mix or {}) is None or (moved and list(side.mix or {}) == [side.name])
    ]
    if not unknown or names[0] == names[1]:
        return mix
    whose = "their mixes are" if len(unknown) == 2 else f"the mix of the {unknown[0]} is"
    bare = tuple(_without_absence(each) for each in mix.sources)
    return MixChange(None, None, bare, f"{ANOTHER_VERSION} ({names[0]} → {names[1]}); {whose} not recorded")


def _without_absence(source: SourceChange) -> SourceChange:
    """Of a mix that nobody recorded, a source with another name may well be part."""
    return replace(
        source,
        old_share=source.old_share or None,
        new_share=source.new_share or None,
        old_tokens=source.old_tokens or None,
        new_tokens=source.new_tokens or None,
        jensen_shannon_bits=None,
    )


# ---- what may be to blame


def _data_suspects(data: DataChanges) -> list[Change]:
    """By source; as a whole where the mix is unknown, or nothing of it stayed, so that no source stands out."""
    replaced = data.mix.total_variation is not None and data.mix.total_variation > WHOLLY_REPLACED
    if data.mix.total_variation is not None and not replaced:
        return changes_of_mix(data.mix)
    if data.baseline is None or data.candidate is None or data.baseline == data.candidate:
        return changes_of_mix(data.mix)
    if not replaced:
        return [Change("data_version", "data", 1.0, data.mix.why)]
    names = [_with_its_source(data, each) for each in ("old", "new")]
    words = f"data version went from {names[0]} to {names[1]}, which have no source in common"
    return [Change("data_version", "data", 1.0, words)]


def _with_its_source(data: DataChanges, side: str) -> str:
    """The data version of a side; its source beside it where that is only one."""
    name = data.baseline if side == "old" else data.candidate
    sources = [each.source for each in data.mix.sources if getattr(each, f"{side}_share")]
    return f"{name} (one source, {sources[0]})" if len(sources) == 1 and sources[0] != name else str(name)


def _attempt_suspects(old: Side, new: Side) -> list[Change]:
    """What the person who opened the candidate's attempt wrote that they changed."""
    same = (old.identity.run.id, old.identity.attempt) == (new.identity.run.id, new.identity.attempt)
    if same or not new.attempt_changes:
        return []
    words = f"attempt {new.identity.attempt} was opened with changes: {new.attempt_changes[:200]}"
    return [Change("attempt.changes", "other", 1.0, words)]


def _training_suspects(data: DataChanges) -> list[Change]:
    """That the candidate saw fewer tokens, over all that it came from: what it has not learned it has not lost."""
    before, after = data.tokens
    if before is None or after is None or after >= before:
        return []
    words = f"it was trained on {in_tokens(after)}, the baseline on {in_tokens(before).removesuffix(' tokens')}"
    return [Change("tokens_seen", "schedule", relative_change(before, after), words)]
