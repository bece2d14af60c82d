"""What is found of one folder of a distributed checkpoint while it is read."""

import re
from dataclasses import dataclass, field

from cairn.formats.checkpoints.dcp_keys import Kind
from cairn.formats.checkpoints.dcp_metadata import DcpMetadata
from cairn.formats.checkpoints.shapes import Problem
from cairn.formats.checkpoints.source import Listing

SHARD = re.compile(r"__(?P<rank>\d+)_(?P<number>\d+)\.distcp")


@dataclass
class Part:
    """One folder with a `.metadata`: a whole checkpoint, or its model or optimizer (`optimizer_0/`)."""

    prefix: str
    listing: Listing
    metadata: DcpMetadata = field(default_factory=DcpMetadata)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    lost: dict[Kind, list[str]] = field(default_factory=dict)  # what each missing or cut file should hold
    understood: bool = False
    sound: bool = True

    def fault(self, path: str, reason: str) -> None:
        self.problems.append(Problem(self.prefix + path, reason))
        self.sound = False

    def shards(self) -> list[str]:
        return [path for path in self.listing if path.endswith(".distcp")]

    def ranks(self) -> set[int]:
        """Ranks that wrote, or that should have written."""
        names = (*self.shards(), *self.metadata.files)
        return {int(found["rank"]) for name in names if (found := SHARD.fullmatch(name.rpartition("/")[2]))}
