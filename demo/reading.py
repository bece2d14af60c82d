"""Reading the tables: rows of text, and cells of JSON put together again."""

import csv
import json
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "tables"
Row = dict[str, str]
Body = dict[str, Any]


def read_table(name: str) -> list[Row]:
    """The rows of a table by its path below the tables' folder, without `.csv`; every cell is text."""
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def nested(facts: dict[str, str]) -> Body:
    """Cells of JSON by dotted name as the config that they were before; empty cells were not set."""
    config: Body = {}
    for name, cell in facts.items():
        if cell:
            *above, last = name.split(".")
            inner = config
            for part in above:
                inner = inner.setdefault(part, {})
            inner[last] = json.loads(cell)
    return config
