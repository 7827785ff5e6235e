"""A tour of Holdfast: one agent uses every contract, in memory, and says what it does.

Run it with ``python examples/tour.py``. Nothing is kept: the same code on a Postgres URL would be.
"""

from __future__ import annotations

import asyncio

import holdfast
from holdfast import AgentId, ChatMessage, Document, Entity, Event, Relationship
from holdfast.content import TextBlock
from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.spi import StepKey

AGENT = AgentId("harbour", "pilot")
SESSION = "morning-watch"


def say(contract: str, what: str) -> None:
    """One line of the tour."""
    print(f"  {contract:<10}  {what}")


async def talk(state: holdfast.State) -> None:
    """Transcripts, and the session log they are a part of."""
    await state.history.append_many(
        AGENT,
        [
            ChatMessage.user("Can the freighter enter today?", name="Ines"),
            ChatMessage.assistant("Only with the afternoon tide: she draws nine metres."),
        ],
        session_id=SESSION,
        run_id="run-1",
    )
    turns = await state.history.get_messages(AGENT, session_id=SESSION)
    say("history", f"{len(turns)} messages; the last: {turns[-1].text!r}")

    await state.episodes.append(
        [Event(AGENT, SESSION, "decision", {"enter": "14:30", "because": "tide at nine metres"})]
    )
    [hit, *_] = await state.episodes.recall(
        AGENT, "why do we enter with the tide?", types=["decision"]
    )
    say("episodes", f"recalled a {hit.event.type} by {hit.found_by[0]} search: {hit.event.payload}")
    view = holdfast.memory.compact(turns, budget=40)
    say("compact", f"a view of {len(view)} of {len(turns)} messages fits 40 tokens")


async def remember(state: holdfast.State) -> None:
    """Working state, facts, documents and the graph between them."""
    await state.short_term.update_state(SESSION, {"current_task": "berth the freighter", "step": 1})
    await state.short_term.update_state(SESSION, {"step": 2})
    working = await state.short_term.get_state(SESSION)
    say("short_term", f"step {working['step']} of {working['current_task']!r}")

    await state.graph.add_entities(
        [
            Entity("Ship", {"name": "Meridian"}, "meridian"),
            Entity("Berth", {"name": "North Quay"}, "north-quay"),
        ]
    )
    await state.graph.add_relationships([Relationship("meridian", "north-quay", "moors_at")])
    around = await state.graph.get_neighbors("meridian")
    edge = around.relationships[0]
    say("graph", f"{edge.source_id} --{edge.type}--> {edge.target_id}")

    await state.long_term.save(
        AGENT, "The Meridian needs two tugs", topic="ships", entities=["meridian"]
    )
    [fact] = await state.long_term.search(AGENT, "how many tugs?")
    say("long_term", f"{fact.content!r}, found by {' and '.join(fact.found_by)}")

    await state.vectors.add(
        [
            Document.from_text("tide tables", id="tides", metadata={"year": 2030}),
            Document.from_text("crane manual", id="crane", metadata={"year": 2024}),
        ],
        collection="manuals",
    )
    [asked] = await HashEmbedder().embed(["tables of the tide"], mode="query")
    [nearest] = await state.vectors.search(
        list(asked), collection="manuals", limit=1, filter={"year": {"$gte": 2025}}
    )
    say("vectors", f"nearest to the question: {nearest.id} (score {nearest.score:.2f})")


async def work(state: holdfast.State) -> None:
    """Blobs, a to-do board, and a durable task with a worker that dies."""
    ref = await state.blobs.store(b"chart of the channel", content_type="text/plain")
    await state.blobs.pin(ref)
    info = await state.blobs.stat(ref)
    say("blobs", f"{info.size_bytes} bytes behind a ref, pinned: {info.pinned}")

    board = await state.boards.create_task_list("conv-1", ["order tugs", "call the berth"])
    done = await state.boards.update_status(board.id, board.tasks[0].id, "succeeded")
    assert done is not None
    say("boards", f"{done.title!r} is {done.status}")

    task = await state.tasks.submit(AGENT, ChatMessage.user("Berth the Meridian"))
    [first] = await state.tasks.claim("worker-1", lease_seconds=30)
    await state.tasks.record_step(first.lease, StepKey("order tugs"), {"tugs": 2})
    say("tasks", "worker-1 stored the step 'order tugs', and dies without a word")
    CLOCK.advance(31)
    await state.tasks.recover_expired()
    [second] = await state.tasks.claim("worker-2")
    [step] = await state.tasks.steps(task.id)
    say("tasks", f"worker-2 goes on, and finds {step.key.name!r} done: {step.result}")
    try:
        await state.tasks.transition(first.lease, "failed", note="a late write of a dead worker")
    except holdfast.errors.LeaseLostError:
        say("tasks", "worker-1 wakes up and writes: refused, its lease is lost")
    await state.tasks.append_artifact(
        second.lease, "log.txt", [TextBlock("moored at 15:10")], last_chunk=True
    )
    ended = await state.tasks.transition(second.lease, "completed")
    say("tasks", f"{ended.state}, after {second.lease.fence} claims, with one artifact")


async def coordinate(state: holdfast.State) -> None:
    """A channel between agents."""
    channel = state.channel("harbour")
    await channel.publish({"berth": "North Quay", "free": False})
    [event] = await channel.read()
    say("channel", f"another agent reads {event.event}")


async def main() -> None:
    """Open a state and walk through it."""
    async with holdfast.open("memory:", embedder=HashEmbedder(), clock=CLOCK) as state:
        print(f"{state!r}\n")
        for stop in (talk, remember, work, coordinate):
            await stop(state)
        health = await state.ops.health()
        print(f"\nhealth: {health.status}; durability: {health.engines[0].durability}")
        print("Read on in README.md and docs/.")


CLOCK = holdfast.ManualClock()

if __name__ == "__main__":
    asyncio.run(main())
