"""Masks secrets before anything leaves the process: by the name that a value stands under, and by its own looks.

`token` and `key` are also words of every tokenizer and attention layer: they count as names of secrets where they
end a name (`hf_token`, `api_key`) and the word before them is none of the harmless ones (`pad_token`, `sort_key`).
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MASK = "***"

_ALWAYS = re.compile(
    r"passw(or)?d|passphrase|passcode|secret|credential|apikey|accesskey|privatekey|authtoken|accesstoken|webhookurl"
)
_WORDS = frozenset({"auth", "oauth", "authorization", "bearer", "cookie", "cookies", "pwd", "jwt", "dsn"})
_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("ssh", "key"), ("signing", "key"), ("encryption", "key")}
    | {("auth", "token"), ("access", "token"), ("api", "token"), ("bearer", "token"), ("refresh", "token")}
    | {("session", "token"), ("webhook", "url")}
)
# What stands before `token` and `key` in the words of models, data sets and databases.
_HARMLESS = frozenset(
    re.findall(
        r"\w+",
        """
    pad eos bos unk mask sep cls image audio video vision start end begin stop special system user assistant per
    each next last first new prompt think tool boi eoi eot eom sort primary foreign join group metric monitor query
    value attempt cache partition rng prng dict text label input output data dataset column state map config
    registry cross sorting idempotency routing index lookup single multi feature loss score bench sample id name
    batch target source field instruction response message messages role content chosen rejected answer question
    context attention head heads padding by num public
    """,
    )
)
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
_IN_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/@'\"]{1,500}@")
_IN_QUERY = re.compile(
    r"(?i)(?P<name>[?&](?:sig|signature|token|access_token|key|api_key|password|x-amz-(?:signature|credential|security-token)|"
    r"x-goog-(?:signature|credential))=)[^&\s'\"#]+"
)
_ASSIGNED = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,80})(?P<sep>\s*[=:]\s*)(?P<quote>['\"]?)(?P<value>[^\s'\",;]+)"
)
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_DEPTH = 64


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name must not leave the process."""
    words = [word.lower().rstrip("0123456789") for word in _SPLIT.split(name[:500]) if word]
    words = [word for word in words if word]
    if not words:
        return False
    if _ALWAYS.search("".join(words)) and _ALWAYS.search(re.sub(r"[^a-z]", "", name.lower())):
        return True
    if _WORDS & set(words) or any(pair in _PAIRS for pair in pairwise(words)):
        return True
    return words[-1] in ("token", "key") and (len(words) == 1 or words[-2] not in _HARMLESS)


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
    """For lines of a log: also `password=...` and `HF_TOKEN: ...`."""

    def assigned(found: "re.Match[str]") -> str:
        if not is_secret_name(found["name"]) or found["value"].lower() in ("none", "null", "true", "false"):
            return found[0]
        return f"{found['name']}{found['sep']}{found['quote']}{MASK}"

    return mask_text(_ASSIGNED.sub(assigned, text))


def mask_command(arguments: Sequence[str]) -> list[str]:
    """A command line with `--api-key x`, `--api-key=x` and `HF_TOKEN=x` masked."""
    masked: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if hide_next and not argument.startswith("-"):
            masked.append(MASK)
        elif equals and is_secret_name(name.lstrip("-")):
            masked.append(f"{name}={MASK}")
        else:
            masked.append(mask_text(argument))
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
