"""The template environment: autoescape on, undefined names are errors, and only the filters named here."""

import functools
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ui import filters
from ui.charts import four_square, line_chart
from ui.charts.signs import legend_sign, percentile_bar, piece_square, share_bar, swatch, whisker
from ui.contexts import Shell
from ui.contexts.compare import VerdictRow

FOLDER = Path(__file__).parent
# A state's colour and sign; the state's own word always stands beside it.
RUN_TONES = {"running": "good", "finished": "plain", "failed": "bad", "killed": "bad", "crashed": "bad", "hung": "bad"}
RUN_TONES |= {"lost": "bad", "stalled": "bad", "interrupted": "bad", "silent": "warn", "stopped": "plain"}
RESUMABILITY_TONES = {"exact": "good", "resumable": "good", "weights-only": "warn", "incomplete": "bad"}
REPLICA_TONES = {"present": "good", "verified": "good", "missing": "bad", "corrupt": "bad", "partial": "warn"}


def _tone(table: dict[str, str], value: object) -> str:
    return table.get(str(value), "unknown")


def _whisker(row: VerdictRow, reach: float) -> Markup:
    if not row.in_points:
        return Markup("")
    return whisker(filters.finite(row.delta), filters.finite(row.stderr), reach, row.verdict)


def _breakable(name: str) -> Markup:
    """A code name that a narrow column breaks after its underscores, dots and slashes, not within a word."""
    return Markup("<wbr>").join(re.split(r"(?<=[_./])(?=.)", name))


@functools.cache
def environment() -> Environment:
    """One for the process; templates are compiled once."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # an upgrade under a running service must not mix its templates with the old code
    )
    made.filters.update(filters.ALL)
    made.filters.update(
        breakable=_breakable,
        four_square=four_square,
        legend_sign=legend_sign,
        line_chart=line_chart,
        percentile_bar=percentile_bar,
        piece_square=piece_square,
        share_bar=share_bar,
        swatch=swatch,
        whisker=_whisker,
        run_tone=functools.partial(_tone, RUN_TONES),
        resumability_tone=functools.partial(_tone, RESUMABILITY_TONES),
        replica_tone=functools.partial(_tone, REPLICA_TONES),
    )
    return made


def render(template: str, shell: Shell, page: Any) -> str:
    """A whole page. `page` is the context of ui.contexts that belongs to the template."""
    return environment().get_template(template).render(shell=shell, page=page)
