"""Random steps of few threads with few channels."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write

THREADS = st.sampled_from(["t1", "t2", "t3"])
SPACES = st.sampled_from(["", "", "", "child"])
IDS = st.sampled_from([f"c{at}" for at in range(8)])
CHANNELS = st.sampled_from(["a", "b"])
VERSIONS = st.dictionaries(CHANNELS, st.sampled_from(["1", "2", "3"]))
VALUES = st.sampled_from([None, None, TypedBytes("json", b"1"), TypedBytes("none", b"")])
RUNS = st.sampled_from(["r1", "r2"])
LABELS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"n": 1}, {"n": 1.0}, {"n": True}, {"n": 1, "x": [None, "\x00"]}]
)
WRITES = st.lists(
    st.builds(
        Write,
        st.sampled_from(["k1", "k2"]),
        st.integers(-2, 1),
        CHANNELS,
        st.sampled_from([TypedBytes("json", b"1"), TypedBytes("json", b"2")]),
        st.sampled_from(["", "a\x00", "~b"]),
    ),
    max_size=3,
)


class CheckpointsMachine(EngineMachine):
    """Threads that go on, fork, are copied, pruned and deleted, and expire."""

    contract = "checkpoints"

    @rule(
        where=st.tuples(THREADS, SPACES, IDS),
        parent=st.none() | IDS,
        versions=VERSIONS,
        labels=LABELS,
        run=st.none() | RUNS,
        value=VALUES,
        expected=st.sampled_from([None, None, None, "", "parent"]),
        ttl=st.sampled_from([None, None, None, 60]),
    )
    def put(
        self,
        *,
        where: tuple[str, str, str],
        parent: str | None,
        versions: dict[str, str],
        labels: dict[str, Any],
        run: str | None,
        value: TypedBytes | None,
        expected: str | None,
        ttl: float | None,
    ) -> None:
        """Take a step, or one again."""
        thread, space, own = where
        above = None if parent == own else parent
        body, about = TypedBytes("json", own.encode()), TypedBytes("json", b"{}")
        marked = labels | ({"run_id": run} if run else {})
        one = Checkpoint(thread, space, own, above, body, about, marked, versions)
        new = dict.fromkeys(sorted(versions)[:1], value)
        must = above if expected == "parent" else expected
        self.both(
            lambda store: store.put(one, new_values=new, expected_parent=must, ttl_seconds=ttl)
        )

    @rule(thread=THREADS, space=SPACES, id=IDS, writes=WRITES)
    def put_writes(self, thread: str, space: str, id: str, writes: list[Write]) -> None:
        """Write after a step."""
        last = {(one.task, one.index): one for one in reversed(writes)}
        self.both(lambda store: store.put_writes(thread, space, id, list(last.values())))

    @invariant()
    def same_threads(self) -> None:
        """Both hold the same after every step."""
        self.both(_listed)

    @rule(thread=THREADS, space=SPACES, id=st.none() | IDS)
    def get(self, thread: str, space: str, id: str | None) -> None:
        """Read one."""
        self.both(lambda store: store.get(thread, space, id))

    @rule(
        thread=st.none() | THREADS,
        space=st.none() | SPACES,
        before=st.none() | IDS,
        labels=LABELS,
        limit=st.none() | st.integers(0, 3),
    )
    def read_many(
        self,
        thread: str | None,
        space: str | None,
        before: str | None,
        labels: dict[str, Any],
        limit: int | None,
    ) -> None:
        """Read many."""
        which = {"thread": thread, "namespace": space, "before": before}
        self.both(lambda store: _listed(store, **which, labels=labels, limit=limit))

    @rule(
        thread=THREADS, space=SPACES, id=st.none() | IDS, channels=st.lists(CHANNELS, unique=True)
    )
    def ancestors(self, thread: str, space: str, id: str | None, channels: list[str]) -> None:
        """Go up."""
        self.both(lambda store: store.ancestors(thread, space, id, channels), list)

    @rule(threads=st.lists(THREADS, max_size=1))
    def delete_threads(self, threads: list[str]) -> None:
        """Remove all."""
        self.both(lambda store: store.delete_threads(threads))

    @rule(runs=st.lists(RUNS, max_size=2))
    def delete_runs(self, runs: list[str]) -> None:
        """Remove some."""
        self.both(lambda store: store.delete_runs(runs))

    @rule(threads=st.permutations(["t1", "t2", "t3"]))
    def copy_thread(self, threads: list[str]) -> None:
        """Copy."""
        self.both(lambda store: store.copy_thread(threads[0], threads[1]))

    @rule(threads=st.lists(THREADS, max_size=2), keep=st.integers(1, 2))
    def prune(self, threads: list[str], keep: int) -> None:
        """Forget the past."""
        self.both(lambda store: store.prune(threads, keep=keep))

    @rule(seconds=st.sampled_from([1, 50]))
    def wait(self, seconds: int) -> None:
        """Let windows close."""
        self.elapse(seconds)


async def _listed(store: Any, **which: Any) -> Any:
    return [one async for one in store.list(**which)]
