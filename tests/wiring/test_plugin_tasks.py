"""A plug-in that stores tasks: opened by its URL, workers run them."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

import holdfast
from holdfast import App, TaskContext, TaskState, Worker, errors
from holdfast.engines.inmemory.blob import InMemoryBlobs
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.episodes import InMemoryEpisodes
from holdfast.engines.inmemory.short_term import InMemoryStates
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.engines.inmemory.tasks.work import InMemoryWork
from holdfast.engines.inmemory.transcripts import InMemoryTranscripts
from holdfast.spi.engine import Engine, EngineOptions, TaskEngine
from holdfast.spi.tasks.work import WorkStorage
from holdfast.wiring import engines, plugins

pytestmark = pytest.mark.asyncio


STORAGES: dict[str, Any] = {
    "tasks": InMemoryLedger,
    "blobs": InMemoryBlobs,
    "history": InMemoryTranscripts,
    "episodes": InMemoryEpisodes,
    "short_term": InMemoryStates,
}


class QueueEngine(TaskEngine):
    """Stores what tasks need, as an engine of another distribution may."""

    name, version, durability = "queue", "1", "none"
    contracts = frozenset({"tasks", "blobs", "history", "episodes", "short_term"})

    def __init__(self) -> None:
        self._engine = InMemory()

    def storage(self, contract: str, tenant: str) -> Any:
        return STORAGES[contract](self._engine, tenant=tenant)

    def work(self) -> WorkStorage:
        return InMemoryWork(self._engine)

    async def ping(self) -> None:
        """It answers."""

    async def aclose(self) -> None:
        """Nothing to close."""


async def open_engine(_url: str, _options: EngineOptions) -> Engine:
    """What the entry point names."""
    return QueueEngine()


class Mute(Engine):
    """Stores tasks, and does not say who has work."""

    name, version, durability = "mute", "1", "none"
    contracts = frozenset({"tasks"})
    closed = False

    def storage(self, contract: str, tenant: str) -> Any:
        raise AssertionError(contract, tenant)

    async def ping(self) -> None:
        """It answers."""

    async def aclose(self) -> None:
        """Remember it."""
        Mute.closed = True


async def open_mute(_url: str, _options: EngineOptions) -> Engine:
    """What the other entry point names."""
    return Mute()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        name: EntryPoint(name, f"{__name__}:{opens}", "holdfast.engines")
        for name, opens in (("queue", "open_engine"), ("mute", "open_mute"))
    }
    monkeypatch.setattr(plugins, "plugins", lambda: found)
    monkeypatch.setattr(engines, "plugin_schemes", lambda: found)


@pytest.mark.usefixtures("installed")
async def test_tasks_of_a_plug_in_are_run_by_a_worker() -> None:
    app = App("echo")

    @app.handler
    async def handle(task: TaskContext) -> str:
        return f"done: {task.message.text}"

    async with holdfast.open("queue:x") as state:
        assert state.engines["tasks"] == "queue"
        made = await app.submit(state, "hello")
        await Worker(app, state).run_until_idle()
        done = await state.tasks.get(made.id)
        assert done is not None
        assert (done.state, done.messages[-1].text) == (TaskState.COMPLETED, "done: hello")
        with pytest.raises(errors.NotSupportedError, match="graph"):
            _ = state.graph


@pytest.mark.usefixtures("installed")
async def test_an_engine_of_tasks_that_does_not_say_who_has_work_is_refused() -> None:
    with pytest.raises(errors.ConfigError, match="must have work"):
        async with holdfast.open("mute:x"):
            pass
    assert Mute.closed


@pytest.mark.usefixtures("installed")
async def test_a_worker_refuses_a_state_without_the_stores_that_tasks_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QueueEngine, "contracts", frozenset({"tasks"}))
    app = App("echo")

    @app.handler
    async def handle(_task: TaskContext) -> None:
        """Not reached."""

    async with holdfast.open("queue:x") as state:
        with pytest.raises(errors.NotSupportedError, match="blobs"):
            await Worker(app, state).run_until_idle()
