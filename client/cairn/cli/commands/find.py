"""`cairn find`: which checkpoint is strong where."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from cairn.calls.base import literal, pages
from cairn.cli.output import checkpoint_cells, counted, json_option, points, print_json, print_rows, say, say_if_cut
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.types import Checkpoint, CheckpointPage, Evidence, SearchAnswer, SearchResult

PAGE = 100
PROJECTS = 5  # left out, that are named
STANDING = "standing"  # what nobody should load by mistake says so: pending, or left behind by a rollback
BASIC = ("loss", "tokens_seen", STANDING, "resumability", "saved_at")


@click.command()
@click.argument("words", nargs=-1)
@click.option("--filter", "filter_", help="In the filter language: \"scores.gsm8k > 0.6 and tags.phase = 'sft'\".")
@click.option("--order-by", help="'scores.gsm8k desc, step'.")
@click.option("--columns", help="Fields to show, separated by commas: loss,scores.gsm8k,tags.phase.")
@click.option("--project", help="Only checkpoints of this project.")
@click.option("--like", metavar="CHECKPOINT", help="Those with the same strengths and weaknesses as this one.")
@click.option(
    "--order",
    type=click.Choice(("match", "newest", "oldest", "lowest_loss")),
    help="What comes first of an answer in words.",
)
@click.option("--population", help="Whom percentiles are among: project (default) or reference:pythia.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@json_option
def find(
    words: Sequence[str],
    filter_: str | None,
    order_by: str | None,
    columns: str | None,
    project: str | None,
    like: str | None,
    order: str | None,
    population: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Find checkpoints by what they are good at, or by a filter.

    \b
    cairn find 'strong math weak chat'
    cairn find 数学强但对话弱
    cairn find --like demo/llama@50000
    cairn find --filter "scores.gsm8k > 0.6" --order-by 'scores.gsm8k desc' --columns scores.gsm8k,loss
    cairn find --filter 'not scored and not superseded'      # what is still to be evaluated

    With words, exit code 1 means that nothing meets every condition; the nearest are shown all the same.
    """
    by_filter = filter_ is not None or order_by is not None or columns is not None
    if words and by_filter:
        raise click.UsageError("Words and --filter, --order-by or --columns are two ways to ask; use one.")
    if like is not None and (words or by_filter):
        raise click.UsageError("--like is a way to ask by itself: no words and no filter beside it.")
    if not words and (order or population):
        raise click.UsageError("--order and --population belong to a question in words.")
    with Client() as client:
        if like is not None:
            return _by_words(client.search(like=find_checkpoint_id(client, like), limit=limit), as_json)
        if words and not " ".join(words).strip():
            raise click.UsageError("Say what to look for, e.g. 'strong math weak chat'; without words all are listed.")
        if words:
            answer = client.search(" ".join(words), project=project, order=order, population=population, limit=limit)
            return _by_words(answer, as_json)
        return _by_filter(client, filter_, order_by, columns, project, limit, as_json)


def _by_words(answer: SearchAnswer, as_json: bool) -> int:
    if as_json:
        print_json(answer.raw)
    else:
        _say_how_understood(answer)
        names = list(dict.fromkeys(_subject(each) for result in answer.results for each in result.evidence))
        by_loss = answer.interpretation.order == "lowest_loss"
        rows = [_result_row(result, names, by_loss) for result in answer.results]
        if rows:
            print_rows(("checkpoint", "match", *(["loss"] if by_loss else []), *names, "id"), rows)
    return 0 if answer.results and answer.strict else 1


def _say_how_understood(answer: SearchAnswer) -> None:
    order = answer.interpretation.order
    said = [
        *map(str, answer.interpretation.conditions),
        *([f"the {order.replace('_', ' ')} first"] if order != "match" else []),
    ]
    understood = ", ".join(said) or "nothing"
    size = answer.population.get("size")
    say(f"Understood: {understood}." + (f" Ranked among {counted(size, 'checkpoint')}." if size is not None else ""))
    if answer.interpretation.unparsed:
        say(f"Not understood: {', '.join(answer.interpretation.unparsed)}.")
    _say_read_as(answer.interpretation.resolved, answer.interpretation.left_out)
    for warning in answer.population.get("warnings") or ():
        say(str(warning))
    if not answer.results:
        say("Nothing found. A checkpoint without scores for this is never counted as weak.")
    elif not answer.strict:
        unasked = answer.interpretation.left_out
        who = "Nothing that was asked" if unasked else "Nothing"
        say(f"{who} meets every condition; these come nearest.")
    if answer.incomplete:
        lacking = f"{len(answer.incomplete)} more {'was' if len(answer.incomplete) == 1 else 'were'}"
        say(f"{lacking} never evaluated on a part of this; --json shows them.")


def _subject(evidence: Evidence) -> str:
    asked = evidence.condition
    return asked.capability or asked.benchmark or asked.field_ or evidence.capability or "?"


def _result_row(result: SearchResult, names: Sequence[str], by_loss: bool) -> list[Any]:
    """Each percentile beside the share of its benchmarks that were measured, where not all were."""
    shown = {_subject(each): _evidence_cell(each) for each in result.evidence}
    label, id_ = checkpoint_cells(result.checkpoint)
    loss = [result.loss] if by_loss else []
    return [label, result.score, *loss, *(shown.get(name, "") for name in names), id_]


def _evidence_cell(evidence: Evidence) -> str:
    """A percentile where there is a population, else the composite; for a benchmark's own value its score."""
    scores = [each.value for each in evidence.benchmarks if each.value is not None]
    if evidence.condition.relation not in ("strong", "weak", "like", ""):
        return f"{scores[0]:.6g}" if scores else ""
    partly = evidence.coverage is not None and evidence.coverage < 1 and evidence.capability is not None
    measured = f" ({points(evidence.coverage)} measured)" if partly else ""
    if evidence.percentile is not None and (evidence.basis != "absolute" or evidence.composite is None):
        return points(evidence.percentile) + measured
    if evidence.composite is not None:
        return f"{evidence.composite:.3f}" + measured
    return "not evaluated"


def _by_filter(
    client: Client,
    filter_: str | None,
    order_by: str | None,
    columns: str | None,
    project: str | None,
    limit: int,
    as_json: bool,
) -> int:
    if project is not None:
        only = f"project = {literal(project)}"
        filter_ = f"{only} and ({filter_})" if filter_ else only
    wanted = [name.strip() for name in columns.split(",") if name.strip()] if columns else []
    read_as: dict[str, Any] = {}
    left_out: dict[str, Any] = {}

    def fetch(cursor: str | None) -> CheckpointPage:
        page = client.list_checkpoints(
            filter=filter_, order_by=order_by, fields=columns, limit=min(limit, PAGE), cursor=cursor
        )
        read_as.update(page.resolved)
        left_out.update(page.left_out)
        return page

    found = list(pages(fetch, limit))
    if as_json:
        print_json({"items": [each.raw for each in found], "resolved": read_as, "left_out": left_out})
        return 0 if found else 1
    _say_read_as(read_as, left_out)
    if found:
        print_checkpoints(found, wanted)
        say_if_cut(len(found), limit)
    else:
        say(
            "No checkpoint matches. Loosen the filter, or see what there is with `cairn find`."
            if filter_
            else "There is no checkpoint yet. `cairn record --project P --run R --step N` records the first."
        )
    return 0 if found else 1


def _say_read_as(read_as: Mapping[str, Any], left_out: Mapping[str, Any]) -> None:
    """A benchmark without its metric means one metric for all: a person has to see which, and whom it leaves out."""
    for name, meant in read_as.items():
        if meant is None:
            say(f"{name}: no such score is recorded in the projects that were asked.")
        elif (short := _short(meant)) != name:
            say(f"{name} is read as {short}; name another metric to ask for that one.")
        for each in left_out.get(name) or ():
            names = [*map(str, each["projects"])]
            more = f" and {len(names) - PROJECTS} more" if len(names) > PROJECTS else ""
            say(f"  Left out, with {_short(each['score'])} only: {', '.join(names[:PROJECTS])}{more}.")


def _short(score: Any) -> str:
    return str(score).removesuffix(".none").removesuffix(".none")


def print_checkpoints(found: Sequence[Checkpoint], wanted: Sequence[str]) -> None:
    """A row each; `wanted` are further fields, by default the ones that most people ask for."""
    names = tuple(wanted) or BASIC
    rows = []
    for each in found:
        label, id_ = checkpoint_cells(each)
        rows.append((each.project, label, *(field_value(each.raw, name) for name in names), id_))
    print_rows(("project", "checkpoint", *names, "id"), rows)


def field_value(raw: Any, name: str) -> Any:
    """A field of a listed checkpoint by its dotted name: asked for, the row's own, or of its identity."""
    if name == STANDING:
        return "superseded" if raw.get("superseded") else raw.get("state")
    holders = (raw.get("values"), raw, raw.get("checkpoint"))
    found = (_dotted(holder, name) for holder in holders if isinstance(holder, dict))
    return next((value for value in found if value is not None), None)


def _dotted(holder: Any, name: str) -> Any:
    if name in holder:
        return holder[name]
    for part in name.split("."):
        holder = holder.get(part) if isinstance(holder, dict) else None
    return holder
