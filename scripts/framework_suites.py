"""Runs the frameworks' own tests on the adapters, and keeps what they said: ``make test-suites``.

The tests come from the source distributions that ``requirements/*-suite.txt`` pin; a pytest plugin
puts the adapter in the place of the framework's store.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "reference" / "framework-suites.json"
PLUGINS = ROOT / "tests" / "adapters"
ENGINES = ("memory", "postgres")


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of a framework: where they are, which of them, and what takes the place of what."""

    name: str
    environment: str
    plugin: str
    arguments: tuple[str, ...]
    expected: int
    """How many tests must pass."""

    def run(self, url: str) -> dict[str, Any]:
        """Run the tests on a state and count them."""
        folder, _, module = self.plugin.rpartition("/")
        command = [str(ROOT / f".venv-{self.environment}" / "bin" / "python"), "-m", "pytest"]
        done = subprocess.run(  # noqa: S603 - the program is our own environment's
            [*command, *self.arguments, "-q", "-p", "no:cacheprovider", "-p", module],
            cwd=ROOT / "build" / "suites" / self.environment,
            env=os.environ
            | {
                "SUITE_URL": url,
                "PYTHONPATH": str(PLUGINS / folder),
                "NO_DOCKER": "true",  # LangGraph's word for: no servers
                "LANGGRAPH_STRICT_MSGPACK": "true",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        counts = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
        [*_, last] = done.stdout.strip().splitlines()
        for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", last):
            counts[word] = int(number)
        # How often the tests made our store: a run that tested another one shows none.
        made = re.findall(r"holdfast (?:savers|stores): .*", done.stdout)
        counts["made"] = max(map(int, re.findall(r"\d+", " ".join(made))), default=0)
        if counts["passed"] != self.expected or counts["failed"] or counts["error"]:
            print(done.stdout[-5_000:], done.stderr[-2_000:], file=sys.stderr)
        return counts


SUITES = (
    Suite(
        "LangGraph engine, async",
        "langgraph_engine",
        "langgraph/suite/holdfast_in_place_of_sqlite",
        ("tests", "-k", "sqlite_aio"),
        254,
    ),
    Suite(
        "LangGraph engine, sync",
        "langgraph_engine",
        "langgraph/suite/holdfast_in_place_of_sqlite",
        ("tests", "-k", "sqlite and not sqlite_aio and not sqlite_aes"),
        384,
    ),
    Suite(
        "LangGraph store",
        "langgraph",
        "langgraph/suite/holdfast_in_place_of_inmemory",
        ("tests/test_store.py",),
        114,
    ),
)


def main() -> int:
    """Run all suites on both engines and write what they said."""
    rows = []
    for suite in SUITES:
        for engine in ENGINES:
            with tempfile.TemporaryDirectory(prefix="hf-suite-") as folder:
                Path(folder).chmod(0o755)  # an embedded server's user can enter it
                url = "memory:" if engine == "memory" else f"{folder}/state"
                counts = suite.run(url)
            rows.append({"suite": suite.name, "engine": engine, **counts})
            print(f"{suite.name} on {engine}: {counts}", flush=True)
    found = {"command": "make test-suites", "holdfast": version("holdfast"), "results": rows}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    expected = [suite.expected for suite in SUITES for _ in ENGINES]
    is_ours = all(row["made"] for row in rows)
    return int(not is_ours or [row["passed"] for row in rows] != expected)


if __name__ == "__main__":
    raise SystemExit(main())
