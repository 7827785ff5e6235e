"""What an app refuses."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast import App, State, TaskContext, Worker
from holdfast.errors import ConfigError, ConflictError, InvalidInputError, NotFoundError

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_app_has_one_handler_for_each_agent() -> None:
    app = App("writer")

    @app.handler
    async def write(_task: TaskContext) -> None: ...

    with pytest.raises(ConflictError, match="writer has a handler already: name another agent"):
        app.handler(write)
    with pytest.raises(ConfigError):
        app.handler(agent="other")(lambda task: task)
    app.handler(agent="reader")(write)
    assert [str(agent) for agent in app.agents] == ["writer", "reader"]


async def test_a_handler_that_cannot_be_called_with_the_task_is_refused() -> None:
    app = App("writer")

    async def none() -> None: ...
    async def two(_task: TaskContext, _other: str) -> None: ...
    async def named(*, task: TaskContext) -> None: ...
    async def more(_task: TaskContext, _other: str = "") -> None: ...

    refused: list[Any] = [none, two, named]
    for function in refused:
        with pytest.raises(ConfigError, match=rf"async def {function.__name__}\(task\)"):
            app.handler(function)
    app.handler(more)
    app.handler(agent="partly")(partial(two, _other="given"))


async def test_a_worker_without_handlers_is_refused(state: State) -> None:
    with pytest.raises(ConfigError):
        Worker(App("writer"), state)


@pytest.mark.parametrize("bad", ["", "a\nb", 5])
async def test_a_name_that_is_refused_is_the_field_name(bad: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        App(bad)
    assert caught.value.field == "name"
    assert "agent_id" not in str(caught.value)


async def test_swapped_arguments_of_submit_are_an_error_that_says_so(state: State) -> None:
    app = App("writer")

    @app.handler
    async def write(_task: TaskContext) -> None: ...

    message: Any = "the tides"
    swapped: Any = state
    with pytest.raises(InvalidInputError, match=r"app\.submit\(state, message\)") as caught:
        await app.submit(message, swapped)
    assert caught.value.field == "state"


async def test_a_url_where_a_state_is_wanted_is_an_error_that_says_how_to_open_one() -> None:
    app = App("writer")

    @app.handler
    async def write(_task: TaskContext) -> None: ...

    url: Any = "memory:"
    with pytest.raises(InvalidInputError, match=r"async with holdfast\.open\(url\)"):
        await app.run_until_idle(url)
    with pytest.raises(InvalidInputError, match=r"^state: must be an open State, not str"):
        Worker(app, url)


async def test_an_agent_given_by_position_is_an_error_that_names_the_keyword() -> None:
    agent: Any = "critic"
    with pytest.raises(ConfigError, match=r"@app\.handler\(agent='critic'\)"):
        App("writer").handler(agent)


async def test_a_task_for_an_agent_without_a_handler_names_those_that_have_one(
    state: State,
) -> None:
    app = App("writer")
    with pytest.raises(NotFoundError, match=r"agent writer: add one with @app\.handler"):
        await app.submit(state, "the tides")

    @app.handler
    async def write(_task: TaskContext) -> None: ...

    with pytest.raises(NotFoundError, match="the app has handlers for writer"):
        await app.submit(state, "the tides", agent="Writer")
