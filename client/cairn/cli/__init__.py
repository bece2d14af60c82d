"""`cairn` on the command line. Needs click and rich, which a training environment may lack."""

import sys


def main() -> None:
    """Entry point of the `cairn` command."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as missing:
        print(
            f"The cairn command needs {missing.name}. Install it with: pip install 'cairn-client[cli]'\n"
            "(The library itself, `import cairn`, works without.)",
            file=sys.stderr,
        )
        sys.exit(2)
    from cairn.cli.app import run

    sys.exit(run())
