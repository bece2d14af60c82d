"""How a score is named in short: `benchmark[.metric[.filter]]`."""

import re

_WORD = re.compile(r"[\w-]+")


def score_name(name: str) -> dict[str, str]:
    """`benchmark[.metric[.filter]]` as fields; a part in backticks may hold dots."""
    parts, rest = [], name
    while rest:
        if rest.startswith("`") and "`" in rest[1:]:
            part, _, rest = rest[1:].partition("`")
            rest = rest.removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
        parts.append(part)
    if len(parts) > 3:
        parts[2:] = [".".join(parts[2:])]
    return dict(zip(("benchmark", "metric", "filter"), parts, strict=False))


def score_field(benchmark: str, metric: str, filter: str) -> str:
    """The whole name as the filter language writes it: `scores.gsm8k.exact_match.none`."""
    parts = ("scores", benchmark, metric or "none", filter or "none")
    return ".".join(part if _WORD.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts)


def in_short(field: str) -> str:
    """A score's field as a person reads it: without `scores.` and without parts that are none."""
    return field.removeprefix("scores.").removesuffix(".none").removesuffix(".none")
