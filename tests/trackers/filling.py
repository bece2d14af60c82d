"""Many runs and models at once, written into the store of a server that made its tables, as years of training would.

Through the server's own calls a hundred thousand models would take an hour; what reads them sees no difference.
"""

import sqlite3
import uuid
from pathlib import Path


def fill(store: Path, *, experiment: str, runs: int, models: int, points: int = 200) -> None:
    """An experiment of so many runs with so many models each, one curve of `points`, and one score a model."""
    connection = sqlite3.connect(store)
    with connection:
        made = connection.execute(
            "INSERT INTO experiments (name, artifact_location, lifecycle_stage, creation_time, last_update_time)"
            " VALUES (?, 'mlflow-artifacts:/full', 'active', 1, 1)",
            (experiment,),
        )
        number = int(made.lastrowid or 0)
        for at in range(runs):
            _run(connection, number, f"run-{at:04}", 1_700_000_000_000 + at, models, points)
    connection.close()


def _run(connection: sqlite3.Connection, experiment: int, name: str, start: int, models: int, points: int) -> None:
    run_id = uuid.uuid4().hex
    place = f"mlflow-artifacts:/{experiment}/{run_id}/artifacts"
    connection.execute(
        "INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,"
        " end_time, source_version, lifecycle_stage, artifact_uri, experiment_id)"
        " VALUES (?, ?, 'UNKNOWN', '', '', 'jane', 'FINISHED', ?, ?, '', 'active', ?, ?)",
        (run_id, name, start, start + 9_000_000, place, experiment),
    )
    params = [(f"group{at % 4}.param{at}", str(at / 7), run_id) for at in range(20)]
    connection.executemany("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)", params)
    connection.execute("INSERT INTO tags (key, value, run_uuid) VALUES ('mlflow.runName', ?, ?)", (name, run_id))
    gap = max(1, points // models)
    curve = [("loss", 3.0 / step, start + step, run_id, step, 0) for step in range(1, points + 1)]
    steps = [at * gap for at in range(1, models + 1)]
    scores = [("gsm8k", step / 1_000, start + step, run_id, step, 0) for step in steps]
    sql = "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)"
    connection.executemany(sql, curve + scores)
    sql = "INSERT INTO latest_metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)"
    connection.executemany(sql, [curve[-1], scores[-1]])
    ids = [f"m-{uuid.uuid4().hex}" for _ in steps]
    connection.executemany(
        "INSERT INTO logged_models (model_id, experiment_id, name, artifact_location, creation_timestamp_ms,"
        " last_updated_timestamp_ms, status, lifecycle_stage, model_type, source_run_id)"
        " VALUES (?, ?, ?, ?, ?, ?, 2, 'active', '', ?)",
        [
            (ids[at], experiment, f"checkpoint-{step}", f"{place}/{ids[at]}", start + step, start + step, run_id)
            for at, step in enumerate(steps)
        ],
    )
    connection.executemany(
        "INSERT INTO logged_model_metrics (model_id, metric_name, metric_timestamp_ms, metric_step, metric_value,"
        " experiment_id, run_id) VALUES (?, 'gsm8k', ?, ?, ?, ?, ?)",
        [(ids[at], start + step, step, step / 1_000, experiment, run_id) for at, step in enumerate(steps)],
    )
    connection.executemany(
        "INSERT INTO inputs (input_uuid, source_type, source_id, destination_type, destination_id, step)"
        " VALUES (?, 'RUN_OUTPUT', ?, 'MODEL_OUTPUT', ?, ?)",
        [(uuid.uuid4().hex, run_id, ids[at], step) for at, step in enumerate(steps)],
    )
