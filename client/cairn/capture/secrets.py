"""Masks secrets before anything leaves the process: by the name that a value stands under, and by its own looks."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cairn.capture.secret_names import is_secret_name

MASK = "***"

_LOOKS = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bhf_[A-Za-z0-9]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}"
    r"|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\bwandb_v\d_[A-Za-z0-9_]{16,}"
    r"|\bcairn_[A-Za-z0-9_-]{30,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{40,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)",
    re.DOTALL,
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{12,}")
# Up to the last @ before a slash; a password may hold a slash too, but `host:8400/run@2` is none.
_IN_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)(?:[^\s/'\"]{1,500}|[^\s/@:'\"]{1,64}:(?!\d+/)[^\s@'\"]{1,100})@"
)
_IN_QUERY = re.compile(
    r"(?i)(?P<name>[?&](?:sig|signature|token|access_token|key|api_key|password|x-amz-(?:signature|credential|security-token)|"
    r"x-goog-(?:signature|credential))=)[^&\s'\"#]+"
)
# `HF_TOKEN=x`, `password: x`, `'api_key': 'x'`, `os.environ["HF_TOKEN"] = "x"`, `Authorization: token x`.
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,80})\\?['\"]?\]?\s*(?:=>|[=:])\s*")
_VALUE = re.compile(
    r"(?i)\\(?P<mark>['\"])(?P<escaped>.+?)(?=\\(?P=mark)|$)"
    r"|(?P<quote>['\"])(?P<quoted>(?:\\.|(?!(?P=quote)).)+)"
    r"|(?:(?:bearer|basic|token|digest)\s+)?(?P<bare>[^\s'\",;]+)"
)
# `--password x` within one text, as a shell's or a log's.
_FLAG = re.compile(r"(?<!\S)(?P<name>--?[A-Za-z][A-Za-z0-9_-]{0,80})(?P<sep>\s+['\"]?)(?P<value>[^\s'\"-][^\s'\"]*)")
_PLAIN = re.compile(r"(?i)none|null|true|false|-?\d{1,3}|-?\d*\.\d*(?:e[+-]?\d+)?")
MAX_DEPTH = 64


def mask_text(text: str) -> str:
    """The text with everything masked that looks like a secret: known prefixes, `user:password@`, signed addresses."""
    if len(text) < 8:
        return text
    text = _LOOKS.sub(MASK, text)
    text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
    if "://" in text:
        text = _IN_URL.sub(lambda found: f"{found['scheme']}{MASK}@", text)
        text = _IN_QUERY.sub(lambda found: f"{found['name']}{MASK}", text)
    return text


def mask_log(text: str) -> str:
    """For a line of a log or of a shell: also `password=...`, `'hf_token': '...'`, `--api-key ...`."""
    return mask_text(_FLAG.sub(_flagged, _mask_assigned(text)))


def _mask_assigned(text: str) -> str:
    """A value under a harmless name is read on: it may be an assignment itself (`args: token=x`)."""
    kept, at, after = [], 0, 0
    while (name := _ASSIGNED.search(text, at)) is not None:
        at = name.end()
        if not is_secret_name(name[1]) or (value := _VALUE.match(text, at)) is None:
            continue
        which = next(each for each in ("escaped", "quoted", "bare") if value[each] is not None)
        if not _PLAIN.fullmatch(value[which].rstrip(")}]")):
            kept += [text[after : value.start(which)], MASK]
            at = after = value.end(which)
    return "".join([*kept, text[after:]])


def _flagged(found: "re.Match[str]") -> str:
    return f"{found['name']}{found['sep']}{MASK}" if is_secret_name(found["name"]) else found[0]


def mask_command(arguments: Sequence[str]) -> list[str]:
    """A command line with `--api-key x`, `--api-key=x` and `HF_TOKEN=x` masked, also inside of `bash -c '...'`."""
    masked: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if hide_next and not argument.startswith("-"):
            masked.append(MASK)
        elif equals and is_secret_name(name.lstrip("-")):
            masked.append(f"{name}={MASK}")
        else:
            masked.append(mask_log(argument))
        hide_next = argument.startswith("-") and not equals and is_secret_name(argument.lstrip("-"))
    return masked


def mask(value: Any, name: str = "") -> Any:
    """Plain JSON with every secret masked, at any depth. Numbers and flags stay, but not a password of digits."""
    return _masked(value, bool(name) and is_secret_name(name), 0)


def _masked(value: Any, secret: bool, depth: int) -> Any:
    if isinstance(value, str):
        return (MASK if value else value) if secret else mask_text(value)
    if depth > MAX_DEPTH:
        return MASK
    if isinstance(value, Mapping):
        return {key: _masked(each, secret or is_secret_name(str(key)), depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        if not secret and value and all(isinstance(each, str) for each in value):
            return mask_command(value)
        return [_masked(each, secret, depth + 1) for each in value]
    if secret and isinstance(value, int) and not isinstance(value, bool) and abs(value) > 999:
        return MASK
    return value
