"""A search in plain words, or for what is most like a checkpoint: the answer with its evidence."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.evals.references import PREFIX, PROJECT, SOURCES
from registry.filters.left_out import asked_instead
from registry.ids import id_or
from registry.overview.briefs import read_briefs
from registry.search.answers import SearchAnswer
from registry.search.draft import UnreadableQuery
from registry.search.query import search_checkpoints
from registry.search.vocabulary import EXAMPLES
from registry.tokens import Caller
from ui.contexts import Answer, Link
from ui.contexts.find import FindContext
from ui.find.found import as_filter, chips_of, incomplete_of, population_of, resolved_of, rows_of
from ui.find.sentences import answer_of, like_answer, loosen_of
from ui.find.strongest import strongest_answer, strongest_rows
from ui.links import address

LIMIT = 20
INCOMPLETE = 8  # checkpoints shown that lack a score for a condition


def modes_of(q: str, project: str | None, chosen: str) -> tuple[Link, ...]:
    return (
        Link("In words", address("/find", q=q, project=project), chosen == "words"),
        Link("As a filter", address("/find", mode="filter", project=project), chosen == "filter"),
    )


def words_page(session: Session, caller: Caller, q: str, population: str, shared: Mapping[str, Any]) -> FindContext:
    blank = {"filter": "", "order_by": "", "columns": "", **shared}
    modes = modes_of(q, shared["project"], "words")
    examples = tuple(Link(text, address("/find", q=text, project=shared["project"])) for text in EXAMPLES)
    if not q:
        rows = strongest_rows(session, caller, shared["project"])
        return FindContext("words", modes, strongest_answer(rows), "", strongest=rows, examples=examples, **blank)
    try:
        found = search_checkpoints(
            session,
            project_ids=caller.project_ids,
            query=q,
            project=shared["project"],
            population=population,
            limit=LIMIT,
        )
    except UnreadableQuery as error:
        reason = error.message.partition(" Examples: ")[0]
        return FindContext(
            "words", modes, Answer("That could not be understood.", "bad", reason), q, examples=examples, **blank
        )
    page = _answered(session, found, q, modes, examples, blank)
    return replace(page, populations=_populations(found, q, population, shared["project"]))


def _populations(found: SearchAnswer, q: str, population: str, project: str | None) -> tuple[Link, ...]:
    """Whom percentiles may be among, where the question asks for any."""
    if not found.population.capabilities:
        return ()
    words = {PROJECT: "the checkpoints here"} | {PREFIX + each.name: each.title for each in SOURCES}
    return tuple(
        Link(
            text,
            address("/find", q=q, project=project, population=None if name == PROJECT else name),
            name == population,
        )
        for name, text in words.items()
    )


def like_page(session: Session, caller: Caller, like: str, shared: Mapping[str, Any]) -> FindContext:
    """Those most like a checkpoint. Raises CheckpointNotFound."""
    number = id_or(like.strip(), CheckpointNotFound)
    found = search_checkpoints(session, project_ids=caller.project_ids, like=number, limit=LIMIT)
    briefs = read_briefs(session, [number, *(each.checkpoint.id for each in found.results)])
    blank = {"filter": "", "order_by": "", "columns": "", **shared}
    return FindContext(
        "words",
        modes_of("", shared["project"], "words"),
        like_answer(found, briefs[number]),
        "",
        chips=chips_of(found.interpretation.conditions),
        population=population_of(found),
        results=rows_of(found.results, briefs),
        **blank,
    )


def _asked_instead(found: SearchAnswer, q: str, project: str | None) -> tuple[Link, ...]:
    """The question to those that it leaves out, where nobody else meets it."""
    other = None if found.strict else asked_instead(found.interpretation.left_out, q, in_words=True)
    return (
        (Link(f"Ask those that were left out: {other}", address("/find", q=other, project=project)),) if other else ()
    )


def _keep_links(found: SearchAnswer, q: str, blank: Mapping[str, Any]) -> tuple[Link, ...]:
    """Of an answer over several projects, the question in each that is in it: what is kept belongs to a project."""
    if blank["project"] or len(blank["projects"]) < 2:
        return ()
    names = dict.fromkeys(each.checkpoint.project for each in found.results)
    return tuple(Link(name, address("/find", q=q, project=name) + "#keep") for name in names)


def _answered(
    session: Session,
    found: SearchAnswer,
    q: str,
    modes: tuple[Link, ...],
    examples: tuple[Link, ...],
    blank: Mapping[str, Any],
) -> FindContext:
    briefs = read_briefs(session, [each.checkpoint.id for each in (*found.results, *found.incomplete)])
    understood = found.interpretation
    return FindContext(
        "words",
        modes,
        answer_of(found, LIMIT),
        q,
        chips=chips_of(understood.conditions),
        unparsed=understood.unparsed,
        resolved=resolved_of(understood.resolved, understood.left_out),
        population=population_of(found),
        results=rows_of(found.results, briefs),
        incomplete=rows_of(found.incomplete[:INCOMPLETE], briefs),
        incomplete_words=incomplete_of(found, LIMIT),
        loosen=loosen_of(found),
        loosen_links=_asked_instead(found, q, blank["project"]),
        as_filter=as_filter(understood.conditions, blank["project"]),
        keep_links=_keep_links(found, q, blank),
        examples=() if found.results else examples,
        **blank,
    )
