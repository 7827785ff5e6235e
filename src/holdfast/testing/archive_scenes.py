"""A little of everything that a tenant can hold, for the tests of archives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.documents import Document
from holdfast.values.events import Event
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from holdfast.values.items import ItemPut
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import PushConfig

ANA = AgentId("writer", "ana")
TWO = ChatMessage.user("two")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TEXT = "naïve \x00 and \x01 \U0001f40b"
"""Text that a store must not change, with what Postgres cannot store as it is."""


async def fill(store: Callable[..., Any], *, ttl_seconds: float = 86_400.0) -> dict[str, Any]:
    """Store something through every contract. Returns what the tests ask for again."""
    await _fill_memory(store, ttl_seconds)
    await _fill_stores(store, ttl_seconds)
    made = await store("keys").create("ana", name=TEXT, ttl_seconds=ttl_seconds)
    gone = await store("keys").create("ben", scope="reader")
    await store("keys").revoke(gone.key.id)
    tasks = await _fill_tasks(store)
    more = {"agent": "writer", "message": "Tides?", "owner": "ana", "missed": "all"}
    await store("schedules").create("tides", "0 * * * *", **more)
    await store("schedules").create("moon", "0 9 * * *", agent="writer", message="Moon?")
    await store("schedules").pause("moon")
    return {"key": made.text, **tasks}


async def _fill_memory(store: Callable[..., Any], ttl_seconds: float) -> None:
    episodes, facts = store("episodes"), store("long_term")
    await episodes.start_session(ANA, "s1", metadata={"port": "Brest"}, subject="ravi")
    await episodes.append(
        [
            Event(ANA, "s1", "decision", {"use": "postgres", "n": TEXT}, occurred_at=NOON),
            Event(ANA, "s1", "note", {"text": "spring tides"}, run_id="r1", occurred_at=NOON),
        ]
    )
    await episodes.append([Event(ANA, "s2", "note", {"text": "a vector"})], embeddings=[[1.0, 0.5]])
    await episodes.clear("s1", run_id="r1")
    await episodes.append([Event(ANA, "s1", "note", {"text": "the harbour is closed"})])
    await episodes.start_session(ANA, "s3", subject="ben")
    await episodes.append([Event(ANA, "s3", "note", {"text": str(at)}) for at in range(3)])
    await episodes.delete_session("s3")
    await episodes.end_session("s2")
    await episodes.fork("s1", "s4", at=3)
    await store("history").append(ANA, ChatMessage.user(TEXT), session_id="s1", run_id="r2")
    await store("short_term").set_state("s1", {"b": 1e16, "a": [-0.0, None], TEXT: TEXT})
    await store("short_term").set_state("s2", {"step": 1}, ttl_seconds=ttl_seconds)
    old = await facts.save(ANA, "the tide is low", topic=TEXT, idempotency_key="k1")
    await facts.update(ANA, old, "the tide is high", idempotency_key="k2")
    port = {"namespace": "ports", "ttl_seconds": int(ttl_seconds), "confidence": 0.5}
    await facts.save(ANA, TEXT, **port, subject="ravi")


async def _fill_stores(store: Callable[..., Any], ttl_seconds: float) -> None:
    document = Document([TextBlock(TEXT)], "d1", [0.1, 0.2], {"k": TEXT, "n": 1})
    await store("vectors").upsert(
        [document, Document([TextBlock("b")], "d2", [1.0, 0.0], {}, "ravi")]
    )
    graph = store("graph")
    await graph.add_entities([Entity("Person", {"name": "Ravi", "x": TEXT}, "ravi")])
    await graph.add_entities([Entity("Port", {}, "brest", "ravi")])
    await graph.add_relationships([Relationship("ravi", "brest", "lives_in", {"n": 1e16}, "r1")])
    await graph.add_relationships([Relationship("ravi", "ravi", "knows", {}, "r2")])
    blobs = store("blobs")
    await blobs.store(b"low tide" * 300_000, content_type="text/plain")
    await blobs.store(b"", content_type="text/plain", subject="ana")
    await blobs.pin(await blobs.store(b"low tide", content_type="text/plain"))
    await blobs.delete(await blobs.store(b"gone", content_type="text/plain"))
    boards = store("boards")
    board = await boards.create_task_list("c1", ["one", TEXT, "three"], agent_label=TEXT)
    await boards.create_task_list("c1", [], agent_id="ben", parent_agent_id="ana")
    await boards.delete_task(board.id, board.tasks[0].id)
    await boards.add_tasks(board.id, ["four"])
    await boards.update_status(board.id, board.tasks[1].id, "blocked", note=TEXT)
    await boards.increment_retry(board.id, board.tasks[2].id)
    channel = store("channels", name="alerts")
    for at in range(3):
        await channel.publish({"at": at, "text": TEXT}, id=f"e{at}")
    points = store("checkpoints")
    body, about = TypedBytes("json", b"{}"), TypedBytes("msgpack", b"\x80")
    first = Checkpoint("t1", "", "c1", None, body, about, {"step": 1, TEXT: TEXT}, {"a": "1"})
    await points.put(first, new_values={"a": TypedBytes("json", b"1")})
    second = Checkpoint("t1", "sub", "c2", "c1", body, about, {"run_id": "r1"}, {"a": "1"})
    await points.put(second, new_values={"a": None}, ttl_seconds=ttl_seconds)
    await points.put_writes("t1", "sub", "c2", [Write("k1", -1, "a", body, TEXT)])
    items = store("items")
    await items.put_many([ItemPut(("users", "ana"), "a", {"k": TEXT}, vectors=[[1.0, 0.1]])])
    await items.put_many([ItemPut(("users",), "b", {}, ttl_seconds=ttl_seconds, subject="ravi")])


async def _fill_tasks(store: Callable[..., Any]) -> dict[str, Any]:
    tasks = store("tasks")
    hook = PushConfig("p1", "https://example.org/hook", token=TEXT, authentication={"a": 1})
    first = await tasks.submit(
        "writer",
        ChatMessage.user("one"),
        session_id="c1",
        submit_key="k1",
        push=[hook],
        owner="ana",
    )
    [work] = await tasks.claim("w1", app_version="app-1")
    lease = work.lease
    step = StepKey("fetch")
    await tasks.append_artifact(lease, "a1", [TextBlock(TEXT)], name=TEXT, step=step)
    await tasks.append_artifact(lease, "a1", [TextBlock("more")], append=True, last_chunk=True)
    await tasks.record_step(lease, step, {"n": 1e16})
    await tasks.append_message(lease, ChatMessage.assistant(TEXT), step=StepKey("hi", kind="say"))
    await tasks.add_cleanup(lease, "blob", "b1")
    child = await tasks.submit_child(lease, StepKey("child", kind="child"), "helper", TWO)
    await tasks.send(first.id, {"approved": True}, topic="approval", owner="ana")
    await tasks.append_feedback(first.id, TEXT, rating=2, metadata={"k": 1}, owner="ana")
    [entry, *_] = await tasks.claim_outbox()
    await tasks.mark_failed(entry, TEXT)
    await tasks.transition(lease, "submitted", children=[child.id], note=TEXT)
    versions = {child.agent: ["v2", "v1"]}
    [child_work] = await tasks.claim("w2", versions=versions, app_version="app-2")
    assert child_work.task.handler_version == "v2"
    waits = await tasks.submit("writer", ChatMessage.user("three"), priority=3, key="k")
    later = await tasks.submit(
        "writer", ChatMessage.user("four"), run_after=NOON.replace(year=2090)
    )
    await tasks.submit("writer", ChatMessage.user("five"), session_id="c1", owner="ana")
    return {"first": first.id, "lease": child_work.lease, "waits": waits.id, "later": later.id}
