"""A LangGraph checkpointer on ``state.checkpoints``."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.keys import id_of, text_of
from holdfast.adapters.langgraph.rows import (
    config_of,
    is_label,
    namespace_id,
    version_text,
    where_of,
)
from holdfast.adapters.langgraph.serde import Allowed, StrictSerializer
from holdfast.blocking import Portal
from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.values import checkpoints as stored
from holdfast.values.errors import InvalidInputError
from holdfast.wiring.state import State

T = TypeVar("T")
_NAMESPACE = "holdfast.namespace"
"""The label that holds the namespace of a checkpoint if it is stored as a hash."""
_PAGE = 100
"""How many checkpoints a list reads from the state at a time."""


class HoldfastSaver(BaseCheckpointSaver[str]):
    """A checkpointer for ``graph.compile(checkpointer=...)``, for every thread and event loop.

    ``state`` determines the engine, the tenant and the owner. Rows are decoded only to the
    framework's types and the classes in ``allow``; ``serde`` replaces the serialiser. A thread is
    deleted ``ttl_seconds`` after its last write. With ``forks="refuse"`` a checkpoint that does not
    follow the newest one raises ``ConflictError``: a worker that was frozen while another continued
    the thread cannot continue it too. Time travel then needs a saver with ``forks="allow"``. ::

        saver = HoldfastSaver(state)
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke(inputs, {"configurable": {"thread_id": "t1"}})
    """

    def __init__(
        self,
        state: State | Portal,
        *,
        serde: SerializerProtocol | None = None,
        allow: Iterable[Allowed] = (),
        ttl_seconds: float | None = None,
        forks: Literal["allow", "refuse"] = "allow",
    ) -> None:
        if serde is not None and tuple(allow):
            raise InvalidInputError(
                "allow", "cannot be combined with serde: pass it to that serialiser"
            )
        if forks not in {"allow", "refuse"}:
            raise InvalidInputError("forks", f"must be 'allow' or 'refuse', not {forks!r}")
        super().__init__(serde=serde or StrictSerializer(allow=allow))
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._ttl_seconds = ttl_seconds
        self._forks = forks

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - theirs
        """Return a version that sorts after ``current``. Branches never get the same version."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}.{secrets.randbelow(10**16):016}"

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; without an id, the newest of its namespace. ``None`` if absent."""
        return self._tuple(await self._portal.arun(self._get(config), settle=False))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, the newest first."""
        found = self._list(config, filter, before, limit)
        try:
            while page := await self._portal.arun(_next(found)):
                for one in map(self._tuple, page):
                    assert one is not None  # noqa: S101 - for the type checker
                    yield one
        finally:
            await self._portal.arun(_close(found))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and the values of the channels that changed."""
        return await self._portal.arun(self._put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task that ran after a checkpoint."""
        await self._portal.arun(self._put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        await self._portal.arun(self._delete([thread_id]))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs."""
        await self._portal.arun(self._delete_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread."""
        await self._portal.arun(self._copy(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete old checkpoints, except those that delta channels need."""
        await self._portal.arun(self._prune(thread_ids, strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes to channels since their last stored value, in one query."""
        above = await self._portal.arun(self._above(config, channels), settle=False)
        return self._history(channels, above)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; without an id, the newest of its namespace. ``None`` if absent."""
        return self._tuple(self._portal.run(self._get(config)))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return checkpoints, the newest first."""
        found = self._list(config, filter, before, limit)
        try:
            while page := self._portal.run(_next(found)):
                for one in map(self._tuple, page):
                    assert one is not None  # noqa: S101 - for the type checker
                    yield one
        finally:
            self._portal.run(_close(found))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and the values of the channels that changed."""
        return self._portal.run(self._put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task that ran after a checkpoint."""
        self._portal.run(self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self._portal.run(self._delete([thread_id]))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs."""
        self._portal.run(self._delete_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread."""
        self._portal.run(self._copy(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete old checkpoints, except those that delta channels need."""
        self._portal.run(self._prune(thread_ids, strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes to channels since their last stored value."""
        return self._history(channels, self._portal.run(self._above(config, channels)))

    @property
    def _store(self) -> CheckpointStore:
        # Read on the state's loop: the state checks the loop at each access of an attribute.
        return self._portal.state.checkpoints

    def _get(self, config: RunnableConfig) -> Coroutine[Any, Any, stored.Checkpoint | None]:
        where, id = where_of(config), get_checkpoint_id(config)  # noqa: A001 - theirs
        return _call(lambda: self._store.get(*where, None if id is None else str(id)))

    def _list(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> _Pages:
        asked = config["configurable"] if config else {}
        thread, space = asked.get("thread_id"), asked.get("checkpoint_ns")
        return _Pages(
            self._portal,
            {
                "thread": None if thread is None else id_of(str(thread)),
                "namespace": None if space is None else namespace_id(space),
                "id": asked.get("checkpoint_id") or None,
                "before": get_checkpoint_id(before) if before else None,
                "labels": filter,
                "limit": limit,
            },
        )

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Coroutine[Any, Any, RunnableConfig]:
        dump, values = self.serde.dumps_typed, checkpoint["channel_values"]
        parent, about = get_checkpoint_id(config), get_checkpoint_metadata(config, metadata)
        thread, space = where_of(config)
        namespace = config["configurable"].get("checkpoint_ns", "")
        labels = {key: value for key, value in about.items() if is_label(value)}
        if space != namespace:
            labels[_NAMESPACE] = namespace
        versions = {**checkpoint["channel_versions"], **new_versions}
        one = stored.Checkpoint(
            thread,
            space,
            checkpoint["id"],
            parent or None,
            stored.TypedBytes(
                *dump({key: part for key, part in checkpoint.items() if key != "channel_values"})
            ),
            stored.TypedBytes(*dump(about)),
            labels,
            {id_of(channel): version_text(version) for channel, version in versions.items()},
        )
        new = {
            id_of(channel): stored.TypedBytes(*dump(values[channel])) if channel in values else None
            for channel in new_versions
        }
        expected = (parent or "") if self._forks == "refuse" else None

        async def put() -> RunnableConfig:
            await self._store.put(
                one, new_values=new, expected_parent=expected, ttl_seconds=self._ttl_seconds
            )
            return config_of(text_of(thread), namespace, one.id)

        return put()

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Coroutine[Any, Any, None]:
        rows = [
            stored.Write(
                task_id,
                WRITES_IDX_MAP.get(channel, at),
                id_of(channel),
                stored.TypedBytes(*self.serde.dumps_typed(value)),
                task_path,
            )
            for at, (channel, value) in enumerate(writes)
        ]
        where, id = where_of(config), config["configurable"]["checkpoint_id"]  # noqa: A001 - theirs
        return _call(lambda: self._store.put_writes(*where, id, rows))

    def _delete(self, threads: Sequence[str]) -> Coroutine[Any, Any, int]:
        return _call(lambda: self._store.delete_threads([id_of(str(one)) for one in threads]))

    def _delete_runs(self, runs: Sequence[str]) -> Coroutine[Any, Any, int]:
        return _call(lambda: self._store.delete_runs([str(one) for one in runs]))

    def _copy(self, source: str, target: str) -> Coroutine[Any, Any, int]:
        return _call(lambda: self._store.copy_thread(id_of(str(source)), id_of(str(target))))

    def _prune(self, threads: Sequence[str], strategy: str) -> Coroutine[Any, Any, int]:
        if strategy == "delete":
            return self._delete(threads)
        if strategy != "keep_latest":
            raise InvalidInputError("strategy", "must be 'keep_latest' or 'delete'")
        return _call(lambda: self._store.prune([id_of(str(one)) for one in threads]))

    def _above(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Coroutine[Any, Any, Sequence[stored.Checkpoint]]:
        where, id = where_of(config), get_checkpoint_id(config)  # noqa: A001 - theirs
        wanted = [id_of(channel) for channel in channels]
        return _call(lambda: self._store.ancestors(*where, id, wanted))

    def _history(
        self, channels: Sequence[str], above: Sequence[stored.Checkpoint]
    ) -> Mapping[str, DeltaChannelHistory]:
        load, found = self.serde.loads_typed, {}
        for channel in channels:
            name = id_of(channel)
            # Oldest ancestor first; the history of a channel begins at its last stored value.
            entry: DeltaChannelHistory = {
                "writes": [
                    (write.task, channel, load(write.value))
                    for one in reversed(above)
                    for write in one.writes
                    if write.channel == name
                ]
            }
            for one in above:
                if name in one.values:
                    entry["seed"] = load(one.values[name])
            found[channel] = entry
        return found

    def _tuple(self, one: stored.Checkpoint | None) -> CheckpointTuple | None:
        if one is None:
            return None
        load = self.serde.loads_typed
        thread, namespace = text_of(one.thread), one.labels.get(_NAMESPACE, text_of(one.namespace))
        body = load(one.body)
        body["channel_values"] = {
            text_of(channel): load(value) for channel, value in one.values.items()
        }
        return CheckpointTuple(
            config_of(thread, namespace, one.id),
            body,
            load(one.metadata),
            config_of(thread, namespace, one.parent) if one.parent else None,
            [(write.task, text_of(write.channel), load(write.value)) for write in one.writes],
        )


class _Pages:
    """Iterates over a list of checkpoints, which is read page by page on the state's event loop."""

    def __init__(self, portal: Portal, which: dict[str, Any]) -> None:
        self.portal = portal
        self.which = which
        self.found: AsyncIterator[stored.Checkpoint] | None = None


async def _next(pages: _Pages) -> Sequence[stored.Checkpoint]:
    if pages.found is None:
        pages.found = pages.portal.state.checkpoints.list(**pages.which)
    page = []
    async for one in pages.found:
        page.append(one)
        if len(page) == _PAGE:
            break
    return page


async def _close(pages: _Pages) -> None:
    if pages.found is not None:
        await pages.found.aclose()  # type: ignore[attr-defined]


async def _call(method: Any) -> Any:
    return await method()
