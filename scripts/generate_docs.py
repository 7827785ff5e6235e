"""Writes the generated parts of README and docs (``make docs``); a test keeps them fresh."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.bench.report import TITLES, redraw
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import Blobs
from holdfast.contracts.boards import TaskStore
from holdfast.contracts.channel import Channel
from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.front import Front, Layered
from holdfast.contracts.graph import Graph
from holdfast.contracts.history import HistoryStore
from holdfast.contracts.items import ItemStore
from holdfast.contracts.keys import KeyStore
from holdfast.contracts.long_term_memory import FactStore
from holdfast.contracts.schedules import ScheduleStore
from holdfast.contracts.short_term import ShortTerm
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.vectors import VectorStore
from holdfast.engines.postgres.migrate import migrations
from holdfast.testing.harness import NOUNS, Harness
from holdfast.testing.inmemory import InMemoryHarness
from scripts import blocking_stub, metrics_page, reference_pages, site, task_context_page
from scripts import performance_page as performance
from scripts.framework_suites import RESULTS
from scripts.schema_sql import migrated_schema
from tests.engines.age import AgeHarness
from tests.engines.hybrid import HybridHarness
from tests.engines.objects import DiskHarness, S3Harness
from tests.engines.postgres import Postgres16Harness, PostgresHarness
from tests.engines.redis import RedisClusterHarness, RedisHarness

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "src" / "holdfast" / "testing"

PROTOCOLS: dict[str, type[Any]] = {
    "blobs": Blobs,
    "blob_index": BlobIndex,
    "boards": TaskStore,
    "channels": Channel,
    "checkpoints": CheckpointStore,
    "episodes": EpisodicMemory,
    "graph": Graph,
    "history": HistoryStore,
    "items": ItemStore,
    "schedules": ScheduleStore,
    "keys": KeyStore,
    "long_term": FactStore,
    "memory": AgentMemory,
    "short_term": ShortTerm,
    "tasks": TaskLedger,
    "vectors": VectorStore,
}

ENGINES: dict[str, type[Harness]] = {
    "in memory": InMemoryHarness,
    "Postgres 18, embedded": PostgresHarness,
    "Postgres 16, server": Postgres16Harness,
    "Valkey": RedisHarness,
    "Valkey Cluster": RedisClusterHarness,
    "Valkey + Postgres": HybridHarness,
    "S3": S3Harness,
    "disk": DiskHarness,
    "Apache AGE": AgeHarness,
}
"""The engines that the suite runs on in ``make test-all``, by what the README calls them."""


@dataclass(frozen=True)
class Promise:
    """A sentence in a Protocol's docstring, and the name that its test must have."""

    text: str

    @property
    def test(self) -> str:
        """The test in the same words."""
        words = re.sub(r"['`]", "", self.text.lower())
        return "test_" + re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def promises(protocol: type[Any]) -> list[Promise]:
    """What a Protocol, and the Protocols that it is made of, promise."""
    found = []
    for part in reversed(protocol.__mro__):
        if not part.__module__.startswith("holdfast.") or "Promises:" not in (part.__doc__ or ""):
            continue
        lines = str(part.__doc__).split("Promises:", 1)[1]
        # A promise ends at the first empty line; what is wrapped is one sentence.
        items = [item.split("\n\n")[0] for item in re.split(r"\n\s*- ", lines)[1:]]
        found += [Promise(" ".join(item.split())) for item in items]
    return found


def tests(contract: str) -> dict[str, str]:
    """The tests of a contract by name, with the file of each."""
    found: dict[str, str] = {}
    for path in sorted(SUITE.glob(f"test_{NOUNS[contract]}*.py")):
        tree = ast.parse(path.read_text())
        if not _serves(tree, contract):
            continue
        functions = [
            node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        found |= {one.name: path.name for one in functions if one.name.startswith("test_")}
    return found


def _serves(tree: ast.Module, contract: str) -> bool:
    # test_blob_index.py begins like test_blob.py: the file itself says whose it is.
    return any(
        isinstance(node, ast.Assign) and ast.unparse(node) == f"CONTRACT = '{contract}'"
        for node in tree.body
    )


def promises_page() -> str:
    """``docs/reference/promises.md``: every promise and the test that holds it."""
    lines = [
        "# Promises, and the tests that hold them",
        "",
        "Every promise stands in the docstring of its Protocol and has one test in the same words,",
        "which runs on every engine. `make docs` writes this page, and a test checks it.",
        "",
    ]
    for contract, protocol in PROTOCOLS.items():
        files = tests(contract)
        lines += [f"## `{protocol.__name__}` (`{contract}`)", "", "| promise | test |", "|---|---|"]
        for promise in promises(protocol):
            where = files.get(promise.test, "missing")
            lines.append(f"| {promise.text} | `{where}::{promise.test}` |")
        lines.append("")
    return "\n".join(lines)


def contracts_page() -> str:
    """``docs/reference/contracts.md``: every method of every Protocol."""
    lines = [
        "# Contracts",
        "",
        "Every method of every store. `State` has an attribute for each but `blob_index`, which",
        "engines use among themselves. `make docs` writes this page from the docstrings, and a",
        "test checks it.",
        "",
    ]
    for contract, protocol in PROTOCOLS.items():
        lines += [f"## `{protocol.__name__}` (`{contract}`)", "", _first_line(protocol), ""]
        for name, method in _methods(protocol).items():
            lines += [f"- **`{name}`**`{spelled(method)}`<br>{_first_line(method)}"]
        lines.append("")
    return "\n".join(lines)


INTERNAL = {
    *(name for part in (Layered, Front) for name in vars(part)),
    *("append_checked", "refuse_patches"),
}
"""Methods of stores that only the package itself calls."""


def _methods(protocol: type[Any]) -> dict[str, Any]:
    return {
        name: value
        for part in reversed(protocol.__mro__)
        for name, value in vars(part).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in INTERNAL
    }


def spelled(method: Any) -> str:
    """The signature of a method as it is written in the source, without ``self``."""
    signature = inspect.signature(method)
    parts: list[str] = []
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        text = f"{stars}{parameter.name}: {parameter.annotation}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}"
        parts.append(text)
    return f"({', '.join(parts)}) -> {signature.return_annotation}"


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def tables_page() -> str:
    """``docs/reference/tables.md``: every table of the Postgres schema, as its migration has it."""
    lines = [
        "# Tables",
        "",
        "Every table of the schema `holdfast`, as the migrations make it. Keys begin with",
        "`tenant`, so the tables shard by it as they are. `make docs` writes this page.",
        "",
    ]
    for one in migrations():
        found = re.findall(
            r"((?:^--[^\n]*\n)*)^CREATE TABLE (?:IF NOT EXISTS )?holdfast\.(\w+) \(\n(.*?)^\)",
            one.sql,
            re.MULTILINE | re.DOTALL,
        )
        if found:
            lines += [f"## {one.version:04} {one.name.replace('_', ' ')}", ""]
        for comment, table, body in found:
            about = " ".join(line.lstrip("- ") for line in comment.splitlines())
            lines += [f"### `{table}`", "", *([about, ""] if about else []), "```sql"]
            lines += [line.removeprefix("    ") for line in body.rstrip().splitlines()]
            lines += ["```", ""]
    return "\n".join(lines)


def matrix() -> str:
    """The matrix of engines and contracts of the README."""
    header = f"| contract | Protocol | {' | '.join(ENGINES)} |"
    lines = [header, "|---|---|" + "---|" * len(ENGINES)]
    for contract, protocol in PROTOCOLS.items():
        marks = ["✓" if contract in engine.contracts else "—" for engine in ENGINES.values()]
        lines.append(f"| `{contract}` | `{protocol.__name__}` | {' | '.join(marks)} |")
    return "\n".join(lines)


def suites_table() -> str:
    """What the frameworks' own tests said on the adapters."""
    rows = json.loads(RESULTS.read_text())["results"]
    found: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        found.setdefault(row["suite"], {})[row["engine"]] = row
    lines = ["| suite | in memory | Postgres 18 | skipped |", "|---|---|---|---|"]
    for suite, engines in found.items():
        passed = [f"{one['passed']} passed, {one['failed']} failed" for one in engines.values()]
        skipped = max(one["skipped"] for one in engines.values())
        lines.append(f"| {suite} | {' | '.join(passed)} | {skipped} |")
    return "\n".join(lines)


def with_section(text: str, name: str, content: str) -> str:
    """A page with the text between its two markers replaced."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, _, rest = text.partition(start)
    _, _, tail = rest.partition(end)
    return f"{head}{start}\n{content}\n{end}{tail}"


def with_sections(path: Path, sections: dict[str, str]) -> str:
    """A page with each of its marked parts replaced."""
    text = path.read_text()
    for name, content in sections.items():
        text = with_section(text, name, content)
    return text


def generated() -> dict[Path, str]:
    """Every file with a generated part, as it should be."""
    docs = ROOT / "docs"
    parts = {
        ROOT / "README.md": {"matrix": matrix(), "figures": performance.readme_table()},
        docs / "reference" / "performance.md": {name: performance.section(name) for name in TITLES},
        docs / "explanation" / "decision-guide.md": {"figures": performance.decision_table()},
        docs / "explanation" / "frameworks.md": {"suites": suites_table()},
        docs / "how-to" / "tune-recall.md": {
            "scores": performance.recall_scores(),
            "bars": performance.recall_bars(),
        },
    }
    pages = {path: with_sections(path, sections) for path, sections in parts.items()}
    return pages | {
        docs / "reference" / "api.md": reference_pages.api_page(),
        docs / "reference" / "cli.md": reference_pages.cli_page(),
        docs / "reference" / "settings.md": reference_pages.settings_page(),
        docs / "reference" / "contracts.md": contracts_page(),
        docs / "reference" / "metrics.md": metrics_page.page(),
        docs / "reference" / "promises.md": promises_page(),
        docs / "reference" / "tables.md": tables_page(),
        docs / "reference" / "task-context.md": task_context_page.page(),
        blocking_stub.PATH: blocking_stub.stub(),
        ROOT / "mkdocs.yml": site.mkdocs(),
        docs / "llms.txt": site.llms(),
    }


SCHEMA = ROOT / "src" / "holdfast" / "engines" / "postgres" / "schema.sql"


def main() -> None:
    """Write what is not as it should be, and draw the charts whose figures are others now."""
    for path in redraw(performance.KEPT):
        print(f"drew {path.relative_to(ROOT)}")
    pages = generated() | {SCHEMA: asyncio.run(migrated_schema())}
    for path, text in pages.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
