"""How many benchmarks a mean is over: the parts of one, as the subjects of MMLU, count as one together."""

from collections.abc import Sequence

from registry.evals.project_table import ProjectTable
from ui import filters


def counted(names: Sequence[str], table: ProjectTable) -> str:
    """'4 benchmarks', or '4 benchmarks (60 with their parts)' where some were evaluated in parts."""
    families = {entry.family if (entry := table.get(name)) is not None else name for name in names}
    parts = f" ({filters.grouped(len(names))} with their parts)" if len(families) < len(names) else ""
    return f"{filters.plural(len(families), 'benchmark')}{parts}"
