"""The web pages. `mount_pages` adds them to the application, after the API's routes and problem handlers."""

from fastapi import FastAPI

from ui import assets, problems
from ui.pages import (
    aliases,
    benchmarks,
    bisect,
    checkpoint,
    compare,
    find,
    findings,
    incidents,
    jobs,
    login,
    problem_kinds,
    provenance,
    records,
    rollback,
    run,
    runs,
    trackers,
)


def mount_pages(app: FastAPI) -> None:
    """Add every page, the static files, and problems as pages for browsers."""
    for page in (
        login,
        runs,
        run,
        checkpoint,
        find,
        compare,
        rollback,
        benchmarks,
        findings,
        aliases,
        incidents,
        trackers,
        jobs,
        problem_kinds,
        bisect,
        provenance,
        records,
    ):
        app.include_router(page.router)
    app.include_router(assets.router)
    problems.install(app)
