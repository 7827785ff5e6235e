"""``holdfast db`` as an operator runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.postgres import migrate

COMMAND = Path(sys.executable).with_name("holdfast")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of its own that the server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-cli-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _run(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [str(COMMAND), *arguments],
        cwd=place,
        env={**kept, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _json(run: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(run.stdout)


def test_an_embedded_folder_is_the_default_and_goes_from_nothing_to_well(place: Path) -> None:
    before = _run(place, "db", "status", "--json")
    assert before.returncode == 1, before.stderr
    assert _json(before)["have"] == 0
    assert "holdfast db migrate" in _run(place, "db", "check").stdout
    applied = _json(_run(place, "db", "migrate", "--json"))["applied"]
    assert len(applied) == len(migrate.migrations()) + len(migrate.function_files())
    assert "nothing to do" in _run(place, "db", "migrate").stdout
    after = _run(place, "db", "status", "--json")
    assert (after.returncode, _json(after)["pending"]) == (0, [])
    assert _run(place, "db", "check").returncode == 0
    done = _json(_run(place, "db", "maintain", "--json"))
    assert done["expired states"] == 0
    assert (place / ".holdfast").is_dir()
    assert "expired states" in _run(place, "db", "maintain").stdout
    counted = _run(place, "db", "maintain", "--retain", "sessions=90d", "--dry-run", "--json")
    assert _json(counted) == {"old sessions": 0}
    retained = _json(_run(place, "db", "maintain", "--retain", "tasks=1h", "--json"))
    assert (retained["old tasks"], retained["expired states"]) == (0, 0)
    for wrong in (("--retain", "tasks=soon"), ("--dry-run",), ("--tenant", "acme")):
        run = _run(place, "db", "maintain", *wrong)
        assert (run.returncode, "retain" in run.stderr) == (1, True), run.stderr


def test_sql_prints_the_migrations_and_the_grants_of_a_role(place: Path) -> None:
    shown = _run(place, "db", "sql", "--role", 'my "app"').stdout
    assert "CREATE TABLE holdfast.events" in shown
    assert 'GRANT USAGE ON SCHEMA holdfast TO "my ""app"""' in shown
    assert not (place / ".holdfast").exists()


def test_a_dot_env_file_is_read_and_a_server_that_is_not_there_is_one_line(place: Path) -> None:
    secret = "s3cret-of-the-file"  # noqa: S105 - what must not be seen
    (place / ".env").write_text(f"DATABASE_URL=postgresql://ana:{secret}@127.0.0.1:1/none\n")
    run = _run(place, "db", "status")
    assert run.returncode == 1
    assert run.stderr.startswith("holdfast: postgres:")
    assert secret not in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_memory_has_no_schema_and_says_what_to_set(place: Path) -> None:
    run = _run(place, "db", "status", STORAGE_TYPE="memory")
    assert run.returncode == 1
    assert "DATABASE_URL" in run.stderr


def test_every_command_teaches_in_its_help(place: Path) -> None:
    shown = _run(place, "db", "--help").stdout
    for command in ("status", "migrate", "sql", "check", "maintain"):
        assert command in shown
        help_text = _run(place, "db", command, "--help")
        assert help_text.returncode == 0
        assert len(help_text.stdout.splitlines()) > 5
