"""`make bench`: every benchmark, each printing JSON lines."""

from benchmarks import register, search, start

for benchmark in (start, register, search):
    benchmark.main()
