"""`cairn-server doctor`: what is wrong with this installation, and what to do about it. It changes nothing."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

import migrations
from registry.config import Settings, read_settings

if TYPE_CHECKING:
    from registry.db import Database
    from registry.health.shapes import Found

ANSWER_SECONDS: Final = 5.0
_COLOURS: Final = {"ok": "green", "warning": "yellow", "fault": "red"}


@click.command()
@click.option("--whole", is_flag=True, help="Read every page of SQLite's file too: a second for each 500 MB.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array of {subject, health, said, advice}.")
def doctor(whole: bool, as_json: bool) -> None:
    """Look at home, database, schema, service, workers and what settings name; say what is wrong and what to do.

    Changes nothing, and may run beside the service. Exit code 1 where there is a fault, 0 where there are warnings
    at most.
    """
    found = list(_examine(read_settings(), whole=whole))
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=1))
    else:
        _print(found)
    if any(each.health == "fault" for each in found):
        sys.exit(1)


def _examine(settings: Settings, *, whole: bool) -> Iterator["Found"]:
    from registry.db import Database
    from registry.health.database import look_at_database
    from registry.health.home import look_at_home, look_at_token
    from registry.health.outside import look_outside
    from registry.health.work import look_at_work

    yield from look_at_home(settings)
    database = Database(settings.database_url)
    try:
        seen = list(look_at_database(database, whole=whole))
        yield from seen
        if not any(each.health == "fault" for each in seen):
            schema = _schema(database)
            yield schema
            if schema.health == "ok":
                with database.read() as session:
                    yield look_at_token(session, settings.admin_token_file)
                    yield from look_at_work(session)
    finally:
        database.dispose()
    yield _service(settings)
    yield from look_outside(settings, os.environ.get("CAIRN_TRACKER_CREDENTIALS"))


def _schema(database: "Database") -> "Found":
    from registry.health.shapes import fault, ok

    revision = migrations.current_revision(database)
    if revision == migrations.HEAD:
        return ok("schema", f"{revision}, the newest")
    said = f"The database is at {revision or 'no schema'}, this release needs {migrations.HEAD}."
    return fault("schema", said, "`cairn-server backup FILE`, then `cairn-server migrate`.")


def _service(settings: Settings) -> "Found":
    """Whether it answers where the settings say that it listens."""
    import urllib3

    from registry.health.shapes import fault, ok, warning

    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    url = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}/health/ready"
    try:
        answer = urllib3.request("GET", url, retries=False, timeout=ANSWER_SECONDS)
    except urllib3.exceptions.HTTPError:
        return warning("service", f"Nothing answers at {url}.", "`cairn-server serve` starts it.")
    if answer.status == 200:
        return ok("service", f"ready at {url}")
    said = f"{url} answers {answer.status}: {answer.data[:200].decode(errors='replace')}"
    return fault("service", said, "Its log says more; or is it another program's port? CAIRN_PORT names it.")


def _print(found: list["Found"]) -> None:
    width = max(len(each.subject) for each in found)
    for each in found:
        mark = click.style(f"{each.health:7}", fg=_COLOURS[each.health])
        click.echo(f"{mark}  {each.subject:{width}}  {each.said}")
        if each.advice:
            click.echo(f"{'':7}  {'':{width}}  → {each.advice}")
