"""What an app refuses."""

from __future__ import annotations

import pytest

from holdfast import App, ConfigError, ConflictError, State, TaskContext, Worker

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_app_has_one_handler_for_each_agent() -> None:
    app = App("writer")

    @app.handler
    async def write(_task: TaskContext) -> None: ...

    with pytest.raises(ConflictError):
        app.handler(write)
    with pytest.raises(ConfigError):
        app.handler(agent="other")(lambda task: task)
    app.handler(agent="reader")(write)
    assert [str(agent) for agent in app.agents] == ["writer", "reader"]


async def test_a_worker_without_handlers_is_refused(state: State) -> None:
    with pytest.raises(ConfigError):
        Worker(App("writer"), state)
