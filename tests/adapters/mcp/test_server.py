"""The memory server: its own tools, its callers, restarts, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

import holdfast
from holdfast import App, State, TaskContext
from holdfast.adapters.mcp import MemoryGraph
from tests.adapters.mcp.clients import caller, connected, ours, started

pytestmark = pytest.mark.asyncio(loop_scope="session")
RIGA = {"name": "Riga", "entityType": "city", "observations": ["has a harbour"]}


async def _call(client: Any, name: str, **arguments: Any) -> Any:
    found = await client.call_tool(name, arguments)
    assert not found.is_error, found.content[0].text
    return found.structured_content


async def _error(client: Any, name: str, **arguments: Any) -> str:
    found = await client.call_tool(name, arguments)
    assert found.is_error
    return str(found.content[0].text)


async def test_a_fact_is_remembered_recalled_listed_and_forgotten(state: State) -> None:
    async with connected(caller(state)) as client:
        made = await _call(client, "remember", text="Ravi prefers low tide", topic="habits")
        found = await _call(client, "recall", query="what does Ravi prefer?")
        assert [one["text"] for one in found["facts"]] == ["Ravi prefers low tide"]
        listed = await _call(client, "list_facts", topic="habits")
        assert [one["id"] for one in listed["facts"]] == [made["id"]]
        assert (await _call(client, "list_facts", topic="other"))["facts"] == []
        await _call(client, "forget", id=made["id"])
        assert (await _call(client, "recall", query="Ravi"))["facts"] == []
        assert "fact" in await _error(client, "forget", id=made["id"])


async def test_recall_finds_what_the_agent_recorded_elsewhere(state: State) -> None:
    who = caller(state)
    await who.state.memory("mcp", session_id="s1").record("decision", {"use": "postgres"})
    async with connected(who) as client:
        found = await _call(client, "recall", query="postgres")
    assert [one["payload"] for one in found["events"]] == [{"use": "postgres"}]


async def test_a_board_is_made_and_its_cards_move(state: State) -> None:
    async with connected(caller(state)) as client:
        board = await _call(client, "create_board", conversation="c1", titles=["read", "write"])
        board = await _call(client, "add_cards", board=board["id"], titles=["check"])
        first = board["cards"][0]
        await _call(
            client, "update_card", board=board["id"], card=first["id"], status="succeeded", note="!"
        )
        [found] = (await _call(client, "read_boards", conversation="c1"))["boards"]
        assert [(one["title"], one["status"]) for one in found["cards"]] == [
            ("read", "succeeded"),
            ("write", "planned"),
            ("check", "planned"),
        ]
        assert "card" in await _error(
            client, "update_card", board=board["id"], card="no-card", status="planned"
        )


async def test_a_task_is_submitted_once_listed_and_cancelled(state: State) -> None:
    async with connected(caller(state)) as client:
        made = await _call(client, "submit_task", agent="writer", text="Tides of Brest?", key="k1")
        again = await _call(client, "submit_task", agent="writer", text="Tides of Brest?", key="k1")
        assert again["id"] == made["id"]
        [listed] = (await _call(client, "list_tasks"))["tasks"]
        assert (listed["id"], listed["state"]) == (made["id"], "submitted")
        found = await _call(client, "get_task", id=made["id"])
        assert found["messages"] == ["user: Tides of Brest?"]
        assert (await _call(client, "cancel_task", id=made["id"]))["state"] == "canceled"
        assert "task" in await _error(client, "get_task", id="no-task")


async def test_a_task_shows_what_fits_its_question_and_what_its_agent_returned(
    state: State,
) -> None:
    app = App("booker")
    schema = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}

    @app.handler
    async def book(task: TaskContext) -> dict[str, Any]:
        order = await task.ask("How many seats?", schema=schema, name="order")
        day = await task.ask("Which day?", options=["Monday", "Tuesday"], name="day")
        return {"seats": order["seats"], "day": day}

    async with connected(caller(state)) as client:
        task = (await _call(client, "submit_task", agent="booker", text="the ferry"))["id"]
        await app.run_until_idle(state)
        asked = await _call(client, "get_task", id=task)
        assert (asked["question"], asked["answer_schema"]) == ("How many seats?", schema)
        assert "properties seats" in await _error(client, "answer_task", id=task, text="two")
        await _call(client, "answer_task", id=task, text='{"seats": 2}')
        await app.run_until_idle(state)
        asked = await _call(client, "get_task", id=task)
        assert (asked["options"], asked["answer_schema"]) == (["Monday", "Tuesday"], None)
        await _call(client, "answer_task", id=task, text="Monday")
        await app.run_until_idle(state)
        done = await _call(client, "get_task", id=task)
        assert done["result"] == {"seats": 2, "day": "Monday"}
        assert done["messages"][-1] == 'assistant: {"seats": 2, "day": "Monday"}'


async def test_owners_see_only_their_own_graph_facts_boards_and_tasks(state: State) -> None:
    ana, ben = caller(state, "ana"), caller(state, "ben")
    async with connected(ana) as hers, connected(ben) as his, connected(caller(state)) as nobodys:
        await _call(hers, "create_entities", entities=[RIGA])
        fact = await _call(hers, "remember", text="Riga has a harbour")
        board = await _call(hers, "create_board", conversation="c1", titles=["read"])
        task = await _call(hers, "submit_task", agent="writer", text="harbour", key="k1")
        for other in (his, nobodys):
            assert await _call(other, "read_graph") == {"entities": [], "relations": []}
            assert await _call(other, "recall", query="harbour") == {"facts": [], "events": []}
            assert await _call(other, "read_boards", conversation="c1") == {"boards": []}
            assert (await _call(other, "list_tasks"))["tasks"] == []
            await _error(other, "forget", id=fact["id"])
            await _error(other, "add_cards", board=board["id"], titles=["mine"])
            await _error(other, "get_task", id=task["id"])
            await _error(other, "cancel_task", id=task["id"])
            await _error(other, "answer_task", id=task["id"], text="yes")
            mine = await _call(other, "submit_task", agent="writer", text="harbour", key="k1")
            assert mine["id"] != task["id"]
        assert (await _call(hers, "read_graph"))["entities"] == [RIGA]
        assert len((await _call(hers, "recall", query="harbour"))["facts"]) == 1


async def test_a_second_tenant_with_the_same_names_is_apart(state: State) -> None:
    other = state.for_tenant(f"{state.tenant}-other")
    async with connected(caller(state, "ana")) as one, connected(caller(other, "ana")) as two:
        await _call(one, "create_entities", entities=[RIGA])
        assert (await _call(two, "read_graph"))["entities"] == []


async def test_a_caller_who_may_only_read_sees_and_uses_no_tool_that_writes(state: State) -> None:
    async with connected(caller(state, writes=False)) as client:
        tools = (await client.list_tools()).tools
        assert all(one.annotations.read_only_hint for one in tools)
        assert "may only read" in await _error(client, "create_entities", entities=[RIGA])
        assert (await _call(client, "read_graph"))["entities"] == []


async def test_a_graph_that_another_process_changed_is_read_again(state: State) -> None:
    one, two = MemoryGraph(state.items), MemoryGraph(state.items)
    await one.create_entities([RIGA])
    assert (await two.read()).to_json()["entities"] == [RIGA]
    await two.add_observations([("Riga", ["is old"])])
    await one.create_relations([{"from": "Riga", "to": "sea", "relationType": "lies at"}])
    [entity] = (await one.read()).to_json()["entities"]
    assert entity["observations"] == ["has a harbour", "is old"]
    await two.delete_entities(["Riga"])
    assert (await one.read()).to_json() == {"entities": [], "relations": []}


async def test_a_graph_larger_than_a_page_is_read_whole_and_in_order(state: State) -> None:
    names = [f"e{at}" for at in range(1_203)]
    for start in range(0, len(names), 200):
        rows = [{**RIGA, "name": name} for name in names[start : start + 200]]
        await MemoryGraph(state.items).create_entities(rows)
    found = (await MemoryGraph(state.items).read()).to_json()["entities"]
    assert [one["name"] for one in found] == names


async def test_observations_are_added_to_all_entities_or_none(state: State) -> None:
    async with connected(caller(state)) as client:
        await _call(client, "create_entities", entities=[RIGA])
        wanted = [
            {"entityName": "Riga", "contents": ["is old"]},
            {"entityName": "nobody", "contents": ["x"]},
        ]
        assert "nobody" in await _error(client, "add_observations", observations=wanted)
        assert (await _call(client, "read_graph"))["entities"] == [RIGA]


async def test_bad_arguments_are_named_and_nothing_is_written(state: State) -> None:
    async with connected(caller(state)) as client:
        text = await _error(client, "create_entities", entities=[RIGA, {"name": "x"}])
        assert "entityType" in text
        assert "entities[1]" in text
        huge = {**RIGA, "observations": ["x" * 2_000_000]}
        assert "1048576" in await _error(client, "create_entities", entities=[huge])
        await _error(client, "list_tasks", limit=101)
        await _error(client, "list_tasks", cursor="no cursor")
        await _error(client, "update_card", board="b", card="c", status="done")
        assert (await _call(client, "read_graph"))["entities"] == []
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("drop_everything", {})
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("memory://other")


async def test_a_subscriber_is_notified_of_changes_of_the_graph(state: State) -> None:
    async with connected(caller(state)) as client:
        async with client.listen(resource_subscriptions=["memory://knowledge-graph"]) as events:
            await _call(client, "create_entities", entities=[RIGA])
            event = await anext(aiter(events))
        assert event.uri == "memory://knowledge-graph"


async def _started(command: list[str], *messages: dict[str, Any]) -> asyncio.subprocess.Process:
    """A server on stdio that has answered all messages."""
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert server.stdin is not None
    assert server.stdout is not None
    for message in messages:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        if "id" in message:
            assert "result" in json.loads(await server.stdout.readline())
    return server


def _spoken(name: str) -> list[dict[str, Any]]:
    """What a client sends to create an entity."""
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    create = {"name": "create_entities", "arguments": {"entities": [{**RIGA, "name": name}]}}
    return [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": create},
    ]


async def test_what_was_acknowledged_is_there_after_kill_9(database: str) -> None:
    command = ours(database, "--tenant", f"killed-{os.getpid()}")
    for at in range(3):
        server = await _started(command, *_spoken(f"e{at}"))
        server.send_signal(signal.SIGKILL)
        await server.communicate()
    async with started(command) as client:
        names = [one["name"] for one in (await _call(client, "read_graph"))["entities"]]
    assert names == ["e0", "e1", "e2"]


async def test_two_servers_at_once_on_one_database_lose_nothing(database: str) -> None:
    tenant = f"two-{os.getpid()}"
    command = ours(database, "--tenant", tenant)
    async with started(command) as one, started(command) as two:
        await asyncio.gather(
            *(
                _call(client, "create_entities", entities=[{**RIGA, "name": f"{who}{at}"}])
                for at in range(10)
                for who, client in (("a", one), ("b", two))
            )
        )
        assert len((await _call(two, "read_graph"))["entities"]) == 20


async def test_sigterm_ends_a_server_on_stdio(database: str) -> None:
    server = await _started(ours(database), *_spoken("x"))
    server.terminate()
    assert await server.wait() == 0
    await server.communicate()


async def test_read_only_is_an_option_of_the_command(database: str) -> None:
    tenant = f"read-{os.getpid()}"
    async with started(ours(database, "--tenant", tenant, "--read-only")) as client:
        assert "may only read" in await _error(client, "create_entities", entities=[RIGA])
    async with holdfast.open(database, tenant=tenant) as state:
        assert (await MemoryGraph(state.for_owner("").items).read()).to_json()["entities"] == []
