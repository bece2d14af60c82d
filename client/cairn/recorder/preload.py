"""What the background needs, imported at one time: a module that a fork interrupts stays half made in the child."""

import importlib

MODULES = (
    *("urllib3", "urllib3.connection", "http.client", "email.utils", "encodings.idna", "ssl", "pickle", "subprocess"),
    *("cairn.client", "cairn.transport", "cairn.proxies", "cairn.identity", "cairn.replicas", "cairn.stores"),
    *("cairn.digests", "cairn.formats.checkpoints", "cairn.formats.checkpoints.words", "cairn.capture.trackers"),
    *("cairn.formats.checkpoints.cairn_json", "cairn.recorder.receipts", "importlib.metadata"),
)


def preload() -> None:
    for name in MODULES:
        importlib.import_module(name)
