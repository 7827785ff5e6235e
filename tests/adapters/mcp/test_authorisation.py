"""Every tool over HTTP for its owner and for everybody else: nothing leaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

import holdfast
from holdfast.adapters.mcp.board_tools import BOARD_TOOLS
from holdfast.adapters.mcp.fact_tools import FACT_TOOLS
from holdfast.adapters.mcp.graph_tools import GRAPH_TOOLS
from holdfast.adapters.mcp.task_tools import TASK_TOOLS
from holdfast.values.ids import new_id, new_ref
from tests.adapters.mcp.test_http import HEADERS, _serving

TOOLS = (*GRAPH_TOOLS, *FACT_TOOLS, *BOARD_TOOLS, *TASK_TOOLS)
pytestmark = pytest.mark.asyncio(loop_scope="session")
TREASURE = "underneath the oak"
NODE = {"name": "oak", "entityType": "tree", "observations": [TREASURE]}
EDGE = {"from": "oak", "to": "oak", "relationType": "is"}


@dataclass(frozen=True)
class Ids:
    """What a call is about."""

    task: str
    fact: str
    board: str
    card: str
    conversation: str
    name: str


CALLS: dict[str, Callable[[Ids], dict[str, Any]]] = {
    "read_graph": lambda _: {},
    "search_nodes": lambda i: {"query": i.name},
    "open_nodes": lambda i: {"names": [i.name]},
    "add_observations": lambda i: {"observations": [{"entityName": i.name, "contents": ["x"]}]},
    "delete_observations": lambda i: {
        "deletions": [{"entityName": i.name, "observations": [TREASURE]}]
    },
    "delete_relations": lambda i: {
        "relations": [{"from": i.name, "to": i.name, "relationType": "is"}]
    },
    "delete_entities": lambda i: {"entityNames": [i.name]},
    "recall": lambda _: {"query": "oak"},
    "list_facts": lambda _: {},
    "forget": lambda i: {"id": i.fact},
    "read_boards": lambda i: {"conversation": i.conversation},
    "add_cards": lambda i: {"board": i.board, "titles": ["x"]},
    "update_card": lambda i: {"board": i.board, "card": i.card, "status": "in_progress"},
    "list_tasks": lambda _: {},
    "get_task": lambda i: {"id": i.task},
    "answer_task": lambda i: {"id": i.task, "text": "x"},
    "cancel_task": lambda i: {"id": i.task},
}
READS = ("read_graph", "search_nodes", "open_nodes", "recall", "list_facts", "read_boards")
MAKES = {"create_entities", "create_relations", "remember", "create_board", "submit_task"}
"""They name nothing that exists: what they make is the caller's own."""


async def _call(http: httpx.AsyncClient, key: str, tool: str, asked: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body |= {"params": {"name": tool, "arguments": asked}}
    headers = {**HEADERS, **({"authorization": f"Bearer {key}"} if key else {})}
    return await http.post(str(http.base_url).rstrip("/"), json=body, headers=headers)


async def _made(http: httpx.AsyncClient, key: str, tool: str, **asked: Any) -> Any:
    answer = (await _call(http, key, tool, asked)).json()["result"]
    assert not answer.get("isError"), answer
    return answer["structuredContent"]


async def test_the_matrix_has_every_tool() -> None:
    assert {one.name for one in TOOLS} == set(CALLS) | MAKES


async def test_what_is_anothers_is_answered_as_what_never_was(database: str) -> None:
    tenant = new_ref()
    async with holdfast.open(database, tenant=tenant) as state:
        other = state.for_tenant(new_ref())
        revoked, expired = [await state.keys.create("ana") for _ in range(2)]
        await state.keys.revoke(revoked.key.id)
        await state.keys.rotate(expired.key.id, grace_seconds=0)
        ana = (await state.keys.create("ana")).text
        others = {
            "other owner": (await state.keys.create("max")).text,
            "other reader": (await state.keys.create("max", scope="reader")).text,
            "other tenant": (await other.keys.create("ana")).text,
            "other operator": (await other.keys.create("root", scope="operator")).text,
        }
        refused = {"revoked": revoked.text, "expired": expired.text, "wrong": "hf_x", "none": ""}
    async with (
        _serving(database, tenant, "--auth") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):
        await _made(http, ana, "create_entities", entities=[NODE])
        await _made(http, ana, "create_relations", relations=[EDGE])
        fact = await _made(http, ana, "remember", text=f"it is {TREASURE}")
        board = await _made(http, ana, "create_board", conversation="quay", titles=[TREASURE])
        task = await _made(http, ana, "submit_task", agent="writer", text=TREASURE)
        card = board["cards"][0]["id"]
        mine = Ids(task["id"], fact["id"], board["id"], card, "quay", "oak")
        never = Ids(new_id(), new_id(), new_id(), new_id(), "shore", "elm")
        before = [(await _call(http, ana, tool, CALLS[tool](mine))).text for tool in READS]
        assert all(TREASURE in one for one in before), before
        for who, key in others.items():
            for tool, asked in CALLS.items():
                seen = await _call(http, key, tool, asked(mine))
                wanted = await _call(http, key, tool, asked(never))
                what = f"{tool} by {who}"
                text = seen.text
                for own, none in zip(vars(mine).values(), vars(never).values(), strict=True):
                    text = text.replace(own, none)
                assert (seen.status_code, text) == (wanted.status_code, wanted.text), what
                assert TREASURE not in seen.text, what
        for who, key in refused.items():
            for tool, asked in CALLS.items():
                answer = await _call(http, key, tool, asked(mine))
                assert answer.status_code == 401, f"{tool} by {who}"
        after = [(await _call(http, ana, tool, CALLS[tool](mine))).text for tool in READS]
        assert after == before
