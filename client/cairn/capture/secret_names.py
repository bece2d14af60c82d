"""Under which names secrets stand.

`token` and `key` are also words of every tokenizer and attention layer: they count as names of secrets where they
end a name (`hf_token`, `api_key`) and the word before them is none of the harmless ones (`pad_token`, `sort_key`).
"""

import re
from itertools import pairwise

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
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


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
