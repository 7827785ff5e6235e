"""Random parents and children, messages, forks, versions of handlers and checked answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from holdfast.testing.machines.ledger_adopted import AdoptedRules
from holdfast.testing.machines.ledger_views import plainly
from holdfast.values.content import ChatMessage
from holdfast.values.errors import HoldfastError
from holdfast.values.tasks.events import StepKey

FAMILY = 10
"""How many tasks a run has at most before no more are submitted by tasks, or forked."""

PICK = st.integers(0, 10**6)
TOPICS = st.sampled_from(["t1", "t1", "t2"])
FORMS: list[dict[str, Any]] = [
    {"options": ["a", "c"]},
    {"schema": {"type": "integer"}},
    {},
]
VERSIONS = [None, {"writer": ["1"]}, {"writer": ["2", "1"]}, {"writer": ["2"], "reader": ["1"]}]
Call = Callable[[Any, Any], Any]


class LinkedRules(AdoptedRules):
    """What tasks do to each other, and what is sent to them."""

    leases: list[tuple[Any, Any]]
    links: dict[str, list[tuple[str, str]]]
    """The children of a task, by its id on the engine."""

    def on_task(self, pick: int, call: Call) -> tuple[Any, Any]:
        """The same to one of the last few tasks."""
        left, right = self.tasks[-1 - pick % min(5, len(self.tasks))]
        return self.each(lambda store: call(store, left), lambda store: call(store, right), plainly)

    def on_lease(self, pick: int, call: Call) -> tuple[Any, Any]:
        """The same under one of the last few leases, good or lost."""
        left, right = self.leases[-1 - pick % min(3, len(self.leases))]
        return self.each(lambda store: call(store, left), lambda store: call(store, right), plainly)

    def known(self, found: tuple[Any, Any]) -> None:
        """Remember a task that was made."""
        left, right = found
        if not isinstance(left, HoldfastError) and (left.id, right.id) not in self.tasks:
            self.tasks.append((left.id, right.id))

    @precondition(lambda self: self.leases and len(self.tasks) < FAMILY)
    @rule(
        pick=PICK,
        name=st.sampled_from(["x", "y"]),
        text=st.sampled_from(["a", "a", "b"]),
        context=st.sampled_from([None, None, "c1"]),
    )
    def submit_child(self, pick: int, name: str, text: str, context: str | None) -> None:
        """Submit a child, once for a name."""
        message, key = ChatMessage.user(text, id=f"child {text}"), StepKey(name, kind="child")
        left, right = self.on_lease(
            pick,
            lambda store, lease: store.submit_child(
                lease, key, "writer", message, session_id=context
            ),
        )
        self.known((left, right))
        if not isinstance(left, HoldfastError):
            pairs = self.links.setdefault(left.parent_id, [])
            if (left.id, right.id) not in pairs:
                pairs.append((left.id, right.id))

    @precondition(lambda self: self.leases)
    @rule(
        pick=PICK,
        count=st.integers(0, 2),
        delay=st.sampled_from([None, None, timedelta(seconds=5)]),
    )
    def wait_for_children(self, pick: int, count: int, delay: timedelta | None) -> None:
        """Give the worker back until children have ended."""
        one, other = self.leases[-1 - pick % min(3, len(self.leases))]
        pairs = self.links.get(one.task_id, [])[:count] + self.tasks[:1]
        how = {"run_after": delay, "progress": True}
        self.each(
            lambda store: store.transition(
                one, "submitted", children=[left for left, _ in pairs], **how
            ),
            lambda store: store.transition(
                other, "submitted", children=[right for _, right in pairs], **how
            ),
            plainly,
        )

    @rule(pick=PICK, who=st.sampled_from([None, None, "", "ana"]), all_below=st.integers(0, 5))
    def children(self, pick: int, who: str | None, all_below: int) -> None:
        """Look at the children of a task, and now and then cancel all of them."""
        self.on_task(pick, lambda store, task: store.children(task, owner=who))
        if all_below == 5:
            self.on_task(pick, lambda store, task: store.cancel(task, owner=who, children=True))

    @rule(
        pick=PICK,
        who=st.sampled_from([None, None, None, "", "ana"]),
        topic=TOPICS,
        name=st.sampled_from(["i1", "i2", "i3", "i4"]),
        message=st.sampled_from([1, 1, {"n": 2}]),
    )
    def send(self, pick: int, who: str | None, topic: str, name: str, message: Any) -> None:
        """Send a message, new or again, to a task that may have ended."""
        how = {"topic": topic, "message_id": name, "owner": who}
        self.on_task(pick, lambda store, task: store.send(task, message, **how))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, topic=TOPICS, name=st.sampled_from(["r1", "r2", "r3"]), last=st.booleans())
    def receive(self, pick: int, topic: str, name: str, last: bool) -> None:
        """Receive a message, or find that there is none."""
        key = StepKey(name, kind="receive")
        self.on_lease(pick, lambda store, lease: store.receive(lease, key, topic=topic, last=last))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, topic=TOPICS, delay=st.sampled_from([None, timedelta(seconds=5)]))
    def wait_for_message(self, pick: int, topic: str, delay: timedelta | None) -> None:
        """Give the worker back until there is a message."""
        how = {"topic": topic, "run_after": delay, "progress": True}
        self.on_lease(pick, lambda store, lease: store.transition(lease, "submitted", **how))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, form=st.sampled_from(FORMS), text=st.sampled_from(["a", "b", "7"]))
    def ask(self, pick: int, form: dict[str, Any], text: str) -> None:
        """Ask for an option, a number or anything, and answer."""
        question, key = ChatMessage.assistant("which?", id="m4"), StepKey("q2", kind="ask")
        how = {"message": question, "ask": key, **form}
        self.on_lease(pick, lambda store, lease: store.transition(lease, "input-required", **how))
        answer = ChatMessage.user(text, id=f"answer {text}")
        left, right = self.leases[-1 - pick % min(3, len(self.leases))]
        self.each(
            lambda store: store.respond(left.task_id, answer),
            lambda store: store.respond(right.task_id, answer),
            plainly,
        )

    @precondition(lambda self: len(self.tasks) < FAMILY)
    @rule(
        pick=PICK,
        back=st.integers(0, 4),
        text=st.sampled_from([None, None, "b"]),
        who=st.sampled_from([None, None, "", "ana"]),
        failed=st.booleans(),
    )
    def fork(self, pick: int, back: int, text: str | None, who: str | None, failed: bool) -> None:
        """Go on from what a task stored, or had stored a few events ago."""
        if failed:
            self.known(self.on_task(pick, lambda store, task: store.resume_failed(task, owner=who)))
            return
        left, _ = self.tasks[-1 - pick % min(5, len(self.tasks))]
        task = self.run(self.left.get(left, owner=None))
        at_seq = max(task.version - back, 1) if task else 3
        message = None if text is None else ChatMessage.user(text, id="another")
        self.known(
            self.on_task(
                pick,
                lambda store, task: store.fork(task, at_seq, message=message, owner=who),
            )
        )
        self.on_task(0, lambda store, task: store.steps(task))

    @rule(versions=st.sampled_from(VERSIONS), limit=st.integers(1, 2))
    def claim_versions(self, versions: dict[str, list[str]] | None, limit: int) -> None:
        """Take tasks as a worker that has some versions of its handlers."""
        left, right = self.each(
            lambda store: store.claim("w4", limit=limit, versions=versions),
            lambda store: store.claim("w4", limit=limit, versions=versions),
            plainly,
        )
        self.leases += [(one.lease, other.lease) for one, other in zip(left, right, strict=True)]

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, names=st.permutations(["i5", "i6"]), topic=TOPICS)
    def converse(self, pick: int, names: list[str], topic: str) -> None:
        """Send a worker two messages, which it receives one by one."""
        for name in names:
            self.on_lease(pick, _sending(name, topic))
        for name in ("r1", "r2", "r3"):
            self.receive(pick, topic, name, last=False)

    @precondition(lambda self: len(self.tasks) < FAMILY)
    @rule(ends=st.integers(0, 2), forked=st.booleans(), again=st.booleans())
    def family(self, ends: int, forked: bool, again: bool) -> None:
        """A parent waits for two children, some of which end."""
        known = len(self.leases)
        self.claim_versions(None, 1)
        if len(self.leases) == known:
            return
        [parent] = self.leases[known:]
        for name in ("x", "y"):
            self.submit_child(0, name, "a", None)
        self.wait_for_children(0, 2, None)
        self.claim_versions(None, 2)
        children = self.links.get(parent[0].task_id, [])
        held = [one for one in self.leases[known + 1 :] if _tasks(one) in children]
        done = held[:ends]
        self.each(
            lambda store: store.complete_many([left for left, _ in done]),
            lambda store: store.complete_many([right for _, right in done]),
            plainly,
        )
        if forked:
            ids = self.tasks.index(_tasks(parent))
            self.fork(len(self.tasks) - 1 - ids, 0, None, None, failed=False)
        if again:
            self.claim_versions(None, 2)


def _tasks(leases: tuple[Any, Any]) -> tuple[str, str]:
    return leases[0].task_id, leases[1].task_id


def _sending(name: str, topic: str) -> Call:
    return lambda store, lease: store.send(lease.task_id, name, topic=topic, message_id=name)
