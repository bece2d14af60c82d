"""Make the tables of the demonstration from copies of what the two projects published.

    python -m demo.extract SOURCE [--into FOLDER]

SOURCE holds two folders, `pythia` (evaluation figures by series, training configs) and `dclm` (the files of
`exp_data`: models, evals, datasets). The tables are rewritten below FOLDER, by default `demo/tables`; from
the same source they come out the same, byte for byte. The demonstration itself reads only the tables, so
this is run again only when the figures or the tables' form should change. `README.md` beside this file says
what was kept, what was left out, and what was computed.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from demo import extract_dclm, extract_pythia
from demo.reading import TABLES


def extract(source: Path, into: Path) -> list[Path]:
    """Write every table below `into`; returns their paths. Raises FileNotFoundError for a missing folder."""
    written = []
    for family, tables in (("pythia", extract_pythia.tables), ("dclm", extract_dclm.tables)):
        folder = source / family
        if not folder.is_dir():
            raise FileNotFoundError(f"{source} holds no folder {family!r}; give the folder above it.")
        for name, rows in tables(folder):
            written.append(write_table(into / family / f"{name}.csv", rows))
    return written


def write_table(path: Path, rows: Iterable[Mapping[str, str]]) -> Path:
    """One CSV file with a header; the columns are those of all rows, in the order in which they first occur."""
    rows = list(rows)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.extract", description="Make the demonstration's tables.")
    parser.add_argument("source", type=Path, help="the folder that holds `pythia` and `dclm`")
    parser.add_argument("--into", type=Path, default=TABLES, help="where the tables go (default: demo/tables)")
    chosen = parser.parse_args(arguments)
    for path in extract(chosen.source, chosen.into):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
