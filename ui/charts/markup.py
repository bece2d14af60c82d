"""SVG elements as escaped markup. Presentation attributes and classes only: pages allow no inline style."""

from collections.abc import Sequence

from markupsafe import Markup, escape


def tag(name: str, *content: str, **attributes: object) -> Markup:
    """One element. `class_` becomes class and other underscores hyphens; None leaves an attribute out.

    Content and values are escaped unless they are markup already; floats keep one decimal.
    """
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    inner = "".join(str(escape(part)) for part in content)
    return Markup(f"<{name}{''.join(parts)}>{inner}</{name}>" if inner else f"<{name}{''.join(parts)}/>")  # noqa: S704


def _value(value: object) -> object:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def join(parts: list[Markup]) -> Markup:
    return Markup("").join(parts)


def path_of(points: Sequence[tuple[float, float]]) -> str:
    """The d of an open line through these points."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
