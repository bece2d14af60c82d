"""What a rollback may be asked about: the run or alias, what of it can be watched, and what is chosen unasked."""

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy.orm import Session

from registry.aliases import list_aliases
from registry.evals.catalogue import catalogue
from registry.evals.project_table import ProjectTable
from registry.ids import to_text
from registry.overview.briefs import read_briefs
from registry.overview.runs import list_run_overviews
from registry.overview.scores import MetricName
from registry.overview.starts import TO_SERVE, TO_TRAIN, has_way_back
from registry.projects import list_projects
from registry.recovery.answers import RollbackAnswer
from registry.runs import get_run
from registry.tokens import Caller
from ui import filters
from ui.contexts import Link
from ui.links import address, segment
from ui.rollback.question import Asked

TRIED = 20  # aliases, and runs, looked at for one with an answer


def run_of(answer: RollbackAnswer) -> int | None:
    """The run of what is ranked first, or left out first: whose scores can be watched."""
    named = [each.checkpoint.run.id for each in answer.candidates]
    named += [each.checkpoint.run.id for each in answer.excluded]
    return named[0] if named else None


def subject_of(session: Session, asked: Asked) -> Link:
    if asked.alias is not None:
        project, _, name = asked.alias.partition("/")
        return Link(f"the alias {asked.alias}", f"/aliases/{segment(project)}/{segment(name)}")
    run = get_run(session, asked.run_id or 0)
    return Link(f"the run {run.name}", f"/runs/{to_text(run.id)}")


def watch_choices_of(metrics: Sequence[MetricName], table: ProjectTable) -> tuple[str, ...]:
    """The capabilities, then the benchmarks that are no part of another, that the run was evaluated on."""
    rows = [(table.for_metric(m.benchmark, m.metric, m.filter), m.benchmark) for m in metrics]
    skills = [each.name for each in catalogue().capabilities if any(row.capability == each.name for row, _ in rows)]
    benchmarks = sorted({name for row, name in rows if row.part_of is None})
    return (*skills, *benchmarks[:60])


def alias_links(session: Session, caller: Caller, chosen: str | None) -> tuple[Link, ...]:
    names = {row.id: row.name for row in list_projects(session, caller.project_ids)}
    found = [f"{names[alias.project_id]}/{alias.name}" for alias in list_aliases(session, sorted(names))]
    return tuple(Link(name, address("/rollback", alias=name), name == chosen) for name in sorted(found)[:20])


def run_links(session: Session, caller: Caller, chosen: int | None) -> tuple[Link, ...]:
    page = list_run_overviews(session, project_ids=caller.project_ids, limit=12)
    own = [] if chosen is None or any(run.id == chosen for run in page.rows) else [get_run(session, chosen)]
    found = {run.id: run.name for run in own} | {run.id: run.name for run in page.rows if run.checkpoints}
    short = filters.apart(found.values(), 40)
    return tuple(
        Link(short[name], address("/rollback", run=to_text(run_id)), run_id == chosen) for run_id, name in found.items()
    )


def default_subject(session: Session, caller: Caller, said: Mapping[str, str]) -> str | None:
    """The alias that was moved last, or the run that saved last, that has something to go back to; else the first."""
    first: str | None = None
    for name, subject, has_answer in _subjects(session, caller):
        path = address("/rollback", **{name: subject, **said})
        if has_answer:
            return path
        first = first or path
    return first


def _subjects(session: Session, caller: Caller) -> Iterator[tuple[str, str, bool]]:
    """What could be rolled back, the likeliest question first, and whether it has an answer: one statement each."""
    names = {row.id: row.name for row in list_projects(session, caller.project_ids)}
    aliases = sorted(list_aliases(session, sorted(names)), key=lambda alias: alias.moved_at, reverse=True)[:TRIED]
    targets = read_briefs(session, [alias.checkpoint_id for alias in aliases])
    for alias in aliases:
        run_id, path = targets[alias.checkpoint_id].run_id, f"{names[alias.project_id]}/{alias.name}"
        found = has_way_back(session, alias.project_id, run_id, TO_SERVE, besides=alias.checkpoint_id)
        yield "alias", path, found
    for run in list_run_overviews(session, project_ids=caller.project_ids, limit=TRIED).rows:
        if run.checkpoints:
            found = has_way_back(session, run.project_id, run.id, TO_TRAIN)
            yield "run", to_text(run.id), found
