"""The tables of published figures, as registrations: plain dicts in the shape of the REST bodies.

`runs()` gives bodies of `POST /runs`, `attempts()` bodies of `POST /runs/{id}/attempts` with project and run
beside them, `checkpoints()` items of `POST /checkpoints:batch`. Each comes before what refers to it, so they
can be sent in order. What the sources do not say is left out; nothing is made up to fill a field.
"""

from collections.abc import Iterator

from demo import dclm, pythia
from demo.reading import Body


def runs() -> Iterator[Body]:
    """The body of every run, both families."""
    yield from pythia.runs()
    yield from dclm.runs()


def attempts() -> Iterator[tuple[str, str, Body]]:
    """(project, run, body) of the one attempt of every run."""
    yield from pythia.attempts()
    yield from dclm.attempts()


def checkpoints() -> Iterator[Body]:
    """Every checkpoint with its scores, run by run, in the order of steps."""
    yield from pythia.checkpoints()
    yield from dclm.checkpoints()
