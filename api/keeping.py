"""`cairn-server backup` and `restore`: a copy of the whole registry in one file, and back."""

from datetime import UTC, datetime
from pathlib import Path

import click

import migrations
from api.opening import database_of, open_database
from registry.config import read_settings


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
def backup(file: Path | None) -> None:
    """Copy the whole registry into a new FILE while the service runs (default: named for this moment, here).

    The admin token's file, the settings and the checkpoints themselves are not in it.
    """
    from registry.backup import back_up

    settings = read_settings()
    database = database_of(settings)
    at = datetime.now(UTC)
    target = file or Path(f"cairn-{at:%Y%m%dT%H%M%SZ}.{'db' if database.is_sqlite else 'dump'}")
    contents = back_up(database.url, target)
    held = (
        f": {contents.projects} projects, {contents.runs} runs, {contents.checkpoints} checkpoints" if contents else ""
    )
    click.echo(f"{target}, {target.stat().st_size:,} bytes{held}")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Even where there is a registry, which is put aside first.")
def restore(file: Path, replace: bool) -> None:
    """Put a backup in the place of the database. Stop the service and its workers first."""
    from registry import tokens
    from registry.backup import restore as put_back

    settings = read_settings()
    database = database_of(settings)
    before = put_back(database.url, file, replace=replace, aside=settings.home)
    if before is not None:
        click.echo(f"What was there before lies in {before}")
    opened = open_database(settings)
    click.echo(f"Restored; the database is at schema {migrations.current_revision(opened)}.")
    with opened.read() as session:
        opens = tokens.holds_a_token(session, settings.admin_token_file)
    if not opens:
        make = "`cairn-server token create NAME --scope admin` makes one"
        click.echo(f"No token of it lies in {settings.admin_token_file}: {make}.")
