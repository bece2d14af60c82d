"""Writes `.wandb` files record by record, with the library's own messages: what no short training would leave."""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.formats.wandb_offline.frames import BLOCK_BYTES, MAGIC

CHUNK = struct.Struct("<IHB")


class Writing:
    """A run that is being written: each call adds records, `save` puts them on disk."""

    def __init__(self, run_id: str = "abcd1234", *, started_at: int = 1_795_000_000, **fields: Any) -> None:
        from wandb.proto import wandb_internal_pb2 as pb

        self._pb = pb
        self.content = bytearray(MAGIC + b"\0")
        record = pb.Record()
        record.run.run_id = run_id
        record.run.start_time.seconds = started_at
        for name, value in {"entity": "team", "project": "llm", "display_name": "tiny", **fields}.items():
            if isinstance(value, (list, tuple)):
                getattr(record.run, name).extend(value)
            else:
                setattr(record.run, name, value)
        self.run_record = record
        self.add(record)

    def add(self, record: Any) -> None:
        self.add_bytes(record.SerializeToString())

    def add_bytes(self, data: bytes) -> None:
        """One record, over as many blocks as it takes."""
        first = True
        while True:
            left = BLOCK_BYTES - len(self.content) % BLOCK_BYTES
            if left < CHUNK.size:
                self.content += bytes(left)
                continue
            part, data = data[: left - CHUNK.size], data[left - CHUNK.size :]
            kind = (1 if first else 4) if not data else (2 if first else 3)
            self.content += CHUNK.pack(zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
            if not data:
                return

    def log(self, index: int, values: Mapping[str, Any], *, at: float | None = None) -> None:
        record = self._pb.Record()
        inner = {"_step": index, "_timestamp": 1_795_000_000.0 + index if at is None else at}
        for name, value in {**values, **inner}.items():
            item = record.history.item.add()
            item.nested_key.append(name)
            item.value_json = json.dumps(value)
        self.add(record)

    def config(self, **values: Any) -> None:
        record = self._pb.Record()
        for name, value in values.items():
            record.config.update.add(key=name, value_json=json.dumps(value))
        self.add(record)

    def metric(self, name: str, step_metric: str) -> None:
        record = self._pb.Record()
        record.metric.glob_name, record.metric.step_metric = name, step_metric
        self.add(record)

    def artifact(
        self,
        name: str,
        *,
        aliases: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        refs: Mapping[str, str] | None = None,
        digest: str = "",
        type: str = "model",
    ) -> None:
        record = self._pb.Record()
        artifact = record.artifact
        artifact.name, artifact.type, artifact.digest = name, type, digest or name
        artifact.metadata = json.dumps(metadata or {})
        artifact.aliases.extend(aliases)
        for path, ref in (refs or {}).items():
            artifact.manifest.contents.add(path=path, ref=ref, size=100)
        self.add(record)

    def exit(self, code: int = 0) -> None:
        record = self._pb.Record()
        record.exit.exit_code = code
        self.add(record)

    def save(self, folder: Path) -> Path:
        path = folder / f"run-{self.run_record.run.run_id}.wandb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content)
        return path
