"""Where a checkpoint comes from, as a section of a model card in Markdown."""

import re
from collections.abc import Iterable, Sequence

from registry.ids import to_text
from registry.provenance.bundle import Provenance, Stage, StepRange

MOST_OF_A_COMMAND = 10_000  # characters; launch commands are long
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def to_markdown(found: Provenance) -> str:
    """A section '## Provenance'. Names come from other people: what would be markup in them is escaped."""
    here = found.detail.checkpoint
    lines = [
        "## Provenance",
        "",
        f"{_plain(str(here.run.name))}, attempt {here.attempt}, step {here.step:,} ({here.kind}), saved "
        f"{here.saved_at:%Y-%m-%d %H:%M} UTC; Cairn id `{to_text(here.id)}`, project {_plain(here.project)}.",
        "",
        f"**Tokens seen:** {_count(found.tokens_total)}.",
        "",
    ]
    lines += _tokens(found)
    lines += ["### Chain", "", "Newest first.", ""]
    lines += _table(
        ("stage", "began", "steps", "tokens", "data", "config", "commit", "tree"),
        [_row(stage) for stage in found.stages],
    )
    lines += _ranges("Repeated after a rollback", found.stages, [each.repeated for each in found.stages])
    lines += _ranges("Data skipped", found.stages, [each.skipped for each in found.stages])
    launched = dict.fromkeys(_command(stage) for stage in found.stages if stage.command)
    if launched:
        lines += ["", "**Launched with:**", "", *(f"- {_plain(each, MOST_OF_A_COMMAND)}" for each in launched)]
    if found.dirty:
        names = ", ".join(f"{_plain(each.run.name)} step {each.step:,}" for each in found.dirty)
        lines += ["", f"**Uncommitted code:** {names} ran with changes that no commit holds."]
    if found.unknown:
        lines += ["", "**Not known:**", "", *(f"- {_plain(each)}" for each in found.unknown)]
    return "\n".join([*lines, ""])


def _tokens(found: Provenance) -> list[str]:
    if not found.tokens_by_source:
        return []
    total = sum(found.tokens_by_source.values())
    rows = [
        (_plain(source), f"{tokens:,.0f}", f"{100 * tokens / total:.1f} %")
        for source, tokens in found.tokens_by_source.items()
    ]
    return ["### Tokens by source", "", *_table(("source", "tokens", "share"), rows), ""]


def _row(stage: Stage) -> tuple[str, ...]:
    name = stage.checkpoint
    code = stage.code
    tree = {True: "dirty", False: "clean", None: "not said"}[code.dirty] if code is not None else ""
    if code is not None and code.dirty and code.diff_digest:
        tree += f" ({_plain(code.diff_digest[:19])})"
    return (
        f"{_plain(name.run.name)} · {name.attempt} · {name.step:,}",
        (stage.came_from or "anew").replace("_", " "),
        f"{stage.first_step:,} – {name.step:,}",
        _count(stage.tokens),
        _plain(stage.data_version or "not recorded"),
        f"`{stage.config_digest}`" if stage.config_digest else "not recorded",
        f"`{code.commit[:12]}`" if code is not None and code.commit else "not recorded",
        tree or "not said",
    )


def _command(stage: Stage) -> str:
    return f"{stage.checkpoint.run.name}, attempt {stage.checkpoint.attempt}, was launched with: {stage.command}"


def _ranges(title: str, stages: Sequence[Stage], ranges: Iterable[Sequence[StepRange]]) -> list[str]:
    said = [
        f"{_plain(stage.checkpoint.run.name)}: steps {each.first:,} – {each.last:,} (attempt {each.attempt})"
        for stage, found in zip(stages, ranges, strict=True)
        for each in found
    ]
    return ["", f"**{title}:** {'; '.join(said)}."] if said else []


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _count(tokens: int | None) -> str:
    return "not recorded" if tokens is None else f"{tokens:,}"


def _plain(text: str, most: int = 400) -> str:
    """Text of others on one line, with nothing in it that Markdown reads as its own; where it is cut, … says so."""
    line = " ".join(text.split())
    return _SPECIAL.sub(r"\\\1", line if len(line) <= most else f"{line[: most - 1]}…")
