"""Random reports on tasks that somebody else runs, and tasks that are deleted."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from holdfast.testing.machines.ledger_views import plainly
from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.tasks.events import ArtifactChunk
from holdfast.values.tasks.reports import Report, StatusReport

NAMES = ["x1", "x2"]
STATES = ["submitted", "working", "working", "input-required", "paused", "completed", "canceled"]
MESSAGES = st.builds(
    lambda text, name: ChatMessage.assistant(text, id=name),
    st.sampled_from(["a", "a", "b"]),
    st.sampled_from(["r1", "r2"]),
)
REPORTS: st.SearchStrategy[list[Report]] = st.lists(
    st.one_of(
        MESSAGES,
        st.builds(
            StatusReport,
            st.sampled_from(STATES),
            st.none() | MESSAGES,
            metadata=st.sampled_from([None, {"n": 2}]),
        ),
        st.builds(
            ArtifactChunk,
            st.sampled_from(["a1", "a2"]),
            st.sampled_from([[TextBlock("x")], [TextBlock("y")]]),
            append=st.booleans(),
            last_chunk=st.booleans(),
        ),
    ),
    max_size=4,
)


class AdoptedRules(EngineMachine):
    """What others report, right or wrong, late or twice."""

    tasks: list[tuple[str, str]]

    @rule(
        name=st.sampled_from(NAMES),
        owner=st.sampled_from(["", "ana"]),
        context=st.sampled_from(["c1", "c2"]),
        reports=REPORTS,
    )
    def adopt(self, name: str, owner: str, context: str, reports: list[Report]) -> None:
        """Adopt a task, if it is not there."""
        how = {"agent": "writer", "owner": owner, "session_id": context}
        self.both(lambda store: store.adopt(name, **how, reports=reports), plainly)
        if (name, name) not in self.tasks:
            self.tasks.append((name, name))

    @rule(name=st.sampled_from(NAMES), reports=REPORTS, late=st.sampled_from([0, 0, 0, 1]))
    def report(self, name: str, reports: list[Report], late: int) -> None:
        """Report on a task as it is, or as it was."""
        task = self.run(self.left.get(name, owner=None))
        version = max(task.version - late, 0) if task else 1
        self.both(lambda store: store.record(name, reports, expected_version=version))

    @rule(name=st.sampled_from(NAMES), who=st.sampled_from([None, "", "ana"]))
    def report_a_cancel(self, name: str, who: str | None) -> None:
        """Cancel whatever the version is."""
        self.both(lambda store: store.record(name, [StatusReport("canceled")], owner=who))

    @rule(pick=st.integers(0, 10**6), who=st.sampled_from([None, "", "ana"]), late=st.booleans())
    def delete(self, pick: int, who: str | None, late: bool) -> None:
        """Delete one of the last few tasks now and then, and report on it."""
        left, right = self.tasks[-1 - pick % min(4, len(self.tasks))]
        if pick % 3 and left not in NAMES:
            return

        def call(task: str) -> Any:
            return lambda store: store.delete(task, owner=who)

        self.each(call(left), call(right))
        if late:
            done = [StatusReport("completed")]
            self.each(
                lambda store: store.record(left, done, expected_version=2),
                lambda store: store.record(right, done, expected_version=2),
            )
