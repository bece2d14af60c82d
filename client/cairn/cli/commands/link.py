"""`cairn link`: where a run is found in MLflow or W&B."""

from typing import Any

import click

from cairn.cli.output import json_option, print_json, print_rows, say
from cairn.cli.targets import find_run
from cairn.client import Client
from cairn.types import TrackerLink, TrackerLinks


@click.command()
@click.argument("run", metavar="PROJECT/RUN|ID")
@click.argument("url", required=False)
@click.option("--kind", type=click.Choice(["mlflow", "wandb"]), help="Where URL is a bare id: whose id it is.")
@click.option("--uri", help="With a bare id: the tracker's address.")
@click.option("--refresh", is_flag=True, help="Read the run from its trackers now.")
@click.option("--remove", metavar="LINK", help="Take this link away; what was read through it stays.")
@json_option
def link(
    run: str, url: str | None, kind: str | None, uri: str | None, refresh: bool, remove: str | None, as_json: bool
) -> int:
    """Link a run to the same run in MLflow or W&B, or show its links.

    \b
    cairn link llm/7b-a https://wandb.ai/team/llm/runs/3fy8k2
    cairn link llm/7b-a 'https://mlflow.example.org/#/experiments/4/runs/0e1f…'
    cairn link llm/7b-a

    Whatever link a tracker's pages show will do. A worker of the service reads the run there soon, and again while it
    lives; what somebody set here stays.
    """
    with Client() as client:
        found = find_run(client, run)
        if remove is not None:
            client.unlink_run(found, remove)
            say(f"Link {remove} of {found} was taken away.")
        if url is not None:
            made = _link(client, found.id, url, kind, uri)
            say(f"{found} is linked to {made}.")
        links = client.tracker_links(found)
        if refresh:
            for each in links.items:
                client.refresh_link(found, each)
            say(f"{len(links.items)} links will be read now.")
    if as_json:
        print_json(links.raw)
    else:
        _print(links, str(found))
    return 0 if links.items else 1


def _link(client: Client, run: str, text: str, kind: str | None, uri: str | None) -> TrackerLink:
    if uri is not None:
        return client.link_run(run, kind=kind or "mlflow", run_id=text, uri=uri)
    return client.link_run(run, text, kind=kind)


def _print(links: TrackerLinks, run: str) -> None:
    if not links.items:
        say(f"{run} has no links. `cairn link {run} URL` adds one.")
        return
    columns = ("tracker", "run there", "state", "there it is", "last read", "told", "what is wrong", "id")
    print_rows(columns, [_row(each) for each in links.items])
    for each in links.fields:
        if not each.agree:
            said = "; ".join(f"{value.get('kind')} says {value.get('value')!r}" for value in each.said)
            say(f"{each.name}: here {each.raw.get('here')!r}; {said}")


def _row(each: TrackerLink) -> tuple[Any, ...]:
    wrong = each.error or each.push_error
    there = each.external_name or each.run_id
    return each.kind, there, each.state, each.external_state, each.synced_at, each.push_state, wrong, each.id
