"""Records on disk until the service has acknowledged them.

Each process writes one folder below one root (`places`), under a lease (`lease`), one checksummed line a record
(`frames`, `writer`). `backlog` reads what is not acknowledged yet, `delivery` sends it, `sending` is the thread that
does so; what a dead process left is adopted by whoever comes next. What the service refuses goes to `refused`.
"""
