"""The tables that filters read, as Core tables: a statement built from them costs half of one from mapped classes."""

from typing import Any

from registry import models


def _table(model: Any) -> Any:
    return model.__table__


attempt = _table(models.Attempt)
benchmark = _table(models.Benchmark)
checkpoint = _table(models.Checkpoint)
checkpoint_metric = _table(models.CheckpointMetric)
checkpoint_tag = _table(models.CheckpointTag)
code_version = _table(models.CodeVersion)
config_entry = _table(models.ConfigEntry)
current_score = _table(models.CurrentScore)
data_version = _table(models.DataVersion)
layout = _table(models.Layout)
piece = _table(models.Piece)
project = _table(models.Project)
replica = _table(models.Replica)
run = _table(models.Run)
run_tag = _table(models.RunTag)
score_metric = _table(models.ScoreMetric)
