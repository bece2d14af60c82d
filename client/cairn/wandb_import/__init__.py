"""Brings runs from W&B's offline folders into the registry, without W&B's cloud.

    report = import_folder(client, "wandb/", project="llm")

Safe to run again, also while the run is still being written: what is recorded already stays as it is, and only what
is new is added. Each folder is one attempt of its run; a run that a training recorded here itself is joined.
"""

from cairn.wandb_import.gather import Gathered, Saved, gather
from cairn.wandb_import.report import FileReport, Skipped
from cairn.wandb_import.send import import_file, import_folder

__all__ = ["FileReport", "Gathered", "Saved", "Skipped", "gather", "import_file", "import_folder"]
