"""`cairn login`: keep a token for a service."""

import sys

import click

from cairn.cli.output import json_option, print_json, say
from cairn.client import Client
from cairn.settings import read_settings, save_login


@click.command()
@click.option("--url", help="The service, e.g. http://127.0.0.1:8400. Default: CAIRN_URL, else the last login.")
@click.option("--token", help="The token; `-` reads it from standard input. Asked for where it is left out.")
@json_option
def login(url: str | None, token: str | None, as_json: bool) -> None:
    """Check a token and keep it for this service.

    The token is stored in a file that only you can read, and is sent to this URL only. Leave --token out to
    type it hidden: what stands on a command line is visible to others on the machine.
    """
    chosen = read_settings(url).url
    if token == "-":  # noqa: S105 - a dash, not a secret
        token = sys.stdin.readline()
    elif token is None:
        token = click.prompt(f"Token for {chosen}", hide_input=True, err=True)
    with Client(chosen, token) as client:
        client.list_checkpoints(limit=1)
    path = save_login(chosen, token)
    if as_json:
        print_json({"url": chosen, "file": str(path)})
    else:
        say(f"Logged in at {chosen}. The token is kept in {path}.")
