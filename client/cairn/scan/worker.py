"""A process that looks at candidates for `workers.py`: `python -m cairn.scan.worker ROOT`."""

import json
import os
import sys

from cairn.formats.checkpoints import File
from cairn.scan.find import Candidate
from cairn.scan.look import look_at
from cairn.scan.walk import open_tree


def serve(root: str) -> None:
    """A line of candidates in, a line of answers out, until the input ends."""
    tree = open_tree(root)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not stand among the answers
    for line in sys.stdin.buffer:
        given = [Candidate(**{**each, "files": [File(*file) for file in each["files"]]}) for each in json.loads(line)]
        found = [vars(answer) for each in given for answer in look_at(tree, each)]
        answers.write(json.dumps(found).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
