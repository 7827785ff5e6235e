"""``adk web --session_service_uri holdfast+...``: ADK's own loader finds the services."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from google.adk.cli import service_registry
from google.adk.cli.fast_api import get_fast_api_app
from google.adk.cli.utils import service_factory
from google.adk.events.event import Event

from holdfast.adapters.google_adk import (
    HoldfastArtifactService,
    HoldfastMemoryService,
    HoldfastSessionService,
    registry,
)
from holdfast.errors import ConfigError, UnknownSchemeError
from tests.adapters.programs import ROOT

PYTHON = "from holdfast.adapters.google_adk import register\n\nregister()\n"
YAML = """
services:
  - scheme: holdfast+memory
    type: session
    class: holdfast.adapters.google_adk.registry.session_service
  - scheme: holdfast+memory
    type: memory
    class: holdfast.adapters.google_adk.registry.memory_service
  - scheme: holdfast+memory
    type: artifact
    class: holdfast.adapters.google_adk.registry.artifact_service
"""
AGENT = """
from tests.adapters.google_adk.agents import Model, note
from google.adk.agents import LlmAgent

root_agent = LlmAgent(name="pilot", model=Model(model="none"), tools=[note])
"""


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of ADK's and states of each test."""
    monkeypatch.setattr(service_registry, "_service_registry_instance", None)
    monkeypatch.setattr(registry, "_portals", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "services", raising=False)
    yield
    sys.modules.pop("services", None)
    for portal in registry._portals.values():
        portal.close()


@pytest.mark.parametrize(("name", "text"), [("services.py", PYTHON), ("services.yaml", YAML)])
def test_the_loader_of_adk_finds_the_services(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    service_registry.load_services_module(str(tmp_path))
    for uri in ("holdfast+memory:", "holdfast+memory://"):
        sessions = service_factory.create_session_service_from_options(
            base_dir=tmp_path, session_service_uri=uri
        )
        memory = service_factory.create_memory_service_from_options(
            base_dir=tmp_path, memory_service_uri=uri
        )
        artifacts = service_factory.create_artifact_service_from_options(
            base_dir=tmp_path, artifact_service_uri=uri
        )
        assert isinstance(sessions, HoldfastSessionService)
        assert isinstance(memory, HoldfastMemoryService)
        assert isinstance(artifacts, HoldfastArtifactService)
    assert len(registry._portals) == 1


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of ADK's own
@pytest.mark.asyncio(loop_scope="session")
async def test_adk_web_stores_sessions_and_runs_agents(tmp_path: Path) -> None:
    assert PYTHON in (ROOT / "docs" / "how-to" / "google-adk.md").read_text()
    (tmp_path / "services.py").write_text(PYTHON)
    (tmp_path / "tides").mkdir()
    (tmp_path / "tides" / "agent.py").write_text(AGENT)
    (tmp_path / "tides" / "__init__.py").write_text("from . import agent\n")
    texts = []
    for turn in range(2):
        app = get_fast_api_app(
            agents_dir=str(tmp_path),
            session_service_uri="holdfast+memory:",
            memory_service_uri="holdfast+memory:",
            artifact_service_uri="holdfast+memory:",
            web=False,
        )
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            url = "/apps/tides/users/ana/sessions"
            if turn == 0:
                made = await client.post(f"{url}/s1", json={"port": "Riga"})
                assert made.status_code == 200
                assert (await client.post(f"{url}/s1", json={})).status_code == 409
            message = {"role": "user", "parts": [{"text": "which tide?"}]}
            names = {"appName": "tides", "userId": "ana", "sessionId": "s1"}
            ran = await client.post("/run", json={**names, "newMessage": message})
            assert ran.status_code == 200
            texts.append(ran.json()[-1]["content"]["parts"][0]["text"])
            found = (await client.get(f"{url}/s1")).json()
            assert found["state"] == {
                "port": "Riga",
                "noted": "which tide?",
                "user:notes": turn + 1,
            }
            assert [one["id"] for one in (await client.get(url)).json()] == ["s1"]
            assert (await client.get(f"{url}/s1/artifacts")).json() == ["note.txt"]
    assert texts == ["read 3, remembered 0", "read 7, remembered 0"]


def test_a_uri_is_a_url_of_holdfast_open(tmp_path: Path, database: str) -> None:
    registry.register()
    found = service_registry.get_service_registry()
    service = found.create_session_service(f"holdfast+{database}", agents_dir=str(tmp_path))
    assert isinstance(service, HoldfastSessionService)
    [portal] = registry._portals.values()

    async def write_and_read() -> str:
        session = await service.create_session(app_name="tides", user_id="ana")
        await service.append_event(session, Event(author="user"))
        return portal.state.tenant

    assert portal.run(write_and_read()) == "default"


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("postgresql://host/db", {}),
        ("holdfast+file://host/folder", {}),
        ("holdfast+file:", {}),
        ("holdfast+memory:", {"pool_size": 3}),
    ],
)
def test_a_wrong_uri_is_refused(uri: str, options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        registry.session_service(uri, **options)


def test_a_folder_is_embedded_postgres() -> None:
    assert registry._url("holdfast+file:///var/my%20state") == "/var/my state"
    with pytest.raises((ConfigError, UnknownSchemeError)):
        registry.session_service("holdfast+file:relative")
