"""``holdfast doctor`` looks at everything that is configured."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

import holdfast
from holdfast import Settings
from holdfast.cli import doctor
from holdfast.cli.commands import app
from holdfast.testing.valkey_server import ValkeyServer
from holdfast.values.errors import ConfigError
from holdfast.values.ids import new_ref
from tests.architecture.source import ROOT
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


def _strict() -> tuple[int, list[str]]:
    found = CliRunner().invoke(app, ["doctor", "--strict", "--json"])
    lines = found.stderr.splitlines()
    return found.exit_code, [
        line.removeprefix("strict: ") for line in lines if line.startswith("strict: ")
    ]


def test_strict_fails_on_storage_that_keeps_nothing_and_on_any_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, _ = _doctor(monkeypatch, STORAGE_TYPE="memory", REDIS_URL=valkey().url)
    assert code == 0
    code, problems = _strict()
    assert code == 1
    assert problems[0].startswith("inmemory: durability none")
    assert any("set `appendfsync always`" in one for one in problems)


def test_strict_fails_on_an_engine_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    _doctor(monkeypatch, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    code, [problem] = _strict()
    assert (code, problem.startswith("postgres: down: ")) == (1, True)


def test_strict_fails_as_superuser_and_passes_as_a_login_for_workers(
    database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenant
    code, found = _doctor(monkeypatch, DATABASE_URL=database)
    assert (code, found[0]["status"]) == (0, "ok")
    code, [problem] = _strict()
    assert code == 1
    assert "log in as a mere member of holdfast_app" in problem
    name = f"strict_{new_ref()}".lower().replace("-", "_")
    monkeypatch.setenv("HOLDFAST_LOGIN_PASSWORD", "s3cret")
    made = CliRunner().invoke(app, ["db", "login", name, "--for", "worker"])
    assert made.exit_code == 0, made.output
    monkeypatch.delenv("HOLDFAST_LOGIN_PASSWORD")
    login = re.sub(r"//[^@]*@", f"//{name}:s3cret@", database)
    monkeypatch.setenv("DATABASE_URL", login)
    assert _strict() == (0, [])


def test_the_gate_of_compose_passes_with_its_valkey_and_its_login(
    database: str, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenant
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    name = f"gate_{new_ref()}".lower().replace("-", "_")
    (tmp_path / "password").write_text("s3cret")
    monkeypatch.setenv("HOLDFAST_LOGIN_PASSWORD_FILE", str(tmp_path / "password"))
    words = services["login"]["command"].split()[1:]
    made = CliRunner().invoke(app, [*words[:2], name, *words[3:]])
    assert made.exit_code == 0, made.output
    monkeypatch.delenv("HOLDFAST_LOGIN_PASSWORD_FILE")
    options = services["valkey"]["command"][-1].split("--dir /data")[1].split()
    server = ValkeyServer(*options)
    server.start()
    try:
        (tmp_path / "url").write_text(re.sub(r"//[^@]*@", f"//{name}:s3cret@", database))
        _doctor(monkeypatch, STORAGE_TYPE="memory", REDIS_URL=server.url)
        monkeypatch.delenv("STORAGE_TYPE")
        monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
        assert services["doctor"]["command"] == "holdfast doctor --strict"
        assert _strict() == (0, [])
    finally:
        server.remove()


def test_strict_fails_where_no_metrics_can_be_served(
    database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenant
    _doctor(monkeypatch, DATABASE_URL=database)
    monkeypatch.setattr(doctor, "find_spec", lambda _name: None)
    code, problems = _strict()
    assert code == 1
    assert any(one.startswith("metrics: ") and "holdfast[server]" in one for one in problems)


def _hybrid(database: str, tenant: str, *notes: str) -> None:
    """Leave events in Redis, or take all that is there to Postgres."""

    async def work() -> None:
        settings = Settings(database_url=database, redis_url=valkey().url, ack_level="hot")
        async with holdfast.open(settings=settings, tenant=tenant, background=False) as state:
            memory = state.memory("writer/ana", session_id="s1")
            await memory.record_many([("note", {"note": note}) for note in notes])
            if not notes:
                await state.ops.hybrid.consolidator.drain()

    asyncio.run(work())


def test_doctor_states_the_acknowledgement_level_in_effect_and_the_consolidation_lag(
    database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"DATABASE_URL": database, "REDIS_URL": valkey().url}
    _hybrid(database, tenant, "low tide", "full moon")
    code, found = _doctor(monkeypatch, **where)
    assert code == 0
    assert [one["engine"] for one in found] == ["postgres", "redis", "hybrid"]
    # This Valkey does not sync each write, so what is not asked for is the strongest.
    assert found[2]["durability"].startswith("committed:")
    assert "events wait, the oldest for" in found[2]["detail"]
    assert not found[2]["detail"].startswith("0 ")
    _, found = _doctor(monkeypatch, HOLDFAST_ACK_LEVEL="hot", **where)
    assert found[2]["durability"].startswith("hot:")
    shown = " ".join(CliRunner().invoke(app, ["doctor"]).stdout.split())
    assert "acknowledgement level: hot" in shown
    assert "consolidation lag:" in shown
    _hybrid(database, tenant)
    _, found = _doctor(monkeypatch, **where)
    assert found[2]["detail"].startswith("0 events wait")


def test_doctor_tells_of_an_acknowledgement_level_that_redis_does_not_prove(
    database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenant
    code, found = _doctor(
        monkeypatch,
        DATABASE_URL=database,
        REDIS_URL=valkey().url,
        HOLDFAST_ACK_LEVEL="fsync",
    )
    assert code == 1
    assert found[2]["status"] == "down"
    assert "Redis does not prove it" in found[2]["detail"]
