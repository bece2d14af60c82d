"""What the background needs, imported in parts with rests between them. A module that a fork interrupts stays half made
in the child, so that forks wait: for one part at most."""

import importlib
import threading

from cairn.pace import rest

MODULES = (
    *(
        "inspect",
        "locale",
        "email.parser",
        "email.utils",
        "encodings.idna",
        "ssl",
        "http.client",
        "pickle",
        "subprocess",
    ),
    *("urllib3.util.url", "urllib3.util", "urllib3.connection", "urllib3", "importlib.metadata", "cairn.errors"),
    *("cairn.types", "cairn.calls.evals", "cairn.transport", "cairn.client", "cairn.proxies", "cairn.identity"),
    *("cairn.replicas", "cairn.stores", "cairn.digests", "cairn.formats.checkpoints.shapes"),
    *("cairn.formats.checkpoints.dcp", "cairn.formats.checkpoints", "cairn.formats.checkpoints.words"),
    *("cairn.formats.checkpoints.cairn_json", "cairn.capture.trackers", "cairn.recorder.receipts"),
    *("cairn.spool.backlog", "cairn.spool.delivery"),
)


def preload(importing: threading.Lock) -> None:
    """`importing` is held for each part, and not while resting."""
    for name in MODULES:
        with importing:
            importlib.import_module(name)
        rest()
