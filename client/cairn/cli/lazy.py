"""A command group whose commands are imported when they are asked for: `cairn find` does not pay for `cairn scan`."""

import difflib
import importlib
from collections.abc import Mapping

import click


class HintingGroup(click.Group):
    """Names the nearest commands where somebody asks for one that is not there."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            near = difflib.get_close_matches(args[0], known, n=3, cutoff=0.6)
            hint = (
                f" Did you mean {' or '.join(near)}?" if near else f" `{ctx.command_path} --help` lists the commands."
            )
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


class LazyGroup(HintingGroup):
    """Knows its commands as `{name: "module:function"}` and imports one when it is run, completed or described.

    `summaries` are the short help texts, so that the list of all commands imports none of them.
    """

    homes: Mapping[str, str] = {}
    summaries: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.homes, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return super().get_command(ctx, cmd_name)
        module, _, function = self.homes[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._summary(ctx, name)) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _summary(self, ctx: click.Context, name: str) -> str:
        if name in self.summaries:
            return self.summaries[name]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(100) if command is not None else ""
