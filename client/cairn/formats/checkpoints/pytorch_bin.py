"""A model as Hugging Face's libraries wrote it before safetensors: `pytorch_model.bin`, or its shards and index."""

import re

from cairn.formats.checkpoints import torch_files
from cairn.formats.checkpoints.shapes import Inspection
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.torch_weights import INDEX, read_weights
from cairn.formats.checkpoints.weights_alone import describe_weights

NAME = "pytorch-bin"
LOOKS_FOR = "pytorch_model.bin that torch.save wrote, or pytorch_model.bin.index.json"
_MODEL = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin")


def matches(listing: Listing) -> bool:
    files = _files(listing)
    return INDEX in listing or any(torch_files.looks_so(listing, path) for path in files[:2])


def _files(listing: Listing) -> list[str]:
    return [path for path in listing.top() if _MODEL.fullmatch(path)]


def read(listing: Listing) -> Inspection:
    found = read_weights(listing, [] if INDEX in listing else _files(listing))
    return describe_weights(listing, NAME, found)
