"""``holdfast doctor`` looks at everything that is configured."""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import version
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast.cli.commands import app
from holdfast.kernel.core.errors import ConfigError
from tests.wiring.valkey import valkey


def _doctor(monkeypatch: pytest.MonkeyPatch, **environment: str) -> tuple[int, Any]:
    for name in ("STORAGE_TYPE", "DATABASE_URL", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = CliRunner().invoke(app, ["doctor", "--json"])
    return found.exit_code, json.loads(found.stdout)


def test_doctor_looks_at_everything_and_says_what_to_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        code, found = _doctor(
            monkeypatch,
            STORAGE_TYPE="memory",
            REDIS_URL=valkey().url,
            BLOB_URL=f"file://{folder}/blobs",
        )
    assert code == 0
    assert [one["engine"] for one in found] == ["inmemory", "redis", "objects"]
    assert all(one["status"] == "ok" for one in found)
    redis = found[1]
    assert "Valkey" in redis["version"]
    assert redis["durability"].startswith("hot")
    assert any("set `appendfsync always`" in warning for warning in redis["warnings"])


def test_doctor_fails_when_one_part_is_down_and_still_shows_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, found = _doctor(
        monkeypatch, STORAGE_TYPE="memory", REDIS_URL="redis://:s3cret@127.0.0.1:1"
    )
    assert code == 1
    assert [one["status"] for one in found] == ["ok", "down"]
    assert found[1]["latency_seconds"] > 0
    assert "s3cret" not in json.dumps(found)


def test_the_command_tells_its_version() -> None:
    found = CliRunner().invoke(app, ["--version"])
    assert (found.exit_code, found.stdout) == (0, f"holdfast {version('holdfast')}\n")


def test_doctor_draws_a_table_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    _doctor(monkeypatch, STORAGE_TYPE="memory")
    found = CliRunner().invoke(app, ["doctor"])
    assert found.exit_code == 0
    assert "inmemory" in found.stdout
    assert "durability: none" in found.stdout


def test_an_unknown_variable_is_a_warning_and_refused_by_strict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, _ = _doctor(monkeypatch, STORAGE_TYPE="memory", HOLDFAST_TENNANT="acme")
    assert code == 0
    refused = CliRunner().invoke(app, ["doctor", "--strict"])
    assert isinstance(refused.exception, ConfigError)
    assert "did you mean HOLDFAST_TENANT?" in str(refused.exception)
