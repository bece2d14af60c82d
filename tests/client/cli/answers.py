"""What the service is made to answer in tests of the command line."""

from typing import Any

CHECKPOINT: dict[str, Any] = {
    "id": "0c1",
    "project": "llm",
    "run": {"id": "0r1", "name": "7b-a"},
    "attempt": 2,
    "step": 41200,
    "kind": "archive",
    "saved_at": "2026-11-01T00:00:00Z",
}
PAGE: dict[str, Any] = {
    "items": [{"checkpoint": CHECKPOINT, "loss": "NaN", "values": {"scores.gsm8k": 0.25}}],
    "next_cursor": None,
}
EMPTY: dict[str, Any] = {"items": [], "next_cursor": None}
PROBLEM = {"Content-Type": "application/problem+json"}
