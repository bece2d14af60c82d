"""A command group whose commands are imported when they are asked for: `cairn find` does not pay for `cairn scan`."""

import importlib
from collections.abc import Mapping

import click


class LazyGroup(click.Group):
    """Knows its commands as `{name: "module:function"}` and imports one when it is run, completed or described."""

    homes: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.homes, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return super().get_command(ctx, cmd_name)
        module, _, function = self.homes[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), function)
        assert isinstance(command, click.Command)
        return command
