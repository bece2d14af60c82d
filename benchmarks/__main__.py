"""`make bench`: every benchmark, each printing JSON lines."""

from benchmarks import digests, evidence, recorder, register, rollback, scan, search, start, tracker_import

for benchmark in (start, register, search, digests, scan, recorder, evidence, rollback, tracker_import):
    benchmark.main()
