"""Random clients and workers on a few tasks, some of which die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from holdfast.testing.ledger_invariants import check_invariants
from holdfast.testing.machines.ledger_linked import LinkedRules
from holdfast.testing.machines.ledger_views import plainly
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import HoldfastError
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import Completion, TaskRecord

ONE_WRITER = (Limit("writer", concurrency=1),)
ONE_PER_KEY = (Limit("writer", concurrency=1, per_key=True), Limit(concurrency=2))
TWO_A_MINUTE = (Limit("writer", rate="2/min"),)
MANY = 7
"""How many tasks a run has at most, so that each has a life."""

PICK = st.integers(0, 10**6)
DELAYS = [None, None, timedelta(seconds=5), timedelta(seconds=40)]


@dataclass(frozen=True)
class Act:
    """A call of one method, on a task or under a lease; or time that goes by."""

    on: str
    method: str
    given: tuple[Any, ...] = ()
    how: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Hypothesis prints every act that it may choose.
        return f"{self.on}.{self.method}"

    def __call__(self, store: Any, target: Any) -> Any:
        """Make the call."""
        return getattr(store, self.method)(target, *self.given, **self.how)


def _wishes() -> Iterator[Act]:
    """What clients do to a task."""
    for who in (None, None, None, None, "", "ana"):
        how = {"owner": who}
        for what in ("cancel", "cancel", "pause", "pause", "resume"):
            yield Act("task", what, (), how)
        for text, message_id in (("a", "m1"), ("b", "m1"), ("a", "m2")):
            yield Act("task", "respond", (ChatMessage.user(text, id=message_id),), how)
        yield from (Act("task", "retry", (), {**how, "submit_key": key}) for key in ("", "k1"))
        for text in ("a", "b"):
            yield Act("task", "append_feedback", (text,), {**how, "feedback_id": "f"})
        for name in ("p1", "p2"):
            yield Act("task", "upsert_push_config", (PushConfig(name, "https://x.org"),), how)
            yield Act("task", "delete_push_config", (name,), how)
        yield Act("task", "keep_files", (["b1", "b3"],))


def _writes() -> Iterator[Act]:
    """What a worker writes while it works."""
    for text, message_id in product(("a", "b"), ("m2", "m3")):
        message = ChatMessage.assistant(text, id=message_id)
        for say in (None, StepKey("x", kind="say")):
            yield Act("lease", "append_message", (message,), {"step": say})
    for key in (StepKey("s1"), StepKey("s1", 2), StepKey("q1", kind="ask")):
        for result, digest in product((1, 2), ("", "d1", "d2")):
            yield Act("lease", "record_step", (key, {"n": result}), {"digest": digest})
        yield Act("lease", "restore_artifacts", (key,))
    yield Act("lease", "record_step", (StepKey("s1", kind="try"), "failed"), {"seconds": 2.0})
    for name, text, append, last, within in product(
        ("a1", "a2"), ("a", "b"), (True, False), (False, True), (None, StepKey("s1"))
    ):
        how = {"append": append, "last_chunk": last, "step": within}
        yield Act("lease", "append_artifact", (name, [TextBlock(text)]), how)
    for kind, ref in product(("run", "blob", "file"), ("b1", "b2")):
        yield Act("lease", "add_cleanup", (kind, ref))
    yield from (Act("lease", "heartbeat", (), {"lease_seconds": t}) for t in (5.0, 30.0) * 3)


def _ends() -> Iterator[Act]:
    """How a worker lets go of a task."""
    for delay, sleep in product(DELAYS, (True, False)):
        yield Act("lease", "transition", ("submitted",), {"run_after": delay, "progress": sleep})
    for state in ("input-required", "auth-required"):
        for key in (None, StepKey("q1", kind="ask")):
            question = ChatMessage.assistant("which?", id="m4")
            yield Act("lease", "transition", (state,), {"message": question, "ask": key})
    for state in ("completed", "completed", "failed", "rejected", "canceled", "paused", "working"):
        yield Act("lease", "transition", (state,))
    yield Act("lease", "transition", ("completed",), {"result": {"n": 1}})
    yield from (Act("lease", "release"), Act("lease", "release"))


def _waits() -> Iterator[Act]:
    """Time that goes by, with or without somebody who looks after leases."""
    for seconds, limit in product((0.5, 6.0, 31.0), (0, 100)):
        yield Act("time", "", (seconds, limit))


WISH, WRITE, END, WAIT = (
    st.sampled_from(list(acts)) for acts in (_wishes(), _writes(), _ends(), _waits())
)
SCENE = st.tuples(
    st.lists(WRITE, max_size=3).map(tuple),
    st.tuples(WISH),
    st.tuples(END | END | WAIT),
    st.lists(WISH | WRITE | END | WAIT, max_size=3).map(tuple),
).map(lambda parts: sum(parts, ()))
"""What happens to one task in a row: some work, a client's wish, how it ended, and more."""


def _reader(name: str, who: str | None) -> Act:
    return Act("task", name, (), {"owner": who})


def _counted(marks: Any) -> Any:
    """Marks without their order, which is that of ids where they are due together."""
    return sorted(plainly(marks))


class LedgerMachine(LinkedRules):
    """Tasks that are submitted, claimed, lost, taken over, answered, stopped and held."""

    contract = "tasks"

    def __init__(self) -> None:
        super().__init__()
        self.run(self.engine.hold_clock())
        self.tasks: list[tuple[str, str]] = [("nothing", "nothing")]
        self.leases: list[tuple[Any, Any]] = []
        self.links: dict[str, list[tuple[str, str]]] = {}
        self.entries: list[tuple[Any, Any]] = []

    def _on(
        self, pairs: list[tuple[Any, Any]], pick: int, call: Callable[[Any, Any], Any]
    ) -> tuple[Any, Any]:
        """The same to one of the last few things, old and gone ones included."""
        left, right = pairs[-1 - pick % min(4, len(pairs))]
        return self.each(lambda store: call(store, left), lambda store: call(store, right), plainly)

    def _keep(self, left: Any, right: Any) -> None:
        if not isinstance(left, HoldfastError) and (left.id, right.id) not in self.tasks:
            self.tasks.append((left.id, right.id))

    @initialize(limit=st.sampled_from([5, 5, 2, 1]))
    def begin(self, limit: int) -> None:
        """A few tasks to begin with, two of them in one context."""
        for context, owner in (("c1", ""), ("c1", ""), ("", "ana")):
            self._submit("a", session_id=context, owner=owner, max_attempts=limit)

    @precondition(lambda self: len(self.tasks) < MANY)
    @rule(
        text=st.sampled_from(["a", "b"]),
        session_id=st.sampled_from(["", "c1", "c2"]),
        owner=st.sampled_from(["", "ana"]),
        submit_key=st.sampled_from(["", "", "k1"]),
        max_attempts=st.sampled_from([5, 5, 2, 1]),
        run_after=st.sampled_from(DELAYS),
        priority=st.sampled_from([0, 0, 0, 3, 9]),
        key=st.sampled_from(["", "", "x"]),
    )
    def submit(self, text: str, **given: Any) -> None:
        """Queue a task, new or known by its key."""
        push = [PushConfig("p1", "https://example.org")] if text == "a" else []
        self._submit(text, push=push, metadata={"n": 1}, **given)

    def _submit(self, text: str, **given: Any) -> None:
        message = ChatMessage.user(text)
        agent = "writer" if text == "a" else "reader"

        async def call(store: Any) -> Any:
            return await store.submit(agent, message, **given)

        self._keep(*self.each(call, call, plainly))

    @rule(
        worker=st.sampled_from(["w1", "w2"]),
        limit=st.sampled_from([0, 1, 1, 2, 3]),
        agents=st.sampled_from([None, None, None, ["writer"], []]),
        serial_contexts=st.booleans(),
        lease_seconds=st.sampled_from([5.0, 30.0]),
        limits=st.sampled_from([(), (), ONE_WRITER, ONE_PER_KEY, TWO_A_MINUTE]),
    )
    def take(self, worker: str, **given: Any) -> None:
        """Take tasks."""
        self._claim(worker, **given)

    def _claim(self, worker: str, **given: Any) -> None:
        async def call(store: Any) -> Any:
            return await store.claim(worker, **given)

        left, right = self.each(call, call, plainly)
        self.leases += [(one.lease, other.lease) for one, other in zip(left, right, strict=True)]

    @rule(count=st.integers(0, 3), said=st.booleans(), result=st.sampled_from([None, 0, "low"]))
    def complete(self, count: int, said: bool, result: Any) -> None:
        """Report the last few leases, good or lost, as done."""
        message = ChatMessage.assistant("done") if said else None
        chosen = {
            left.task_id: (
                Completion(left, message, result),
                Completion(right, message, result),
            )
            for left, right in self.leases[len(self.leases) - count :]
        }
        left, right = zip(*chosen.values(), strict=True) if chosen else ((), ())
        self.each(
            lambda store: store.complete_many(list(left)),
            lambda store: store.complete_many(list(right)),
            plainly,
        )

    @rule(scene=SCENE)
    def attempt(self, scene: tuple[Act, ...]) -> None:
        """A worker takes a task, if need be after a while; this and that happens."""
        for _ in range(2):
            known = len(self.leases)
            self._claim("w3", lease_seconds=5.0)
            if len(self.leases) > known:
                self._play(self.leases[-1:], scene)
                return
            self._pass(40.0)

    @rule(pick=PICK, scene=SCENE)
    def meddle(self, pick: int, scene: tuple[Act, ...]) -> None:
        """The same under a lease that is good or lost."""
        self._play(self.leases[-1 - pick % 4 :][:1], scene)

    def _play(self, leases: list[tuple[Any, Any]], scene: tuple[Act, ...]) -> None:
        tasks = [(left.task_id, right.task_id) for left, right in leases] or self.tasks[-1:]
        for act in scene:
            if act.on == "time":
                self._pass(*act.given)
            elif act.on == "task":
                left, right = self._on(tasks, 0, act)
                if isinstance(left, TaskRecord):
                    self._keep(left, right)
            elif leases:
                self._on(leases, 0, act)
        self._haunt(tasks[-1][0])

    def _haunt(self, task_id: str) -> None:
        """Whoever worked on the task before tries to go on."""
        for pair in [pair for pair in self.leases if pair[0].task_id == task_id][-3:-1]:
            self._on([pair], 0, Act("lease", "heartbeat"))

    @rule(seconds=st.sampled_from([1.0, 10.0, 31.0]), limit=st.sampled_from([0, 1, 100]))
    def later(self, seconds: float, limit: int) -> None:
        """Time goes by, and leases with it."""
        self._pass(seconds, limit)

    def _pass(self, seconds: float, limit: int = 100) -> None:
        self.elapse(seconds)
        self.both(lambda store: store.recover_expired(limit=limit), plainly)

    @rule(
        limit=st.integers(0, 3),
        pick=PICK,
        arrived=st.booleans(),
        most=st.sampled_from([1, 2, 9]),
    )
    def deliver(self, limit: int, pick: int, arrived: bool, most: int) -> None:
        """Take deliveries, and report on one of these or of earlier ones."""

        async def take(store: Any) -> Any:
            return await store.claim_outbox(limit=limit, lease_seconds=10)

        async def report(store: Any, entry: Any) -> Any:
            if arrived:
                return await store.mark_delivered(entry)
            return await store.mark_failed(entry, "503", max_attempts=most)

        self.entries += zip(*self.each(take, take, plainly), strict=True)
        if self.entries:
            self._on(self.entries, pick, report)

    @rule(pick=PICK, claim=st.booleans(), delete=st.booleans())
    def clean_up(self, pick: int, claim: bool, delete: bool) -> None:
        """Take what is due of all tasks, or of one, and delete it or leave it."""

        async def take(store: Any) -> Any:
            return await store.claim_cleanup(retry_seconds=10)

        if claim:
            self.each(take, take, _counted)
        found = self._on(self.tasks, pick, lambda store, task: store.list_cleanup(task))
        if delete:
            left, right = found
            self.each(
                lambda store: store.delete_cleanup(left),
                lambda store: store.delete_cleanup(right),
                plainly,
            )

    @rule(
        context=st.sampled_from(["c1", "c2"]),
        owner=st.sampled_from(["", "ana"]),
        clear=st.integers(0, 9),
    )
    def contexts(self, context: str, owner: str, clear: int) -> None:
        """Look at contexts, and now and then clear one."""
        self.both(lambda store: store.get_context(context, owner=owner), plainly)
        self.both(lambda store: store.list_contexts(owner=owner), plainly)
        if clear == 9:
            self.both(lambda store: store.clear_context(context, owner=owner), plainly)
        self.both(lambda store: store.list_context_cleanup(context, owner=owner), _counted)

    @rule(pick=PICK, who=st.sampled_from([None, None, "", "ana"]))
    def read(self, pick: int, who: str | None) -> None:
        """Compare all that is known of a task, and replay it."""
        for name in (
            *("get", "events", "artifacts"),
            *("list_outbox", "list_feedback", "list_push_configs"),
        ):
            self._on(self.tasks, pick, _reader(name, who))
        self._on(self.tasks, pick, lambda store, task: store.steps(task))
        self.run(self._replayed(self.tasks[-1 - pick % min(4, len(self.tasks))][0]))

    async def _replayed(self, task_id: str) -> None:
        task = await self.left.get(task_id, owner=None)
        if task is not None:
            again = await self.left.replay(task_id, task.version, owner=None)
            assert again == replace(task, lease_expires_at=None)

    @rule(
        owner=st.sampled_from([None, "", "ana"]),
        session_id=st.sampled_from([None, "c1"]),
        states=st.sampled_from([None, None, ["submitted"], ["working", "canceled"]]),
        limit=st.integers(1, 4),
    )
    def read_pages(self, **given: Any) -> None:
        """Compare a whole listing, page by page."""

        def page(cursor: str | None) -> Callable[[Any], Any]:
            return lambda store: store.list(cursor=cursor, messages_limit=2, count=True, **given)

        left, right = self.each(page(None), page(None), plainly)
        while left.next_cursor is not None:
            left, right = self.each(page(left.next_cursor), page(right.next_cursor), plainly)

    @invariant()
    def sound(self) -> None:
        """What is true of every ledger at every moment."""
        self.run(check_invariants(self.left))
