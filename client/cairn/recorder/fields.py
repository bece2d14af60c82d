"""What a script says in short, in the long form that the service takes."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from cairn.capture.secrets import mask_text
from cairn.numbers import number_to_wire
from cairn.recorder.names import curve_name
from cairn.recorder.plain import Plain, number, text
from cairn.score_names import score_name

LeftOut = Callable[[Sequence[str]], None]
TAG_CHARACTERS = 4_096
_NUMBERS = ("value", "stderr")


def score_records(scores: Any, left_out: LeftOut) -> list[dict[str, Any]]:
    """`{"gsm8k": 0.61}`, `{"gsm8k.exact_match": {"value": ..., "stderr": ...}}` or a list of results, as a list."""
    if isinstance(scores, Mapping):
        given = [{**score_name(text(str(name))), **_valued(value)} for name, value in scores.items()]
    else:
        given = [dict(each) if isinstance(each, Mapping) else {} for each in scores]
    said = []
    for each in given:
        plain = Plain()
        found = {str(name): plain.of(value, str(name)) for name, value in each.items() if value is not None}
        found |= {name: number_to_wire(number(each[name])) for name in _NUMBERS if each.get(name) is not None}
        found["benchmark"] = curve_name(found.get("benchmark") or "")
        if found.get("value") is None or not found["benchmark"]:
            left_out([f"the score {each.get('benchmark', '?')}"])
            continue
        if found.get("stderr") is None or isinstance(found.get("stderr"), str):
            found.pop("stderr", None)
        said.append(found)
    return said


def tag_texts(tags: Any) -> dict[str, str]:
    """Tags are texts: a number or a flag becomes one."""
    if not isinstance(tags, Mapping):
        return {}
    said = {curve_name(name): value if isinstance(value, str) else json.dumps(value) for name, value in tags.items()}
    return {name: value[:TAG_CHARACTERS] for name, value in said.items() if name}


def data_version(data: Any) -> Any:
    """A name; `{name, mix, uri}`; or only a mix (a weight per source), which is then named by its digest."""
    if not isinstance(data, Mapping):
        return mask_text(text(str(data)))[:512]
    said = _masked(Plain().of(data))
    if "name" in said:
        return said
    mix = {name: _share(value) for name, value in said.items()}
    mix = {name: value for name, value in mix.items() if value is not None}
    canonical = json.dumps(mix, sort_keys=True, separators=(",", ":"))
    return {"name": f"mix-{sha256(canonical.encode()).hexdigest()[:12]}", "mix": mix}


def _masked(value: Any) -> Any:
    """Sources are often named by their addresses. By its looks only: `token` may be the name of a source."""
    if isinstance(value, Mapping):
        return {mask_text(name): _masked(each) for name, each in value.items()}
    return mask_text(value) if isinstance(value, str) else value


def _share(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: value[name] for name in ("weight", "tokens") if value.get(name) is not None}
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 else None


def _valued(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {"value": value}
