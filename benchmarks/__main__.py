"""`make bench`: every benchmark, each printing JSON lines."""

from benchmarks import digests, register, scan, search, start

for benchmark in (start, register, search, digests, scan):
    benchmark.main()
