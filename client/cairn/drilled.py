"""Whether a drill has started this process. It loads a checkpoint on trial, so nothing of it may reach a run."""

import os
import re

from cairn.errors import InDrill

MARK = "CAIRN_DRILL"
# What the job around a drill was told to load is nothing that the drilled command goes on from.
OF_THE_JOB_AROUND = ("CAIRN_ATTEMPT_KEY", "CAIRN_RESUME_PATH", "CAIRN_RESUMED_FROM")
# Calls that ask by POST, and write nothing.
QUESTION = re.compile(r"/api/v1/(search|rollback|compare|runs/[^/]+/resume-plan)")


def drilled() -> str:
    """The checkpoint that is drilled, as project/run@attempt.step; '' outside of a drill."""
    return os.environ.get(MARK, "")


def environment(checkpoint: str) -> dict[str, str]:
    """That of a command which is run to try `checkpoint`."""
    return {**{name: value for name, value in os.environ.items() if name not in OF_THE_JOB_AROUND}, MARK: checkpoint}


def refuse_in_drill(what: str) -> None:
    """Raises `InDrill` in a process that a drill has started. `what`: the sentence that says what is not done."""
    if checkpoint := drilled():
        raise InDrill(
            f"{what} `cairn drill` has started this process to try {checkpoint}, and a drill leaves no trace in a run "
            f"({MARK} is set)."
        )


def refuse_to_send(method: str, path: str) -> None:
    """Raises `InDrill` for a call that would record something."""
    if method != "GET" and not QUESTION.fullmatch(path.partition("?")[0]):
        refuse_in_drill("Nothing is recorded: this is a drill.")
