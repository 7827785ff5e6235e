"""Store a little of everything, by what every version since the first landed one has.

``making.py`` runs it with an earlier version's code.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import holdfast
from holdfast import (
    AgentId,
    App,
    ChatMessage,
    Document,
    Entity,
    Event,
    PushConfig,
    Relationship,
    Settings,
    State,
    TaskContext,
)
from tests.upgrade.reading import CHANNELS, FAR_SECONDS, HOT, PLAIN, plain, read, read_hot

ANA = AgentId("harbour", "pilot")
OLD: Any = holdfast
"""The names that have moved since, which only an earlier version is asked for."""
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def app() -> App:
    """A handler that stores a step, notes, a message and an artifact, and asks."""
    found = App("clerk")

    @found.handler
    async def work(task: TaskContext) -> str:
        async def order() -> dict[str, int]:
            await task.memory.record("decision", {"pier": "north"})
            await task.memory.state.update({"draft": "half of it"})
            return {"tugs": 2}

        ordered = await task.step("order", order)
        await task.say("Two tugs are ordered.")
        await task.artifact("plan.md", "Enter with the tide.")
        answer = await task.ask("Which pier?")
        return f"{ordered['tugs']} tugs to {answer.text}"

    return found


async def fill_sessions(state: State, who: str) -> None:
    """Transcripts, events, working states and boards."""
    await state.history.append_many(
        ANA,
        [
            ChatMessage.user(f"Can the freighter of {who} enter?", name="Ines"),
            ChatMessage.assistant("With the tide: she draws nine metres."),
        ],
        session_id="s1",
        run_id="r1",
    )
    await state.history.append(ANA, ChatMessage.user("Thank you"), session_id="s1", run_id="r2")
    await state.episodes.start_session(ANA, "s2", metadata={"watch": "night"})
    await state.episodes.append(
        [
            Event(ANA, "s2", "decision", {"enter": "14:30"}, id="e1", occurred_at=NOON),
            Event(ANA, "s2", "note", {"wind": 'north "5"', "n": 1.5}, id="e2", occurred_at=NOON),
        ],
        embeddings=[[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.5]],
    )
    await state.episodes.append([Event(ANA, "s2", "note", {"cleared": True}, id="e3")])
    await state.episodes.clear("s1", agent_id=ANA, run_id="r2")
    await state.episodes.end_session("s2")
    await state.short_term.set_state("s1", {"step": 1, "of": who})
    await state.short_term.update_state("s1", {"step": 2, "deep": {"list": [1, None, "ß"]}})
    await state.short_term.set_state("s3", {"kept": "for long"}, ttl_seconds=FAR_SECONDS)
    board = await state.boards.create_task_list("conv-1", ["order tugs", "call the berth"])
    await state.boards.update_status(board.id, board.tasks[0].id, "succeeded", "both")
    await state.boards.update_status(board.id, board.tasks[1].id, "failed", "no answer")
    await state.boards.increment_retry(board.id, board.tasks[1].id)


async def fill_knowledge(state: State, who: str) -> list[str]:
    """Facts, documents, the graph, channels and blobs; the refs of the blobs."""
    await state.graph.add_entities(
        [
            Entity("Ship", {"name": "Meridian", "of": who}, "meridian"),
            Entity("Berth", {"name": "North Quay"}, "north-quay"),
        ]
    )
    await state.graph.add_relationships(
        [Relationship("meridian", "north-quay", "moors_at", {"since": 2025}, "m1")]
    )
    await state.long_term.save(
        ANA, f"The Meridian of {who} needs two tugs", topic="ships", entities=["meridian"]
    )
    await state.long_term.save(ANA, "Pilots board at the outer buoy", namespace="rules")
    await state.vectors.add(
        [
            Document.from_text("tide tables", id="tides", embedding=[1, 0], metadata={"y": 2030}),
            Document.from_text("crane manual", id="crane", embedding=[0, 1], metadata={"y": 2024}),
        ],
        collection="manuals",
    )
    for n in range(3):
        await state.channel(CHANNELS[0]).publish({"n": n, "of": who}, id=f"c{n}")
    refs = []
    for data in (b"\x00chart\xff", f"log of {who}"):
        ref = await state.blobs.store(data, content_type="text/plain")
        await state.blobs.pin(ref)
        refs.append(ref)
    return refs


async def fill_waiting_tasks(state: State) -> None:
    """Tasks of nobody and of an owner that wait for input."""
    runner = app()
    for owner in ("", "ana"):
        # By the name that every version takes.
        where: dict[str, Any] = {"context_id": f"ctx-{owner or 'none'}"}
        await runner.submit(state, "berth her", owner=owner, **where)
    await runner.run_until_idle(state)


async def fill_tasks(state: State) -> None:
    """Tasks in the other states, with all that hangs on them."""
    ledger, hand = state.tasks, AgentId("", "hand")

    async def sent(words: str, **how: Any) -> str:
        return (await ledger.submit(hand, ChatMessage.user(words), **how)).id

    async def claimed(words: str, **how: Any) -> Any:
        task_id = await sent(words, **how)
        [found] = await ledger.claim("w1", agents=[hand])
        assert found.task.id == task_id
        return found.lease

    lease = await claimed("moor her", metadata={"urgent": True})
    await ledger.record_step(lease, OLD.StepKey("lines"), {"lines": 4})
    await ledger.append_message(lease, ChatMessage.assistant("Four lines are out"))
    for words, last in (("moored ", False), ("at 15:10", True)):
        await ledger.append_artifact(
            lease, "log.txt", [OLD.TextBlock(words)], name="log", append=last, last_chunk=last
        )
    done = await ledger.transition(lease, "completed", message=ChatMessage.assistant("Moored"))
    await ledger.append_feedback(done.id, "well done", rating=5, feedback_id="f1")
    lease = await claimed("sound the horn", owner="ana")
    failed = await ledger.transition(lease, "failed", note="no steam")
    await ledger.retry(failed.id, owner="ana", submit_key="again")
    await ledger.cancel(await sent("paint the hull"), note="too cold")
    await ledger.pause(await sent("grease the winch"), note="later")
    held = await sent("watch the buoy", submit_key="buoy")
    hook = PushConfig("p1", "https://example.org/hook", "t0ken", {"scheme": "Bearer"})
    await ledger.upsert_push_config(held, hook)
    lease = (await ledger.claim("w2", agents=[hand], limit=9))[-1].lease
    await ledger.release(lease, note="the shift ended")
    await ledger.cancel(held, note="nobody watches")
    await sent("wait for your turn")


async def fill_hot(state: Any) -> int:
    """With Redis: what is flushed, and after it what is not; how many events wait."""
    await state.memory(ANA, session_id="old").record("note", {"n": 0}, event_id="flushed")
    await state.short_term.set_state("old", {"saved": True})
    assert await state.hybrid.consolidator.drain(limit_seconds=60)
    await state.memory(ANA, session_id="old").record("note", {"n": 1}, event_id="waiting")
    await state.short_term.update_state("old", {"saved": False})
    await state.history.append_many(
        ANA,
        [ChatMessage.user("Is the tide in?", id="m1"), ChatMessage.assistant("Yes", id="m2")],
        session_id="new",
    )
    await state.episodes.append(
        [Event(ANA, "new", "note", {"n": n}, id=f"h{n}", occurred_at=NOON) for n in range(3)]
    )
    await state.short_term.set_state("new", {"draft": "in Redis alone"})
    await state.short_term.set_state("brief", {"kept": "for long"}, ttl_seconds=FAR_SECONDS)
    return int(await state.pending_events())


async def main(database: str, redis: str, answers: str) -> None:
    """Fill both stores, and record how this version reads them."""
    settings = Settings(auto_migrate=True, channel_retention_seconds=FAR_SECONDS, ack_level="hot")
    found: dict[str, Any] = {}
    async with holdfast.open(database, settings=settings) as state:
        refs, keys = {}, {}
        for tenant in PLAIN:
            one = state.for_tenant(tenant)
            await fill_sessions(one, tenant)
            refs[tenant] = await fill_knowledge(one, tenant)
            await fill_waiting_tasks(one)
            keys[tenant] = (await one.keys.create("ana", name="laptop")).text
            await one.keys.revoke((await one.keys.create("bob")).key.id)
        await fill_tasks(state.for_tenant(PLAIN[0]))
        found |= {"refs": refs, "keys": keys}
        found["plain"] = {
            tenant: plain(await read(state.for_tenant(tenant), refs[tenant], keys[tenant]))
            for tenant in PLAIN
        }
    async with holdfast.open(
        database, redis=redis, tenant=HOT, settings=settings, background=False
    ) as state:
        found["pending"] = await fill_hot(state)
        found["hot"] = plain(await read_hot(state))
    text = json.dumps(found, ensure_ascii=False, indent=0, sort_keys=True)
    await asyncio.to_thread(Path(answers).write_text, text + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
