"""What a run page says first and around its plots: the state, the facts, the ways on."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from registry.aliases import AliasRow
from registry.checkpoints.detail import read_config
from registry.ids import to_text
from registry.incidents.queries import Asked, summarise
from registry.incidents.shapes import IncidentRow
from registry.overview.briefs import Brief
from registry.overview.runs import RunOverview
from registry.runs import RunRow
from registry.snapshots import flatten
from registry.types import Resumability
from ui import filters
from ui.contexts import Answer, Chip, Fact, Link
from ui.incident_views import sentence
from ui.links import address, segment
from ui.refs import config_text, run_state, saved_in_words
from ui.render import RUN_TONES


def answer_of(run: RunOverview, newest: Brief | None, moment: datetime, struck: Sequence[IncidentRow]) -> Answer:
    state = run_state(run, moment)
    attempt = f", attempt {run.attempt}" if run.attempt is not None and run.attempt > 1 else ""
    head = "Nobody reports its state" if state == "not reported" else f"{state.capitalize()}{attempt}"
    tone = RUN_TONES.get(state, "unknown")
    open_one = next((each for each in struck if each.ending is None), None)
    if open_one is not None:
        head, tone = f"{head}, interrupted {filters.ago(open_one.occurred_at, moment)} and not recovered", "bad"
    if newest is None:
        return Answer(f"{head}; no checkpoint yet, so nothing to come back to.", "warn")
    usable = {
        Resumability.EXACT: "it resumes exactly",
        Resumability.RESUMABLE: "it is resumable",
        Resumability.WEIGHTS_ONLY: "it holds weights only",
        Resumability.INCOMPLETE: "it is incomplete",
        Resumability.UNKNOWN: "whether it can be resumed is unknown",
    }[newest.resumability]
    return Answer(
        f"{head}; the newest checkpoint, step {filters.grouped(newest.step)}, was "
        f"{saved_in_words(newest, moment)}: {usable}.",
        tone,
    )


def facts_of(run: RunRow, overview: RunOverview, newest: Brief | None) -> tuple[Fact, ...]:
    known = [
        Fact("parameters", filters.count(run.parameter_count), filters.exact(run.parameter_count)),
        Fact("checkpoints", filters.grouped(overview.checkpoints)),
        Fact("attempts", filters.grouped(overview.attempts)),
    ]
    if newest is not None:
        known.append(Fact("tokens seen", filters.count(newest.tokens_seen), filters.exact(newest.tokens_seen)))
        known.append(Fact("data", filters.middle(newest.data_version or filters.MISSING), newest.data_version or ""))
        known.append(Fact("loss", filters.number(newest.loss), filters.exact(newest.loss)))
    known = [fact for fact in known if fact.value != filters.MISSING]
    for name, value in (("kind", run.kind), ("family", run.model_family), ("owner", run.owner), ("team", run.team)):
        if value:
            known.append(Fact(name, filters.middle(value, 40), value))
    known += [Fact(filters.middle(name, 30), filters.middle(value, 40), value) for name, value in run.tags.items()]
    return tuple(known)


def interruptions_of(session: Session, run: RunRow, struck: Sequence[IncidentRow], moment: datetime) -> Answer | None:
    if not struck:
        return None
    return sentence(summarise(session, Asked([run.project_id], run.id)), struck[0], moment)


def alias_chip(alias: AliasRow, project: str) -> Chip:
    return Chip(alias.name, f"/aliases/{segment(project)}/{segment(alias.name)}")


def config_facts(session: Session, run: RunRow) -> tuple[Fact, ...]:
    config = read_config(session, run.config_id)
    if config is None:
        return ()
    return tuple(Fact(path, config_text(value), mono=True) for path, value in flatten(config))


def actions_of(run_id: str, overview: RunOverview, aliases: Sequence[AliasRow], project: str) -> tuple[Link, ...]:
    if overview.newest_id is None:
        return ()
    newest = to_text(overview.newest_id)
    links = [Link("Roll this run back", address("/rollback", run=run_id))]
    links += [
        Link(
            f"Compare the newest with {alias.name}",
            address("/compare", baseline=f"{project}/{alias.name}", candidate=newest),
        )
        for alias in aliases[:2]
        if alias.checkpoint_id != overview.newest_id
    ]
    links.append(Link("Benchmarks of its project", address("/benchmarks", project=project)))
    query = f"run.id = '{run_id}' and not superseded"
    links.append(
        Link(
            "Filter its checkpoints", address("/find", mode="filter", filter=query, order_by="attempt desc, step desc")
        )
    )
    return tuple(links)
