"""The metrics: defined in one place, bounded in number, and honest about what is missing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

import holdfast
from holdfast import App, ChatMessage, State, TaskContext
from holdfast.errors import UnavailableError
from holdfast.server.figures import AGENTS, Figures
from holdfast.server.metric_names import METRICS, series
from holdfast.server.metrics import Metrics
from holdfast.values.backlog import PoolUse
from holdfast.wiring.ops import Ops
from tests.architecture.source import ROOT
from tests.server.running import http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[State]:
    async with holdfast.open("memory:", tenant="secret-tenant") as state:
        yield state


def _families(text: bytes) -> dict[str, str]:
    """The type of each metric by the name that a query uses."""
    return {
        f"{one.name}_total" if one.type == "counter" else one.name: one.type
        for one in text_string_to_metric_families(text.decode())
        if not one.name.endswith("_created")
    }


async def test_every_metric_is_defined_in_one_place(memory: State) -> None:
    found = _families(Metrics().text()) | _families(await Figures(memory, agents=["a"]).text())
    assert {name: METRICS[name].kind for name in found} == found
    hot = {one.name for one in METRICS.values() if one.source == "hot log"}
    pools = {one.name for one in METRICS.values() if one.source == "pool"}
    assert set(METRICS) == set(found) | hot | pools


async def test_the_page_names_every_metric() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert set(re.findall(r"^\| `(holdfast_\w+)", page, re.MULTILINE)) == set(METRICS)
    assert series() > set(METRICS) - {"holdfast_call_seconds"}


async def test_labels_name_agents_of_the_app_and_nobody_else(memory: State) -> None:
    await memory.for_owner("ana").tasks.submit('evil"} 1', ChatMessage.user("x"))
    await memory.tasks.submit("agent-0", ChatMessage.user("x"))
    figures = Figures(memory, agents=[f"agent-{number}" for number in range(AGENTS + 9)])
    text = (await figures.text()).decode()
    assert 'holdfast_tasks{agent="agent-0",state="submitted"} 1.0' in text
    assert 'holdfast_tasks{agent="other",state="submitted"} 1.0' in text
    assert len(re.findall(r"^holdfast_tasks\{", text, re.MULTILINE)) == AGENTS + 1
    for secret in ("secret-tenant", "evil", "ana"):
        assert secret not in text


async def test_a_process_without_an_app_shows_no_tasks(memory: State) -> None:
    await memory.tasks.submit("agent-0", ChatMessage.user("x"))
    text = (await Figures(memory).text()).decode()
    assert "holdfast_tasks" not in text
    assert "holdfast_dead_letters 0.0" in text


async def test_a_source_that_does_not_answer_is_shown_and_the_others_are_read(
    memory: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(_self: Ops) -> int:
        raise UnavailableError("postgres", "no answer")

    monkeypatch.setattr(Ops, "unindexed_events", down)
    text = (await Figures(memory, agents=[]).text()).decode()
    assert 'holdfast_source_up{source="index"} 0.0' in text
    assert 'holdfast_source_up{source="queue"} 1.0' in text
    assert "holdfast_recall_unindexed_events" not in text


async def test_the_use_of_pools_is_shown_by_engine(
    memory: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ops, "pools", lambda _self: {"postgres": PoolUse(10, 4, 2)})
    text = (await Figures(memory).text()).decode()
    for name, value in (("size", 10), ("in_use", 4), ("waiting", 2)):
        assert f'holdfast_pool_{name}{{engine="postgres"}} {value}.0' in text


async def test_the_service_shows_its_queue_and_answers_probes(memory: State) -> None:
    app = App("writer")

    @app.handler
    async def work(_task: TaskContext) -> None:
        """Never runs: there is no worker."""

    await memory.tasks.submit("writer", ChatMessage.user("x"))
    async with (
        serving(app, memory, workers=0) as service,
        http_client(base_url=service.url) as http,
    ):
        text = (await http.get("/metrics")).text
        assert 'holdfast_tasks{agent="writer",state="submitted"} 1.0' in text
        for path in ("/health/live", "/health/ready"):
            answer: httpx.Response = await http.get(path)
            assert (answer.status_code, answer.json()["status"]) == (200, "ok")
