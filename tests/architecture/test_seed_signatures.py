"""The Protocols have the signatures that were asked for, and add only what a caller may leave out."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any

import pytest

from holdfast.contracts import blobs, cypher_graph, history, long_term_memory, short_term, vectors
from holdfast.contracts import boards as board_contract
from holdfast.contracts import graph as graph_contract
from holdfast.values import boards, documents, facts, graph
from scripts.generate_docs import spelled

PROTOCOLS: dict[str, Any] = {
    "BlobStore": blobs.BlobStore,
    "HistoryProvider": history.HistoryProvider,
    "VectorStore": vectors.VectorStore,
    "GraphStore": graph_contract.GraphStore,
    "ShortTermMemory": short_term.ShortTermMemory,
    "LongTermMemory": long_term_memory.LongTermMemory,
    "TaskStore": board_contract.TaskStore,
}

SIGNATURES = {
    "BlobStore.store": "(data: bytes | str, *, content_type: str = 'application/octet-stream') -> str",
    "BlobStore.resolve": "(ref: str) -> bytes",
    "BlobStore.pin": "(ref: str) -> None",
    "BlobStore.unpin": "(ref: str) -> None",
    "HistoryProvider.append": "(agent_id: AgentId, message: ChatMessage, *, session_id: str, run_id: str = '') -> None",
    "HistoryProvider.append_many": "(agent_id: AgentId, messages: list[ChatMessage], *, session_id: str, run_id: str = '') -> None",
    "HistoryProvider.get_messages": "(agent_id: AgentId, *, session_id: str, limit: int | None = None, offset: int | None = None) -> list[ChatMessage]",
    "HistoryProvider.clear": "(agent_id: AgentId, *, session_id: str) -> None",
    "HistoryProvider.clear_run": "(agent_id: AgentId, *, session_id: str, run_id: str) -> None",
    "HistoryProvider.count_messages": "(agent_id: AgentId, *, session_id: str) -> int",
    "VectorStore.add": "(documents: list[Document], *, collection: str = 'default') -> list[str]",
    "VectorStore.search": "(query_embedding: list[float], *, collection: str = 'default', limit: int = 5, filter: dict[str, Any] | None = None) -> list[SearchResult]",
    "VectorStore.get": "(ids: list[str], *, collection: str = 'default') -> list[Document]",
    "VectorStore.upsert": "(documents: list[Document], *, collection: str = 'default') -> list[str]",
    "VectorStore.delete": "(ids: list[str], *, collection: str = 'default') -> int",
    "VectorStore.list_collections": "() -> list[str]",
    "VectorStore.delete_collection": "(collection: str) -> int",
    "GraphStore.add_entities": "(entities: list[Entity]) -> list[str]",
    "GraphStore.add_relationships": "(relationships: list[Relationship]) -> list[str]",
    "GraphStore.get_neighbors": "(entity_id: str, *, depth: int = 1, relationship_types: list[str] | None = None) -> SubGraph",
    "GraphStore.delete_entity": "(entity_id: str) -> bool",
    "GraphStore.delete_relationship": "(relationship_id: str) -> bool",
    "ShortTermMemory.get_state": "(session_id: str) -> dict[str, Any]",
    "ShortTermMemory.set_state": "(session_id: str, state: dict[str, Any]) -> None",
    "ShortTermMemory.update_state": "(session_id: str, patch: dict[str, Any]) -> None",
    "ShortTermMemory.clear": "(session_id: str) -> None",
    "LongTermMemory.save": "(agent_id: AgentId, content: str, *, namespace: str = 'default', metadata: dict[str, Any] | None = None, ttl_seconds: int | None = None) -> str",
    "LongTermMemory.search": "(agent_id: AgentId, query: str, *, namespace: str = 'default', limit: int = 10) -> list[Memory]",
    "LongTermMemory.get": "(agent_id: AgentId, memory_id: str, *, namespace: str = 'default') -> Memory | None",
    "LongTermMemory.delete": "(agent_id: AgentId, memory_id: str, *, namespace: str = 'default') -> bool",
    "LongTermMemory.clear": "(agent_id: AgentId, *, namespace: str = 'default') -> None",
    "TaskStore.create_task_list": "(conversation_id: str, task_titles: list[str], *, agent_id: str = '', agent_label: str = '', parent_agent_id: str | None = None, max_retries: int = 3) -> TaskList",
    "TaskStore.get_task_list": "(task_list_id: str) -> TaskList | None",
    "TaskStore.get_by_conversation": "(conversation_id: str) -> TaskList | None",
    "TaskStore.get_boards_by_conversation": "(conversation_id: str) -> list[TaskList]",
    "TaskStore.update_status": "(task_list_id: str, task_id: str, status: TaskStatus | str, note: str = '') -> Task | None",
    "TaskStore.add_tasks": "(task_list_id: str, titles: list[str]) -> list[Task]",
    "TaskStore.delete_task": "(task_list_id: str, task_id: str) -> bool",
    "TaskStore.increment_retry": "(task_list_id: str, task_id: str) -> Task | None",
    "TaskStore.force_retry": "(task_list_id: str, task_id: str) -> Task | None",
    "TaskStore.update_task_title": "(task_list_id: str, task_id: str, title: str) -> Task | None",
}

WIDENED = {
    "ShortTermMemory.set_state": "int | None",
    "ShortTermMemory.update_state": "int | None",
}
"""Methods that may return more than was asked for. A store that returns what was asked for still
is one, and a caller that ignores the result sees no difference."""

FIELDS: dict[Any, list[str]] = {
    documents.Document: ["content", "id", "embedding", "metadata"],
    documents.SearchResult: ["id", "content", "score", "metadata"],
    graph.Entity: ["label", "properties", "id"],
    graph.Relationship: ["source_id", "target_id", "type", "properties", "id"],
    graph.SubGraph: ["entities", "relationships"],
    facts.Memory: ["content", "score", "id", "metadata"],
    boards.Task: ["id", "title", "status", "order", "retry_count", "note"],
    boards.TaskList: [
        *("id", "conversation_id", "tasks", "max_retries", "agent_id", "agent_label"),
        "parent_agent_id",
    ],
}


def _parameters(signature: str) -> tuple[list[tuple[str, str, str, str]], str]:
    """Name, kind, annotation and default of each parameter, and what is returned."""
    [function] = ast.parse(f"def f{signature}: ...").body
    assert isinstance(function, ast.FunctionDef)
    args, found = function.args, []
    plain = args.posonlyargs + args.args
    padding: list[Any] = [None] * (len(plain) - len(args.defaults))
    for kind, group, defaults in (
        ("plain", plain, [*padding, *args.defaults]),
        ("keyword-only", args.kwonlyargs, args.kw_defaults),
    ):
        for arg, default in zip(group, defaults, strict=True):
            annotation = ast.unparse(arg.annotation) if arg.annotation else ""
            found.append((arg.arg, kind, annotation, ast.unparse(default) if default else ""))
    return found, ast.unparse(function.returns) if function.returns else ""


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_method_has_the_signature_that_was_asked_for(name: str) -> None:
    protocol, method = name.split(".")
    function = getattr(PROTOCOLS[protocol], method)
    ours, returned = _parameters(spelled(function))
    asked, expected = _parameters(SIGNATURES[name])
    assert inspect.iscoroutinefunction(function)
    assert getattr(function, "__isabstractmethod__", False)
    assert ours[: len(asked)] == asked
    assert returned == WIDENED.get(name, expected)
    assert set(expected.split(" | ")) <= set(returned.split(" | "))
    for parameter, kind, _, default in ours[len(asked) :]:
        assert kind == "keyword-only", f"{parameter} was added as a positional parameter"
        assert default, f"{parameter} was added without a default"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_store_with_exactly_these_methods_is_one(name: str) -> None:
    asked = {one.partition(".")[2] for one in SIGNATURES if one.startswith(f"{name}.")}
    store = type("Store", (), dict.fromkeys(asked, lambda: None))()
    assert isinstance(store, PROTOCOLS[name])


def test_no_method_that_was_asked_for_is_left_out_of_the_table() -> None:
    assert len(SIGNATURES) == 41


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_a_value_type_has_the_fields_that_were_asked_for(kind: Any) -> None:
    names = [field.name for field in dataclasses.fields(kind)]
    asked = FIELDS[kind]
    assert names[: len(asked)] == asked
    assert kind.__dataclass_params__.frozen
    for field in dataclasses.fields(kind)[len(asked) :]:
        given = (field.default, field.default_factory)
        assert given != (dataclasses.MISSING, dataclasses.MISSING), f"{field.name} has no default"


def test_the_states_of_a_card_are_those_that_were_asked_for() -> None:
    assert [status.value for status in boards.TaskStatus] == [
        *("planned", "in_progress", "blocked", "succeeded", "failed", "abandoned"),
    ]


def test_retention_and_cypher_are_there() -> None:
    assert [one.name for one in history.HistoryRetention] == ["PERMANENT", "RUN", "NONE"]
    assert hasattr(cypher_graph.CypherCapable, "query_cypher")
