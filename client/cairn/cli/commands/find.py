"""`cairn find`: which checkpoint is strong where."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import click

from cairn.calls.base import literal, pages
from cairn.cli.found import evidence_cell, say_how_understood, say_next_filter, say_read_as, subject_of
from cairn.cli.output import checkpoint_cells, json_option, print_json, print_rows, say, say_if_cut
from cairn.cli.targets import find_checkpoint_id
from cairn.client import Client
from cairn.errors import NotFound
from cairn.types import Checkpoint, CheckpointPage, SearchAnswer, SearchResult

PAGE = 100
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
    type=click.Choice(("match", "newest", "oldest", "lowest_loss", "smallest")),
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
            asked = " ".join(words)
            answer = client.search(asked, project=project, order=order, population=population, limit=limit)
            return _by_words(answer, as_json, asked)
        return _by_filter(client, filter_, order_by, columns, project, limit, as_json)


def _by_words(answer: SearchAnswer, as_json: bool, asked: str | None = None) -> int:
    if as_json:
        print_json(answer.raw)
    else:
        say_how_understood(answer, asked)
        names = list(dict.fromkeys(subject_of(each) for result in answer.results for each in result.evidence))
        by_loss = answer.interpretation.order == "lowest_loss"
        rows = [_result_row(result, names, by_loss) for result in answer.results]
        if rows:
            print_rows(("checkpoint", "match", *(["loss"] if by_loss else []), *names, "id"), rows)
    return 0 if answer.results and answer.strict else 1


def _result_row(result: SearchResult, names: Sequence[str], by_loss: bool) -> list[Any]:
    """Each percentile beside the share of its benchmarks that were measured, where not all were."""
    shown = {subject_of(each): evidence_cell(each) for each in result.evidence}
    label, id_ = checkpoint_cells(result.checkpoint)
    loss = [result.loss] if by_loss else []
    return [label, result.score, *loss, *(shown.get(name, "") for name in names), id_]


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
    if not found and project is not None:
        _refuse_unknown_project(client, project)
    if as_json:
        print_json({"items": [each.raw for each in found], "resolved": read_as, "left_out": left_out})
        return 0 if found else 1
    say_read_as(read_as, left_out)
    if found:
        print_checkpoints(found, wanted)
        say_if_cut(len(found), limit)
    else:
        say(
            "No checkpoint matches. Loosen the filter, or see what there is with `cairn find`."
            if filter_
            else "There is no checkpoint yet. `cairn record --project P --run R --step N` records the first."
        )
        say_next_filter(left_out, filter_ or "")
    return 0 if found else 1


def _refuse_unknown_project(client: Client, name: str) -> None:
    """A filter that finds nothing may have been asked of a project that does not exist: then that is the answer."""
    known = [each.name for each in client.list_projects()]
    if name not in known:
        near = get_close_matches(name, known, n=1) or known
        there = f" Did you mean {near[0]}?" if len(near) == 1 else ""
        raise NotFound(f"There is no project {name!r} that this token can read.{there}")


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
