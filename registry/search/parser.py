"""A question in plain English or Chinese, read as conditions. No model is asked: the same words mean the same always.

Taken out in this order: ranges of sizes, comparisons with numbers, steps, dates, how many are asked for, what comes
first, projects, runs, kinds of runs, families and sizes of models, bare names of projects; the rest is read word by
word. Words that nobody
listed come back in `unparsed`; a question with two readings is refused, never guessed at, and so is one where what was
not understood has a number, looks like a slip of the pen, or like a name that nobody has.
"""

from datetime import datetime

from registry.search.clauses import read_clauses
from registry.search.comparisons import take_comparisons
from registry.search.conditions import MAX_CONDITIONS
from registry.search.contradictions import refuse_contradictions
from registry.search.counts import take_count
from registry.search.dates import take_dates
from registry.search.draft import Draft, Known, UnreadableQuery
from registry.search.kinds import refuse_other_losses, take_families, take_kinds, take_order
from registry.search.places import (
    take_bare_projects,
    take_projects,
    take_runs,
    take_size_ranges,
    take_sizes,
    take_steps,
)
from registry.search.reading import MATCH, Reading


def read_query(query: str, *, now: datetime, known: Known | None = None) -> Reading:
    """Read a question; `now` gives 'yesterday' its meaning. Raises UnreadableQuery, with examples of questions."""
    draft = Draft(query)
    refuse_other_losses(draft)
    take_size_ranges(draft)
    take_comparisons(draft, known)
    take_steps(draft)
    take_dates(draft, now)
    take_count(draft)
    order = take_order(draft)
    take_projects(draft, known)
    take_runs(draft, known)
    take_kinds(draft, known)
    take_families(draft, known)
    take_bare_projects(draft, known)
    take_sizes(draft)
    unparsed = read_clauses(draft, known)
    conditions = tuple(dict.fromkeys(draft.conditions))
    refuse_contradictions(conditions)
    if not conditions and order == MATCH:
        understood = f" Not understood: {' '.join(unparsed)[:200]}." if unparsed else ""
        raise UnreadableQuery(f"The query names no capability, benchmark or field.{understood}")
    if len(conditions) > MAX_CONDITIONS:
        raise UnreadableQuery(f"The query has {len(conditions)} conditions; at most {MAX_CONDITIONS} are read.")
    return Reading(conditions, tuple(dict.fromkeys(unparsed)), order, draft.at_most)
