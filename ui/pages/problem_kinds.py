"""What each error code means: the page behind the `type` of a problem document. It needs no token, tells no secret."""

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api.problems import status_of
from registry.errors import Conflict, Forbidden, Invalid, Malformed, NotFound, RegistryError, Unavailable, every_leaf
from ui.contexts import Answer
from ui.contexts.problems import ProblemKind, ProblemKindsContext
from ui.problem_meanings import MEANINGS
from ui.respond import show

router = APIRouter(include_in_schema=False)

# What an error says by its kind, where nothing more is said of its code. The first kind that fits counts.
KINDS: Final = (
    (NotFound, "What the address or a field names does not exist, or this token cannot see it."),
    (Conflict, "The request is fine by itself, but what is recorded already says otherwise. Nothing was changed."),
    (Malformed, "The request could not be read. The detail says where; nothing was changed."),
    (Invalid, "The request was read, and a value in it cannot be accepted; `errors` names each. Nothing was changed."),
    (Forbidden, "The token is known, and it may not do this."),
    (Unavailable, "The registry cannot answer just now. Send the same request again after Retry-After."),
)
# Answers of the web framework rather than of the registry.
OTHERS: Final = {
    "method-not-allowed": (405, "The address exists, and it is asked in another way. Allow names the methods."),
    "internal-error": (500, "A fault of the registry. Its log has the details; what it acknowledged before is kept."),
}


@router.get("/problems")
def problems_page() -> HTMLResponse:
    kinds = tuple(sorted(_kinds().values(), key=lambda kind: (kind.status, kind.code)))
    answer = Answer("What each error code means.")
    return show("problem_kinds.html", ProblemKindsContext(answer, None, kinds), title="Error codes")


@router.get("/problems/{code}")
def problem_kind_page(code: str) -> HTMLResponse:
    """One code; of an unknown one, that it is unknown, with the list of those that exist."""
    found = _kinds()
    kind = found.get(code)
    if kind is None:
        kinds = tuple(sorted(found.values(), key=lambda kind: kind.code))
        answer = Answer(f"There is no error code ‘{code[:60]}’.", "warn")
        page = ProblemKindsContext(answer, None, kinds)
        return show("problem_kinds.html", page, title="Unknown error code", status=HTTPStatus.NOT_FOUND)
    return show("problem_kinds.html", ProblemKindsContext(Answer(kind.title), kind, ()), title=kind.title)


def _kinds() -> dict[str, ProblemKind]:
    """Every code that this service can answer with, by code."""
    found = {
        code: ProblemKind(code, HTTPStatus(status).phrase, status, meaning, f"/problems/{code}")
        for code, (status, meaning) in OTHERS.items()
    }
    for leaf in every_leaf():
        found.setdefault(leaf.code, _kind(leaf))
    return found


def _kind(leaf: type[RegistryError]) -> ProblemKind:
    return ProblemKind(leaf.code, leaf.title, status_of(leaf), _meaning(leaf), f"/problems/{leaf.code}")


def _meaning(leaf: type[RegistryError]) -> str:
    """Its own docstring first, then the table, then what its kind says."""
    own = leaf.__dict__.get("__doc__")
    if own and leaf.code not in MEANINGS:
        return " ".join(own.split())
    by_kind = next((text for kind, text in KINDS if issubclass(leaf, kind)), "The registry refused this.")
    return MEANINGS.get(leaf.code, by_kind)
