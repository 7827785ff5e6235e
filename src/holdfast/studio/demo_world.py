"""Demo data, so that a newcomer sees something on every screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.events import Event
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import ClaimedTask
from holdfast.wiring.state import State

CONVERSATION = "launch-week"
TRAVEL = "dinner"
PLANNER = "planner"
_FIRST, _SECOND = "worker-7f2a", "worker-b91c"
_LEASE_SECONDS = 1.0
_TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "import.py", line 41, in parse\n'
    "    row = next(reader)\n"
    "ValueError: line 812: 'n/a' is not a price"
)


async def is_filled(state: State) -> bool:
    """Return whether ``fill`` has filled this state completely.

    ::

        if not await is_filled(state):
            await fill(state)
    """
    page = await state.tasks.list(session_id=CONVERSATION, states=["completed"], limit=1)
    return bool(page.tasks)


async def fill(
    state: State, *, pace: float = 1.0, progress: Callable[[str], None] = lambda _: None
) -> str:
    """Fill an empty state. Returns the id of the task that a second worker took over.

    ``pace`` stretches the pauses between steps; 0 leaves them out. ::

        await fill(state, pace=0)
    """
    ledger = _Ledger(state, pace)
    progress("tasks")
    await ledger.ended()
    await ledger.waiting()
    await ledger.held()
    progress("boards")
    await _boards(state)
    progress("memory")
    await _memory(state)
    await _graph(state)
    progress("a worker that dies")
    return await ledger.takeover()


class _Ledger:
    def __init__(self, state: State, pace: float) -> None:
        self._tasks = state.tasks
        self._pace = pace

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._pace)

    async def _claim(self, agent: str, worker: str = _FIRST, lease: float = 30.0) -> ClaimedTask:
        while True:
            found = await self._tasks.claim(worker, agents=[agent], lease_seconds=lease)
            if found:
                return found[0]
            await asyncio.sleep(0.05)

    async def ended(self) -> None:
        done = (
            ("summariser", "Summarise yesterday's support tickets", "ana"),
            ("analyst", "Which customers have not logged in for 30 days?", "ravi"),
            ("writer", "Draft the release notes of 2.4", "mei"),
            ("writer", "Translate the onboarding mails into French", "mei"),
        )
        for agent, text, owner in done:
            await self._tasks.submit(agent, ChatMessage.user(text), owner=owner)
            claimed = await self._claim(agent)
            for name, result in (("fetch", {"rows": 120}), ("think", {"tokens": 2100})):
                await self._pause(0.1)
                await self._tasks.record_step(claimed.lease, StepKey(name), result)
            said = ChatMessage.assistant("Done: it is in the shared folder.")
            await self._tasks.transition(claimed.lease, "completed", message=said)
        text = "Import the price list of the new supplier"
        await self._tasks.submit("importer", ChatMessage.user(text), owner="ravi")
        claimed = await self._claim("importer", _SECOND)
        await self._tasks.record_step(claimed.lease, StepKey("fetch"), {"lines": 2204})
        await self._tasks.transition(claimed.lease, "failed", note=_TRACEBACK)
        old = await self._tasks.submit("writer", ChatMessage.user("Old newsletter"), owner="mei")
        await self._tasks.cancel(old.id, note="not needed any more")

    async def waiting(self) -> None:
        asked = (
            ("refunds", "Refund order 88121", "mei", "input-required",
             "Refund 1,240.00 EUR to order 88121? The limit without approval is 500."),
            ("booker", "Book the ferry to Ouessant", "ana", "auth-required",
             "Please log in to the ferry company: which account may I use?"),
        )  # fmt: skip
        for agent, text, owner, to, question in asked:
            await self._tasks.submit(agent, ChatMessage.user(text), owner=owner)
            claimed = await self._claim(agent)
            await self._tasks.record_step(claimed.lease, StepKey("look-up"), {"order": 88121})
            await self._tasks.transition(
                claimed.lease,
                to,
                message=ChatMessage.assistant(question),
                ask=StepKey("ask", kind="ask"),
            )

        text = "Book rooms for the launch team in Brest"
        await self._tasks.submit("traveller", ChatMessage.user(text), owner="ravi")
        claimed = await self._claim("traveller")
        await self._tasks.transition(
            claimed.lease,
            "input-required",
            message=ChatMessage.assistant(
                "Which rooms, and for how many nights?", metadata={"schema": ROOMS}
            ),
            ask=StepKey("ask", kind="ask"),
            schema=ROOMS,
        )

    async def held(self) -> None:
        text = ChatMessage.user("Rewrite the landing page for developers")
        paused = await self._tasks.submit("writer", text, owner="mei")
        await self._tasks.pause(paused.id, note="wait for the new name")
        text = ChatMessage.user("Weekly churn figures")
        await self._tasks.submit("analyst", text, owner="ravi", run_after=timedelta(hours=3))

    async def takeover(self) -> str:
        """Add a task whose worker dies after two steps; the next worker continues it."""
        agent = "scout"
        text = "Compare three managed Postgres offers for the migration, and recommend one."
        task = await self._tasks.submit(agent, ChatMessage.user(text), session_id=CONVERSATION)
        claimed = await self._claim(agent, lease=max(_LEASE_SECONDS * 3 * self._pace, 1.0))
        await self._pause(0.6)
        await self._tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
        await self._pause(0.9)
        offers = [{"offer": name, "price": price} for name, price in OFFERS]
        await self._tasks.record_step(claimed.lease, StepKey("read"), offers)
        said = ChatMessage.assistant("Three offers read. Drafting the comparison.")
        await self._tasks.append_message(claimed.lease, said)
        await self._draft(claimed, REPORT[:2])
        # From here on nothing is heard of this worker: kill -9.
        while await self._is_working(task.id):
            # The database's clock decides. A worker beside this process may recover it first.
            await self._tasks.recover_expired()
            await asyncio.sleep(0.1)
        claimed = await self._claim(agent, _SECOND)
        await self._draft(claimed, REPORT, complete=True)
        await self._tasks.record_step(claimed.lease, StepKey("draft"), {"lines": len(REPORT)})
        question = "Who gets it: Ravi alone, or the whole platform team?"
        await self._tasks.transition(
            claimed.lease,
            "input-required",
            message=ChatMessage.assistant(question),
            ask=StepKey("ask", kind="ask"),
        )
        await self._pause(1.5)
        await self._tasks.respond(task.id, ChatMessage.user("The platform team, please."))
        claimed = await self._claim(agent, _SECOND)
        await self._pause(0.4)
        await self._tasks.record_step(claimed.lease, StepKey("publish"), {"sent": True})
        said = ChatMessage.assistant("Sent: offer A, 210 a month, fails over in 30 seconds.")
        await self._tasks.transition(claimed.lease, "completed", message=said)
        return task.id

    async def _is_working(self, task_id: str) -> bool:
        found = await self._tasks.get(task_id, messages_limit=0, artifacts=False)
        return found is not None and found.state is TaskState.WORKING

    async def _draft(
        self, claimed: ClaimedTask, lines: list[str], *, complete: bool = False
    ) -> None:
        for at, line in enumerate(lines):
            await self._pause(0.15)
            await self._tasks.append_artifact(
                claimed.lease,
                "report.md",
                [TextBlock(line)],
                append=at > 0,
                last_chunk=complete and at == len(lines) - 1,
                step=StepKey("draft"),
            )


ROOMS = {
    "type": "object",
    "properties": {
        "room": {"title": "Room", "enum": ["single", "double"]},
        "nights": {"title": "Nights", "type": "integer", "minimum": 1, "maximum": 14},
        "breakfast": {"title": "Breakfast", "type": "boolean"},
        "note": {"title": "Note for the hotel", "type": "string"},
    },
    "required": ["room", "nights", "breakfast"],
}
OFFERS = (("A", 210), ("B", 185), ("C", 260))
REPORT = [
    "# Managed Postgres, compared\n\n",
    "| offer | price | failover |\n|---|---|---|\n",
    "| A | 210 | 30 s |\n",
    "| B | 185 | 75 s |\n",
    "| C | 260 | 12 s |\n\n",
    "**Recommendation: A.** The failover of B misses our objective, C costs a quarter more.\n",
]


async def _boards(state: State) -> None:
    boards = state.boards
    plan = await boards.create_task_list(
        CONVERSATION,
        ["Pick a database", "Write the release notes", "Move the traffic", "Tell the customers"],
        agent_label="Planner",
    )
    first, second, third, _ = plan.tasks
    await boards.update_status(plan.id, first.id, "succeeded", "offer A")
    await boards.update_status(plan.id, second.id, "in_progress", "draft 2 is with Mei")
    await boards.update_status(plan.id, third.id, "blocked", "waits for the firewall rule")
    work = await boards.create_task_list(
        CONVERSATION,
        ["Fetch the price pages", "Measure the failover of B", "Ask for a quote"],
        agent_id="researcher",
        agent_label="Researcher",
    )
    fetched, measured, asked = work.tasks
    await boards.update_status(work.id, fetched.id, "succeeded")
    await boards.increment_retry(work.id, measured.id)
    await boards.update_status(work.id, measured.id, "failed", "the test cluster was not there")
    await boards.update_status(work.id, asked.id, "abandoned", "prices are public")


_STEPS: tuple[tuple[Callable[[], ChatMessage], dict[str, Any]], ...] = (
    (
        lambda: ChatMessage.user("Book me a table for **four** on Friday."),
        {"step": "search", "guests": 4, "day": "Friday"},
    ),
    (
        lambda: ChatMessage.assistant("Two places are free:\n\n- Lighthouse, 19:30\n- Quay, 20:00"),
        {"step": "choose", "offers": ["Lighthouse 19:30", "Quay 20:00"]},
    ),
    (
        lambda: ChatMessage.user("The Quay, and we are *five* now."),
        {"step": "book", "guests": 5, "place": "Quay"},
    ),
    (
        lambda: ChatMessage.assistant("Booked: `Quay`, Friday 20:00, five guests."),
        {"step": "done", "booking": "Q-7741"},
    ),
)


_SAID: tuple[tuple[int, str, str, str | dict[str, Any]], ...] = (
    (20, CONVERSATION, "user", "Which database should we move the sessions to before launch?"),
    (20, CONVERSATION, "assistant", "Postgres, with logical replication while we move."),
    (19, CONVERSATION, "decision", {"text": "Move the sessions to managed Postgres, offer A"}),
    (18, CONVERSATION, "observation", {"text": "The dry run took 41 minutes for 12 million rows"}),
    (16, "support", "user", "A customer says that exports time out after midnight."),
    (16, "support", "tool_call", {"name": "query_logs", "arguments": {"path": "/export"}}),
    (16, "support", "tool_result", {"content": "314 timeouts, all while the vacuum runs"}),
    (15, "support", "decision", {"text": "Run the nightly vacuum at 04:00 instead"}),
    (9, "budget", "user", "What does the database cost us each month?"),
    (9, "budget", "assistant", "Offer A is 210 a month; with the replica it is 390."),
    (6, CONVERSATION, "user", "When may the traffic move to the new database?"),
    (6, CONVERSATION, "assistant", "On Tuesday at five, if the lag was below a second all night."),
    (2, CONVERSATION, "observation", {"text": "Replication lag stayed under 400 ms all night"}),
)


async def _memory(state: State) -> None:
    now, agent = datetime.now(UTC), AgentId.parse(PLANNER)
    for session in dict.fromkeys(session for _, session, _, _ in _SAID):
        await state.episodes.start_session(agent, session)
    for at, (days, session, kind, body) in enumerate(_SAID):
        when = now - timedelta(days=days, minutes=60 - at)
        if isinstance(body, str):
            made = ChatMessage.user(body) if kind == "user" else ChatMessage.assistant(body)
            event = Event.of_message(agent, session, replace(made, created_at=when))
        else:
            event = Event(agent, session, kind, body, occurred_at=when)
        await state.episodes.append([event])
    await state.short_term.set_state(
        CONVERSATION, {"step": "move the traffic", "lag_ms": 380, "window": "Tuesday 05:00"}
    )
    await _travel(state, agent)
    facts = state.long_term
    old = await facts.save(agent, "The failover objective is 90 seconds.", topic="objectives")
    await facts.update(agent, old, "The failover objective is 60 seconds.")
    await facts.save(agent, "Mei writes the release notes.", topic="people", confidence=0.9)
    await facts.save(agent, "The nightly vacuum runs at 04:00.", topic="operations")


async def _travel(state: State, agent: AgentId) -> None:
    """Add a session, written now, so that its slider shows the working state at each event."""
    await state.episodes.start_session(agent, TRAVEL)
    for said, patch in _STEPS:
        await state.episodes.append([Event.of_message(agent, TRAVEL, said())])
        await state.short_term.update_state(TRAVEL, patch)


async def _graph(state: State) -> None:
    people = ("Mei", "Ravi", "Ana")
    things = (("offer-a", "Offer", "Offer A"), ("sessions", "Service", "Sessions"))
    await state.graph.add_entities(
        [Entity("Person", {"name": name}, id=name.lower()) for name in people]
        + [Entity(label, {"name": name}, id=key) for key, label, name in things]
        + [Entity("Project", {"name": "Launch"}, id="launch")]
    )
    await state.graph.add_relationships(
        [
            Relationship("mei", "launch", "writes_for"),
            Relationship("ravi", "launch", "leads"),
            Relationship("ana", "sessions", "owns"),
            Relationship("sessions", "offer-a", "moves_to"),
            Relationship("launch", "sessions", "needs"),
            Relationship("ravi", "offer-a", "chose"),
        ]
    )
