"""``--metrics-port``: the metrics and the health of processes that serve nothing else."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

import holdfast
from holdfast import AgentId, Event, Settings
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from tests.architecture.source import ROOT
from tests.cli.command import Command, start, wait_until

AGENT = """
import holdfast

app = holdfast.App("monitored")

@app.handler
async def work(task):
    return "done"
"""
WORKER = ("worker", "agents:app", "--metrics-port", "0", "--log-json")
ALERTS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "holdfast-alerts.yml").read_text())
WATCHED = set(
    re.findall(r"holdfast_\w+", " ".join(rule["expr"] for rule in ALERTS["groups"][0]["rules"]))
)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    postgres, valkey = PostgresServer(18), ValkeyServer()
    postgres.start()
    valkey.start()
    yield {"DATABASE_URL": postgres.url(), "REDIS_URL": valkey.url}
    valkey.remove()
    postgres.remove()


@contextmanager
def _running(
    place: Path, *words: str, **environment: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A command, and the address where it says that its metrics are."""
    (place / "agents.py").write_text(AGENT)
    process = start(place, *words, **environment)
    err = place / "err"
    found = re.compile(r"metrics and health on (http://[\w.:]+)")
    try:
        wait_until(lambda: bool(found.search(err.read_text())), "its address", process, err)
        match = found.search(err.read_text())
        assert match
        yield match[1], process
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, err.read_text()
    finally:
        process.kill()
        process.wait()


def _read(url: str, **headers: str) -> tuple[int, str]:
    answer = httpx.get(url, headers=headers, timeout=60, trust_env=False)
    return answer.status_code, answer.text


def test_a_worker_serves_its_metrics_and_its_health_to_this_machine(
    command: Command, database: str, tenant: str, tmp_path: Path
) -> None:
    command("tasks", "submit", "monitored", "go")
    with _running(tmp_path, *WORKER, "--tenant", tenant, DATABASE_URL=database) as (url, worker):
        done = 'holdfast_task_runs_total{outcome="completed"} 1.0'
        wait_until(lambda: done in _read(f"{url}/metrics")[1], "the run", worker, tmp_path / "err")
        assert "holdfast_tasks_running 0.0" in _read(f"{url}/metrics")[1]
        status, text = _read(f"{url}/health")
        assert (status, '"status":"ok"' in text) == (200, True)
        assert url.startswith("http://127.0.0.1:")
        # Names that no URL can have are no names of this machine either.
        for name in ("elsewhere.example", "a{b.elsewhere.example", "a`b.example:80", "x@127.0.0.1"):
            assert _read(f"{url}/metrics", Host=name)[0] == 421, name
        assert _read(f"{url}/tasks")[0] == 404


def test_the_health_of_a_worker_tells_that_its_database_is_down(tmp_path: Path) -> None:
    postgres = PostgresServer(18)
    postgres.start()
    try:
        environment = {"DATABASE_URL": postgres.url(), "HOLDFAST_AUTO_MIGRATE": "1"}
        with _running(tmp_path, *WORKER, **environment) as (url, _):
            assert _read(f"{url}/health")[0] == 200
            postgres.kill()
            assert _read(f"{url}/health")[0] == 503
            assert _read(f"{url}/health/ready")[0] == 503
            assert _read(f"{url}/health/live")[0] == 200
            postgres.start()
    finally:
        postgres.remove()


@pytest.mark.parametrize("words", [WORKER, ("consolidate", "--metrics-port", "0", "--log-json")])
def test_every_shipped_alert_can_fire_where_there_is_no_service(
    words: tuple[str, ...], servers: dict[str, str], tmp_path: Path
) -> None:
    async def record() -> None:
        settings = Settings(
            database_url=servers["DATABASE_URL"], redis_url=servers["REDIS_URL"], auto_migrate=True
        )
        async with holdfast.open(settings=settings, background=False) as state:
            event = Event(AgentId("writer", "ana"), words[0], "note", {"note": "a"})
            await state.episodes.append([event])

    asyncio.run(record())
    with _running(tmp_path, *words, **servers) as (url, process):
        flushed = re.compile(r"^holdfast_consolidation_flushed_total [1-9]", re.MULTILINE)
        wait_until(
            lambda: bool(flushed.search(_read(f"{url}/metrics")[1])),
            "a flush",
            process,
            tmp_path / "err",
        )
        text = _read(f"{url}/metrics")[1]
        assert {
            name for name in WATCHED if not re.search(rf"^{name} ", text, re.MULTILINE)
        } == set()
        assert _read(f"{url}/health")[0] == 200


def test_without_the_extra_it_says_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "holdfast.server.metrics", raising=False)
    answer = command("consolidate", "--metrics-port", "0")
    assert (answer.code, "holdfast[server]" in answer.err) == (1, True)
