"""Which way imports point: read with `ast`, so that an import inside a function counts like any other."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("api", "benchmarks", "cairn", "demo", "migrations", "registry", "tests", "ui")
FOLDERS = {"cairn": ROOT / "client" / "cairn"} | {
    name: ROOT / name for name in ("api", "demo", "migrations", "registry", "ui")
}

# From which of our top-level packages each may import, and which modules of them: () means all.
ALLOWED: dict[str, dict[str, tuple[str, ...]]] = {
    "registry": {"cairn": ("cairn.formats",)},
    # The pages share the session, the settings, the cookie, and which status an error has; never routes or shapes.
    "ui": {"registry": (), "api": ("api.deps", "api.problems")},
    # `api.main` mounts the pages; `cairn-server` loads the demonstration and migrates; readiness compares schemas.
    "api": {"registry": (), "ui": ("ui.pages",), "migrations": (), "demo": ("demo.load",)},
    "migrations": {"registry": ("registry.models", "registry.db")},
    # The demonstration is sent in the words of the API, so that its tables are checked like any request.
    "demo": {"registry": (), "api": ("api.schemas",)},
    "cairn": {},
}

# The rooms of the domain, the lowest first: a room imports from those before it.
LAYERS = (
    "errors json_places known_ids names sqlite_file types wording",
    "config db ids layout strict_json",
    "keyset models",
    "array_literals",
    "many_ids",
    "array_inserts grouped_inserts",
    "together",
    "upsert",
    "changes",
    "audit backup outbox projects snapshots watching",
    "jobs",
    "runs tokens",
    "live_path resume_points",
    "incidents",
    "attempts",
    "series trackers",
    "filters",
    "checkpoints",
    "aliases evals lineage overview storage",
    "provenance search",
    "recovery",
    "watches",
    "integrations",
    "health",
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms.split()}

# Imports that point upwards, each for a reason. All are of modules that import nothing back (see the test of circles).
UPWARDS = {
    ("runs", "registry.trackers.links"): "a tracker's address is kept without a password",
    ("filters", "registry.evals.project_table"): "a project's benchmark table knows a benchmark's first metric",
    ("filters", "registry.evals.scales"): "and what its scale can hold",
    ("filters", "registry.evals.catalogue"): "the shipped table says which capabilities there are",
    ("checkpoints", "registry.evals.scores"): "a registration carries scores",
    ("checkpoints", "registry.evals.score_series"): "and they have series",
    ("checkpoints", "registry.evals.copies"): "a registration names what it was converted from, whose scores it shares",
    ("checkpoints", "registry.lineage"): "a registration names parents",
    ("checkpoints", "registry.storage.roots"): "a copy below a storage root is managed",
    ("checkpoints", "registry.aliases"): "everything that is known about a checkpoint includes its aliases",
}


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str  # the module, or a name within it
    place: str


def modules(package: str) -> dict[str, Path]:
    """Module name to file."""
    folder = FOLDERS[package]
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, place)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield Import(module, f"{source}.{alias.name}", place)


@cache
def every_import(package: str) -> tuple[Import, ...]:
    return tuple(each for module, path in modules(package).items() for each in imports_of(module, path))


def is_below(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def test_the_reader_sees_lazy_and_relative_imports(tmp_path: Path) -> None:
    path = ROOT / "tests" / "registry" / "__init__.py"
    assert list(imports_of("tests.registry", path)) == []
    lazy = [each for each in every_import("api") if each.imported == "demo.load.load_demo"]
    assert [each.place.partition(":")[0] for each in lazy] == ["api/server.py"]
    assert len(every_import("registry")) > 500


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_it_may(package: str) -> None:
    allowed = ALLOWED[package]
    refused = []
    for each in every_import(package):
        top = each.imported.partition(".")[0]
        if top in OURS and top != package:
            parts = allowed.get(top)
            if parts is None or (parts and not any(is_below(each.imported, part) for part in parts)):
                refused.append(f"{each.place} imports {each.imported}")
    assert refused == []


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_every_permission_is_used(package: str) -> None:
    """A permission that nobody needs any more would let the next fault through."""
    used = [each.imported for each in every_import(package)]
    unused = [
        f"{package} -> {part}"
        for top, parts in ALLOWED[package].items()
        for part in parts or (top,)
        if not any(is_below(name, part) for name in used)
    ]
    assert unused == []


@pytest.mark.parametrize("package", ["registry", "migrations", "cairn", "demo"])
def test_nothing_below_the_edge_knows_the_web_framework(package: str) -> None:
    edge = ("fastapi", "starlette", "uvicorn", "jinja2")
    assert [each for each in every_import(package) if each.imported.partition(".")[0] in edge] == []


def test_only_the_standard_library_is_needed_to_read_files() -> None:
    foreign = [
        each.place
        for each in every_import("cairn")
        if is_below(each.importer, "cairn.formats")
        and each.imported.partition(".")[0] not in sys.stdlib_module_names
        and not is_below(each.imported, "cairn.formats")
        and not is_below(each.imported, "cairn.numbers")  # how NaN is written, which needs nothing either
    ]
    assert foreign == []


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_room_of_the_domain_has_its_layer() -> None:
    rooms = {room_of(module) for module in modules("registry")} - {""}
    assert rooms == set(RANK)


def test_rooms_of_the_domain_import_downwards() -> None:
    upwards = []
    for each in every_import("registry"):
        if not is_below(each.imported, "registry"):
            continue
        room, other = room_of(each.importer), room_of(each.imported)
        exempt = any(room == who and is_below(each.imported, module) for who, module in UPWARDS)
        if other != room and RANK[other] >= RANK[room] and not exempt:
            upwards.append(f"{each.place} imports {each.imported}")
    assert upwards == []


def test_every_exception_of_the_layers_is_there() -> None:
    for room, module in UPWARDS:
        used = [each for each in every_import("registry") if room_of(each.importer) == room]
        assert any(is_below(each.imported, module) for each in used), (room, module)


def test_no_module_of_the_domain_needs_itself() -> None:
    names = modules("registry")
    graph: dict[str, set[str]] = {}
    for each in every_import("registry"):
        target = next((name for name in (each.imported, each.imported.rpartition(".")[0]) if name in names), None)
        if target is not None and target not in (each.importer, "registry"):
            graph.setdefault(each.importer, set()).add(target)
    assert len(list(TopologicalSorter(graph).static_order())) > 80  # raises CycleError, naming the circle


def test_layouts_are_computed_without_a_database() -> None:
    pure = [each for each in every_import("registry") if room_of(each.importer) == "layout"]
    for each in pure:
        assert each.imported.partition(".")[0] != "sqlalchemy", each.place
        if is_below(each.imported, "registry"):
            assert room_of(each.imported) in ("errors", "layout", "types"), each.place


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    return set(done.stdout.split())


def test_the_domain_loads_without_the_web_framework() -> None:
    statement = "; ".join(f"import {module}" for module in modules("registry"))
    loaded = loaded_by(statement)
    assert "registry.recovery.rollback" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("fastapi", "starlette", "uvicorn", "pydantic")}


def test_the_service_starts_without_what_costs_start_time_and_memory() -> None:
    """scipy.stats alone is 53 MB and 1.2 s; migrations, trackers and job code load only where they are used."""
    loaded = loaded_by("import api.main")
    assert "api.routes.runs" in loaded
    for later in ("numpy", "jinja2", "registry.recovery", "registry.provenance", "ui.respond"):
        assert not {name for name in loaded if is_below(name, later)}, later
    loaded = loaded_by("import api.main; api.main.routes_of_decisions()")
    assert {"registry.recovery.rollback", "ui.respond"} <= loaded
    for heavy in ("scipy.stats", "scipy.special", "alembic", "mlflow", "mlflow_skinny", "wandb", "pandas", "demo"):
        assert not {name for name in loaded if is_below(name, heavy)}, heavy
    # Of the client, the service runs the readers alone.
    assert not {name for name in loaded if is_below(name, "cairn.client") or is_below(name, "httpx")}


def test_the_command_says_what_it_can_do_without_loading_the_service() -> None:
    loaded = loaded_by("import api.server")
    assert "click" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("sqlalchemy", "fastapi", "pydantic", "uvicorn")}
