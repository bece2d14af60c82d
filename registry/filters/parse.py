"""Text -> syntax tree. Says nothing yet about whether a field exists or a value fits it: see `check`."""

from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput

from registry.filters import syntax
from registry.filters.errors import InvalidFilter
from registry.types import INT64_MAX

MAX_LENGTH = 10_000  # characters
MAX_DEPTH = 20  # and, or and not inside each other: SQLite's own parser gives up soon after (100 stack entries)
MAX_TERMS = 200
MAX_VALUES = 1_000  # of one list after `in`
MAX_ORDER_KEYS = 8

# What the parser's terminals are called in an error, in the order in which they are listed there.
_WORDS = {
    "FIRST_NAME": "a field name",
    "NAME": "a name",
    "QUOTED_NAME": "a name in backticks",
    "NOT": "'not'",
    "OPERATOR": "a comparison (= != < <= > >=)",
    "IN": "'in'",
    "LIKE": "'like'",
    "ILIKE": "'ilike'",
    "BETWEEN": "'between'",
    "IS": "'is'",
    "NULL": "'null'",
    "NAN": "'nan'",
    "NUMBER": "a number",
    "STRING": "text in quotes",
    "TRUE": "'true'",
    "FALSE": "'false'",
    "DOT": "'.'",
    "COMMA": "','",
    "LPAR": "'('",
    "RPAR": "')'",
    "AND": "'and'",
    "OR": "'or'",
    "ASC": "'asc'",
    "DESC": "'desc'",
    "$END": "the end",
}


def read_filter(text: str) -> syntax.Node | None:
    """The tree of a filter, or None for an empty one. Raises InvalidFilter with the place of the mistake."""
    _refuse_oversized(text, MAX_LENGTH)
    if not text.strip():
        return None
    node: syntax.Node = _read(text, "filter")
    _refuse_deep(node, text)
    return node


def read_order(text: str, most: int = MAX_ORDER_KEYS) -> tuple[syntax.OrderKey, ...]:
    """The keys of `scores.gsm8k desc, step`; none for an empty text."""
    _refuse_oversized(text, MAX_LENGTH)
    if not text.strip():
        return ()
    keys: tuple[syntax.OrderKey, ...] = _read(text, "order")
    if len(keys) > most:
        raise InvalidFilter(f"more than {most} fields", text, keys[most].field.place(), ["the end"])
    return keys


def _read(text: str, start: str) -> Any:
    _refuse_unwritable(text)
    try:
        return _grammar().parse(text, start=start)
    except UnexpectedInput as error:
        raise _explained(error, text) from None
    except _Refused as refused:
        raise InvalidFilter(refused.problem, text, refused.place, refused.expected) from None


def _refuse_oversized(text: str, most: int) -> None:
    if len(text) > most:
        raise InvalidFilter(f"the text has {len(text)} characters", text, most, [f"at most {most}"])


def _refuse_unwritable(text: str) -> None:
    """NUL and lone surrogates can be in no stored text, and PostgreSQL takes neither as a parameter."""
    for place, letter in enumerate(text):
        if letter == "\0" or "\ud800" <= letter <= "\udfff":
            name = "a NUL character" if letter == "\0" else "a lone surrogate"
            raise InvalidFilter(f"{name} cannot be part of a text", text, place, ["another character"])


def _refuse_deep(node: syntax.Node, text: str) -> None:
    """Walks without recursion: the tree can still be thousands deep here."""
    todo: list[tuple[syntax.Node, int]] = [(node, 0)]
    terms = 0
    while todo:
        node, depth = todo.pop()
        match node:
            case syntax.And(parts) | syntax.Or(parts):
                todo.extend((part, depth + 1) for part in reversed(parts))
            case syntax.Not(part):
                todo.append((part, depth + 1))
            case term:
                terms += 1
                if depth > MAX_DEPTH:
                    limit = f"at most {MAX_DEPTH} levels of and, or and not"
                    raise InvalidFilter("nested too deep", text, term.field.place(), [limit])
                if terms > MAX_TERMS:
                    raise InvalidFilter("too many terms", text, term.field.place(), [f"at most {MAX_TERMS}"])


def _explained(error: UnexpectedInput, text: str) -> InvalidFilter:
    """The parser's complaint in words. What its state accepts is exact, unlike the lexer's own list."""
    state: Any = error
    accepted: set[str] = set(state.interactive_parser.accepts())
    if accepted & {"RPAR", "$END"} and "COMMA" not in accepted and "DESC" not in accepted:
        accepted |= {"AND", "OR"}  # a whole condition stands before: the parser has just closed it
    expected = [words for terminal, words in _WORDS.items() if terminal in accepted]
    token = getattr(error, "token", None)
    place = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    if token is not None and token.type == "$END":
        return InvalidFilter("the text ends too early", text, len(text), expected)
    if text[place] in "'\"`" and text.count(text[place], place) % 2:
        return InvalidFilter("a quote is opened and never closed", text, place, [f"a closing {text[place]}"])
    found = str(token) if token is not None else text[place]
    asked_for = {"nan": "NaN is asked for with 'is nan'.", "null": "What is missing is asked for with 'is null'."}
    hint = asked_for.get(found.lower(), "") if "NUMBER" in accepted else ""
    return InvalidFilter(f"{found[:40]!r} cannot stand here", text, place, expected, hint=hint)


class _Refused(Exception):
    """A well-formed token whose value is refused."""

    def __init__(self, problem: str, place: int, expected: str) -> None:
        super().__init__(problem)
        self.problem, self.place, self.expected = problem, place, [expected]


class _Builder(Transformer[Token, Any]):
    """Called by the parser at each reduction, so no tree is built and nothing recurses."""

    def filter(self, parts: list[Any]) -> Any:
        return parts[0]

    def order(self, parts: list[Any]) -> Any:
        return tuple(parts)

    def key(self, parts: list[Any]) -> Any:
        return syntax.OrderKey(parts[0], parts[1] is not None and parts[1].type == "DESC")

    def disjunction(self, parts: list[Any]) -> Any:
        return syntax.disjunction(parts[::2])

    def conjunction(self, parts: list[Any]) -> Any:
        return syntax.conjunction(parts[::2])

    def inverse(self, parts: list[Any]) -> Any:
        return syntax.Not(parts[1])

    def flag(self, parts: list[Any]) -> Any:
        return syntax.Flag(parts[0])

    def comparison(self, parts: list[Any]) -> Any:
        field, sign, value = parts
        return syntax.Comparison(field, syntax.Operator("!=" if sign == "<>" else str(sign)), value, sign.start_pos)

    def membership(self, parts: list[Any]) -> Any:
        field, negated, _, *values = parts
        if len(values) > MAX_VALUES:
            raise _Refused("the list is too long", values[MAX_VALUES].place, f"at most {MAX_VALUES} values")
        return syntax.Membership(field, tuple(values), negated is not None)

    def between(self, parts: list[Any]) -> Any:
        field, negated, word, low, _, high = parts
        return syntax.Between(field, low, high, negated is not None, word.start_pos)

    def like(self, parts: list[Any]) -> Any:
        field, negated, word, pattern = parts
        literal = syntax.Literal(_unquoted(pattern), pattern.start_pos)
        return syntax.Like(field, literal, word.type == "ILIKE", negated is not None, word.start_pos)

    def is_null(self, parts: list[Any]) -> Any:
        return syntax.IsNull(parts[0], parts[2] is not None)

    def is_nan(self, parts: list[Any]) -> Any:
        return syntax.IsNan(parts[0], parts[2] is not None, parts[1].start_pos)

    def field(self, parts: list[Any]) -> Any:
        names = tuple(_unquoted(part) if part.type == "QUOTED_NAME" else str(part) for part in parts)
        return syntax.Field(names, tuple(part.start_pos for part in parts))

    def value(self, parts: list[Any]) -> Any:
        (token,) = parts
        match token.type:
            case "NUMBER":
                return syntax.Literal(_number(token), token.start_pos)
            case "STRING":
                return syntax.Literal(_unquoted(token), token.start_pos)
            case _:
                return syntax.Literal(token.type == "TRUE", token.start_pos)


def _unquoted(token: Token) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def _number(token: Token) -> int | float:
    digits = token.lstrip("+-").lstrip("0")
    if not digits or digits.isdecimal():
        if len(digits) > 19 or int(digits or "0") > INT64_MAX:
            raise _Refused("the number is too large", token.start_pos or 0, "a whole number of at most 64 bits")
        return -int(digits or "0") if token.startswith("-") else int(digits or "0")
    number = float(token)
    if number in (float("inf"), float("-inf")):
        raise _Refused("the number is too large", token.start_pos or 0, "a finite number")
    return number


@cache
def _grammar() -> Lark:
    """Built on first use, once: 15 ms that a process which reads no filter need not pay."""
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer="contextual",
        start=["filter", "order"],
        maybe_placeholders=True,
        transformer=_Builder(),
    )
