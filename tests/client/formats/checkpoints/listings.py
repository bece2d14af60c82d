"""Folders as they were seen in public, for tests of recognition: of our own, and more where they are at hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parents[5] / "shared" / "data" / "ckpt_layout" / "observed_listings.jsonl"


def observed() -> list[dict[str, Any]]:
    """Empty where the collection is not at hand."""
    return [json.loads(line) for line in SHARED.read_text().splitlines()] if SHARED.exists() else []


def files_listed(listed: list[list[Any]], contents: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Files from (path, content): text as it is, an object as JSON, a size as so many zeros; folders are left out."""
    files = {}
    for path, content in listed:
        if contents and path in contents:
            files[path] = contents[path]
        elif isinstance(content, str):
            files[path] = content.encode()
        elif isinstance(content, dict):
            files[path] = json.dumps(content).encode()
        elif not path.endswith("/"):
            files[path] = bytes(min(content or 0, 100))
    return files
