from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.spi.document_draft import draft_documents
from holdfast.values import errors
from holdfast.values.checks import check_id, check_time, check_vector
from holdfast.values.clock import ManualClock
from holdfast.values.content import (
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolUseBlock,
    UnknownBlock,
)
from holdfast.values.documents import Document
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id, new_ref

ERRORS: list[Any] = [
    errors.NotFoundError("blob", "b1"),
    errors.ConflictError("message", "m1"),
    errors.AlreadyExistsError("document", "d1"),
    errors.VersionConflictError("state", "s1", expected=1, actual=2),
    errors.IllegalTransitionError("task", "t1", from_state="completed", to_state="working"),
    errors.LeaseLostError("task", "t1"),
    errors.InvalidInputError("limit", "must be 0 or more"),
    errors.NotSupportedError("redis", "graph", why="use postgres"),
    errors.CodecError("not JSON"),
    errors.SealedError("the data key 7 was destroyed"),
    errors.ConfigError("no"),
    errors.UnknownSchemeError("mysql", known=["memory"]),
    errors.MissingExtraError("the redis engine", "redis"),
    errors.SchemaError(have=1, want=2),
    errors.BackPressureError(retry_after_seconds=1.5),
    errors.EngineError("postgres", "out of disk"),
    errors.UnavailableError("redis", "refused"),
    errors.TimedOutError("postgres", "no answer"),
    errors.HoldfastError("root"),
]


def test_the_list_of_errors_here_is_complete() -> None:
    every = {one for _, one in inspect.getmembers(errors, inspect.isclass)
             if one.__module__ == errors.__name__}  # fmt: skip
    assert {type(one) for one in ERRORS} == every


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_is_picklable_with_its_facts(error: Any) -> None:
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))


def test_errors_are_also_what_python_calls_them() -> None:
    assert isinstance(ERRORS[0], LookupError)
    assert isinstance(errors.InvalidInputError("f", "p"), ValueError)
    assert isinstance(errors.MissingExtraError("x", "y"), ImportError)
    assert isinstance(errors.UnavailableError("x", "y"), ConnectionError)
    assert isinstance(errors.TimedOutError("x", "y"), TimeoutError)


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn = errors.__doc__ or ""
    for error in ERRORS:
        assert type(error).__name__ in drawn


def test_messages_say_the_next_step() -> None:
    lacking = str(errors.MissingExtraError("it", "redis"))
    assert "pip install '.[redis]' in the folder of the project" in lacking
    assert "'holdfast[redis]' from your own index" in lacking
    assert "holdfast db migrate" in str(errors.SchemaError(have=1, want=2))
    assert "upgrade holdfast" in str(errors.SchemaError(have=3, want=2))
    assert "memory, postgresql" in str(
        errors.UnknownSchemeError("x", known=["memory", "postgresql"])
    )


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=100))
def test_parse_and_str_of_an_agent_id_are_inverse(text: str) -> None:
    agent = AgentId.parse(text)
    assert str(agent) == text
    assert AgentId(agent.type, agent.key) == agent
    assert AgentId.parse(agent) is agent


@pytest.mark.parametrize(
    ("kind", "key"),
    [("a/b", "c"), ("", "a/b"), ("", ""), ("a", ""), ("a", "b\n"), ("a", "b" * 512)],
)
def test_an_agent_id_that_would_not_parse_back_is_refused(kind: str, key: str) -> None:
    with pytest.raises(errors.InvalidInputError) as caught:
        AgentId(kind, key)
    assert caught.value.field == "agent_id"


@pytest.mark.parametrize("bad", [None, 3, b"a", ["a"]])
def test_an_agent_id_of_another_type_is_refused(bad: Any) -> None:
    with pytest.raises(errors.InvalidInputError):
        AgentId.parse(bad)


def test_ids_are_version_7_and_increase_across_threads() -> None:
    minted: list[str] = []

    def mint() -> None:
        for _ in range(500):
            minted.append(new_id())  # noqa: PERF401 - one by one, so that threads interleave

    threads = [threading.Thread(target=mint) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(minted)) == 2000
    assert {uuid.UUID(one).version for one in minted} == {7}
    assert {uuid.UUID(one).variant for one in minted} == {uuid.RFC_4122}
    alone = [new_id() for _ in range(1000)]
    assert alone == sorted(alone)


def test_refs_are_unguessable_ids() -> None:
    refs = {new_ref() for _ in range(1000)}
    assert len(refs) == 1000
    assert all(check_id("ref", ref) for ref in refs)


def test_a_manual_clock_never_goes_back() -> None:
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)


def test_a_media_block_has_exactly_one_source() -> None:
    for sources in ({}, {"url": "u", "data": b"d"}, {"url": "u", "blob_ref": "r"}):
        with pytest.raises(errors.InvalidInputError, match="exactly one"):
            ImageBlock(**sources)
    with pytest.raises(errors.InvalidInputError, match="bytes"):
        DocumentBlock(data="text")  # type: ignore[arg-type]
    assert ImageBlock(data=b"").data == b""


def test_an_unknown_block_needs_a_type() -> None:
    with pytest.raises(errors.InvalidInputError):
        UnknownBlock({"x": 1})


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"role": "robot"}, "role"),
        ({"content": "text"}, "content"),
        ({"id": ""}, "id"),
        ({"name": 3}, "name"),
        ({"created_at": datetime(2030, 1, 1)}, "created_at"),  # noqa: DTZ001 - refused for that
    ],
)
def test_a_message_with_a_bad_field_names_it(bad: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.InvalidInputError) as caught:
        ChatMessage(**({"role": "user", "content": []} | bad))
    assert caught.value.field == field


def test_the_helpers_of_a_message() -> None:
    call = ToolUseBlock(id="c1", name="search")
    message = ChatMessage.assistant([TextBlock("a"), call, TextBlock("b")])
    assert (message.text, message.tool_uses) == ("ab", [call])
    answer = ChatMessage.tool("c1", "3 hits", is_error=True, name="search")
    assert (answer.role, answer.text, answer.name) == ("tool", "3 hits", "search")
    assert answer.tool_results[0].is_error
    assert ChatMessage.user("x").id != ChatMessage.user("x").id


def test_a_sequence_number_takes_no_part_in_equality() -> None:
    message = ChatMessage.user("x")
    assert ChatMessage(**{**_fields(message), "seq": 7}) == message


def _fields(message: ChatMessage) -> dict[str, Any]:
    return {name: getattr(message, name) for name in ChatMessage.__dataclass_fields__}


def test_times_at_the_edge_of_the_calendar_are_refused_or_kept() -> None:
    # Postgres has a word for the very first and last moment, and its driver takes them for it.
    for edge in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        found = check_time("t", edge)
        assert found.year == edge.year
        assert found != edge
    from datetime import timedelta, timezone  # noqa: PLC0415 - used here only

    with pytest.raises(errors.InvalidInputError):
        check_time("t", datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))))


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=8))
def test_vectors_of_32_bit_floats_are_kept_exactly(vector: list[float]) -> None:
    if sum(number * number for number in vector) < 1e-20:
        return
    assert check_vector("v", vector) == vector


def test_a_child_of_a_fork_mints_other_ids() -> None:
    """In a process of its own, which has no threads that a fork would break."""
    code = """
import os
from holdfast.values import ids
ids.new_id()
read, write = os.pipe()
child = os.fork()
pool = ids._pool
found = [ids.new_id()[-8:] for _ in range(100)]
if child == 0:
    os.write(write, " ".join(found).encode())
    os._exit(0)
os.waitpid(child, 0)
other = os.read(read, 65536).decode().split()
print(len(set(found) | set(other)), len(pool))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The parent goes on with what it has; the child has asked for its own.
    assert run.stdout.split() == ["200", "4096"]


@pytest.mark.parametrize("bad", [5, None, b"x", bytearray(b"x"), {"a": 1}, TextBlock("hi")])
def test_a_message_of_what_is_neither_text_nor_blocks_says_what_it_takes(bad: Any) -> None:
    for make in (ChatMessage.user, ChatMessage.system, ChatMessage.assistant):
        with pytest.raises(errors.InvalidInputError, match="text or a list of blocks") as caught:
            make(bad)
        assert caught.value.field == "content"
    assert ChatMessage.user(iter([TextBlock("hi")])).text == "hi"  # type: ignore[arg-type]


def test_an_array_is_refused_with_the_call_that_makes_it_a_list() -> None:
    vector = np.array([1.0, 0.0], dtype="float32")
    for array in (vector, list(vector)):
        with pytest.raises(errors.InvalidInputError, match=r"use \.tolist\(\)"):
            check_vector("embedding", array)
    assert check_vector("embedding", vector.tolist()) == [1.0, 0.0]


def test_a_document_of_plain_text_is_refused_with_the_call_that_takes_it() -> None:
    document = Document(content="low tide")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidInputError, match=r"Document\.from_text"):
        draft_documents([document], replace=False)
