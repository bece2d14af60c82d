"""What went wrong, said to somebody at a shell: without the API's own words, with the command that helps.

The service writes its problems for programs that call it (`POST /api/v1/projects makes one.`). Here such a sentence
is left out, and what a person can do stands in its place, found by the problem's stable code.
"""

import re
from dataclasses import replace

from cairn.errors import CairnError, FieldProblem, Unauthenticated

CHECKPOINT_NAMES = (
    "A checkpoint is named by its id, by project/run@step or project/run@attempt.step, or by an alias as project/alias."
)
HINTS = {
    "project-not-found": "`cairn run list` shows what is there; `cairn record --project P ...` makes a project.",
    "run-not-found": "`cairn run list` shows the runs. A run is named by its id or as project/run.",
    "checkpoint-not-found": f"{CHECKPOINT_NAMES} `cairn find` lists them.",
    "alias-not-found": "An alias is written project/name. A run is project/run, its checkpoint project/run@step.",
    "incident-not-found": "`cairn incident list` shows them with their ids.",
    "job-not-found": "`cairn import mlflow` and `cairn import wandb --project` print the id of their job.",
    "tracker-link-not-found": "`cairn link PROJECT/RUN` shows a run's links with their ids.",
    "batch-in-conflict": "What is recorded stays as it is; what is left out now and was said then differs, too. "
    "`cairn record PROJECT/RUN@STEP --path ...` adds a copy to it, also --score, --tag or another --loss; what was "
    "saved after going back in steps belongs to a new attempt, which the job begins (client.start_attempt): then say "
    "--attempt.",
    "unauthenticated": "`cairn login` saves a token for this service; a job gets one in CAIRN_TOKEN. "
    "`cairn-server token create NAME`, on the service's machine, makes one.",
    "scope-missing": "`cairn-server token create NAME --scope write`, on the service's machine, makes another token.",
    "project-forbidden": "`cairn-server token create NAME --project P`, on the service's machine, makes another token.",
}
WITHOUT_TOKEN = "No valid token was sent: there is none here, or the service does not know it (any more)."  # noqa: S105
SENTENCE_END = re.compile(r"(?<=[.;])\s+")
REQUEST = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE)\b")
NO_ID = "expected an id"
ARGUMENTS = {
    "/baseline": "BASELINE",
    "/candidate": "CANDIDATE",
    "/checkpoint_id": "--checkpoint",
    "/run_id": "--run",
    "/like": "--like",
    "/after": "--after",
    "/before": "--before",
    "/watch": "--watch",
}
PLAIN_HTTP = "It speaks plain HTTP there: give its URL with http://, or put something in front of it that speaks TLS."


def explain(error: CairnError) -> str:
    """The whole message, several lines: what happened, each refused value, what to do, how to find it again."""
    text = str(in_words(renamed(error, ARGUMENTS)))
    hint = HINTS.get(error.code) or (HINTS["unauthenticated"] if isinstance(error, Unauthenticated) else None)
    if any(NO_ID in each.message for each in error.errors):
        hint = CHECKPOINT_NAMES
    if "WRONG_VERSION_NUMBER" in text:
        hint = PLAIN_HTTP
    return text if hint is None else f"{text}\n  {hint}"


def in_a_line(error: CairnError) -> str:
    """For a log: what happened and what to do, without where it was asked."""
    hint = HINTS.get(error.code) or (HINTS["unauthenticated"] if isinstance(error, Unauthenticated) else "")
    return f"{in_words(error).detail} {hint}".strip()


def in_words(error: CairnError) -> CairnError:
    """`error` with a detail that makes sense at a shell; every other part as it was."""
    detail = WITHOUT_TOKEN if error.status == 401 and error.code == "unauthenticated" else without_api(error.detail)
    if len(error.errors) == 1 and error.errors[0].message.rstrip(".") in detail:
        return rewritten(error, detail, ())  # said once is enough
    return rewritten(error, detail, error.errors)


def without_api(text: str) -> str:
    """`text` without the sentences that tell which request to send."""
    parts = SENTENCE_END.split(text)
    kept = [part for part in parts if not REQUEST.match(part)]
    if not kept or len(kept) == len(parts):
        return text  # as it stands, with its line breaks
    said = " ".join(kept).removesuffix(";").removesuffix(".")
    return said if said.endswith("?") else f"{said}."


def rewritten(error: CairnError, detail: str, errors: tuple[FieldProblem, ...]) -> CairnError:
    """An error of the same kind with another text."""
    return type(error)(
        detail,
        status=error.status,
        code=error.code,
        title=error.title,
        errors=errors,
        retry_after=error.retry_after,
        request=error.request,
        extras=error.extras,
    )


def renamed(error: CairnError, names: dict[str, str]) -> CairnError:
    """`error` with its places (JSON pointers) called what the person wrote: `/loss` is `--loss`."""
    errors = tuple(replace(each, pointer=_name(each.pointer, names)) for each in error.errors)
    detail = error.detail
    for each in error.errors[:1]:
        detail = detail.replace(f"At {each.pointer}:", f"At {_name(each.pointer, names)}:")
    return rewritten(error, detail, errors)


def _name(pointer: str, names: dict[str, str]) -> str:
    known = next((name for name in names if pointer == name or pointer.startswith(f"{name}/")), None)
    return pointer if known is None else names[known] + pointer[len(known) :].replace("/", " ")
