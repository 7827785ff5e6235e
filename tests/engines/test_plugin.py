"""An engine of another distribution: installed beside Holdfast, and found by its URL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"
USE = """
import asyncio, sys, holdfast
async def main() -> None:
    agent = holdfast.AgentId("writer", "ana")
    for text in ("low tide at noon", "high tide at six"):
        async with holdfast.open(sys.argv[1]) as state:
            await state.history.append(agent, holdfast.ChatMessage.user(text), session_id="s1")
            found = await state.history.get_messages(agent, session_id="s1")
            print([one.text for one in found], state.engines)
            try:
                state.graph
            except holdfast.errors.NotSupportedError as error:
                print(error)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the plug-in installed."""
    target = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    for file in PLUGIN.iterdir():
        if file.is_file():
            (source / file.name).write_bytes(file.read_bytes())
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-index", "--no-build-isolation", "--target", target, source),
        ],
        check=True,
    )
    kept = {name: value for name, value in os.environ.items() if "HOLDFAST" not in name}
    return kept | {"PYTHONPATH": str(target)}


def _run(environment: dict[str, str], *args: object, cwd: Path) -> str:
    run = subprocess.run(
        [sys.executable, *map(str, args)],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_it_opens_by_its_url_and_keeps_what_was_written(
    installed: dict[str, str], tmp_path: Path
) -> None:
    said = _run(installed, "-c", USE, f"sqlite:{tmp_path}/notes.db", cwd=tmp_path)
    assert (
        "['low tide at noon', 'high tide at six'] {'history': 'sqlite', 'short_term': 'sqlite'}"
        in said
    )
    assert "the sqlite engine does not support graph: memory:, ./folder and postgresql://" in said


def test_doctor_shows_it(installed: dict[str, str], tmp_path: Path) -> None:
    settings = {"DATABASE_URL": f"sqlite:{tmp_path}/notes.db"}
    command = ("-m", "holdfast.cli", "doctor", "--json")
    shown = _run(installed | settings, *command, cwd=tmp_path)
    assert '"sqlite"' in shown
    assert "SQLite 3" in shown


def test_it_runs_the_published_suite(installed: dict[str, str], tmp_path: Path) -> None:
    said = _run(
        installed,
        *("-m", "pytest", "--pyargs", "holdfast.testing", "-q", "-p", "no:cacheprovider"),
        *("--engine", "holdfast_sqlite:SqliteHarness", "--machine-steps=200"),
        cwd=tmp_path,
    )
    passed = re.search(r"(\d+) passed", said)
    assert passed
    assert int(passed[1]) >= 120


def test_a_scheme_that_nobody_brings_is_refused_with_those_that_are_known(
    installed: dict[str, str], tmp_path: Path
) -> None:
    program = (
        "import holdfast\n"
        "try:\n    holdfast.open('mysql://x')\n"
        "except holdfast.errors.UnknownSchemeError as error:\n    print(error)\n"
    )
    assert "sqlite:" in _run(installed, "-c", program, cwd=tmp_path)


def test_what_stores_two_contracts_is_at_most_200_lines() -> None:
    text = (PLUGIN / "holdfast_sqlite.py").read_text()
    assert len(text.partition("class SqliteHarness")[0].splitlines()) <= 200
