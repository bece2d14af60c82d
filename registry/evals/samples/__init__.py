"""What checkpoints got on the single items of a benchmark, kept so that two of them can be compared item by item.

An item is known by the hashes of its document and its prompt. The items of a file are a sorted set of digests that
all checkpoints share; a checkpoint adds only its values, one bit an item where they are right or wrong: 14,042 items
of mmlu take 1.8 kB a checkpoint.
"""

from registry.evals.samples.keep import MAX_ITEMS, Sampled, keep_samples
from registry.evals.samples.read import SampleSet, Shared, sample_sets, shared_items

__all__ = ["MAX_ITEMS", "SampleSet", "Sampled", "Shared", "keep_samples", "sample_sets", "shared_items"]
