"""Makes `registry/evals/references/pythia.csv` from the demonstration's tables: `python -m demo.extract_reference`.

One row a published checkpoint of the ten models, a column a benchmark and metric. The subjects of MMLU become their
mean by number of questions, as harnesses compute it. Interventions and repeated baselines are left out.
"""

import csv

from demo import pythia
from demo.reading import Body
from registry.evals.catalogue import catalogue
from registry.evals.references import FOLDER

METRICS = ("acc", "acc_norm", "ppl", "pct_stereotype")


def main() -> None:
    rows = list(_rows())
    columns = sorted({name for row in rows for name in row} - {"run", "parameters", "step"})
    with (FOLDER / "pythia.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["run", "parameters", "step", *columns], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _rows() -> list[dict[str, object]]:
    sizes = {row["run"]: row["parameter_count"] for row in pythia.run_rows() if not row["variant"]}
    found = []
    for body in pythia.checkpoints():
        if body["run"] in sizes:
            figures = _figures(body["scores"])
            found.append({"run": body["run"], "parameters": sizes[body["run"]], "step": body["step"], **figures})
    return found


def _figures(scores: list[Body]) -> dict[str, float]:
    found: dict[str, float] = {}
    parts: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for score in scores:
        row = catalogue().for_metric(score["benchmark"], score["metric"])
        if score["metric"] not in METRICS or row.capability is None:
            continue
        if row.part_of == "mmlu":
            parts.setdefault(("mmlu", score["metric"]), []).append((score["value"], row.sample_count or 1))
        elif row.part_of is None:
            found[f"{score['benchmark']}.{score['metric']}"] = round(score["value"], 4)
    for (name, metric), values in parts.items():
        total = sum(count for _, count in values)
        found[f"{name}.{metric}"] = round(sum(value * count for value, count in values) / total, 4)
    return found


if __name__ == "__main__":
    main()
