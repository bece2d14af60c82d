"""`cairn completion`: the script that lets a shell complete commands and options."""

import click
from click.shell_completion import ShellComplete, get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CAIRN_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  source <(cairn completion bash)       in ~/.bashrc
    zsh:   source <(cairn completion zsh)        in ~/.zshrc, after compinit
    fish:  cairn completion fish > ~/.config/fish/completions/cairn.fish
    """
    from cairn.cli.app import cli

    kind = get_completion_class(shell)
    assert kind is not None
    # Not the class's own `source`, which runs the shell to ask for its version: it may not be installed here.
    click.echo(ShellComplete.source(kind(cli, {}, "cairn", VARIABLE)))
