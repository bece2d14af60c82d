"""How a score is named in short: `benchmark[.metric[.filter]]`."""


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
