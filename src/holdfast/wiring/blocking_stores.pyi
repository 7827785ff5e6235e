# The types of a blocking state: the signatures of ``State`` and of its stores, without ``async``.
# Written by ``make docs``; a test keeps it equal to the code.

import builtins
import os
from collections.abc import AsyncIterable, Callable, Collection, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, Unpack, type_check_only

from holdfast.contracts.agent_memory import Recordable
from holdfast.contracts.schedules import Tasks, Ticks
from holdfast.contracts.sessions import SessionOrder
from holdfast.contracts.tasks.contexts import TaskMessage
from holdfast.contracts.tasks.filters import TaskOrder, TaskWhere
from holdfast.erasure.eraser import Progress
from holdfast.runtime.runner import Ending
from holdfast.runtime.running_task import RunningTask
from holdfast.spi.key_provider import KeyProvider
from holdfast.spi.log_entry import LogEntry
from holdfast.spi.reranking import Reranker
from holdfast.spi.tasks.operations import CountBy
from holdfast.spi.tasks.work import ScheduledWork, WorkKind, WorkSurvey
from holdfast.values.backlog import Backlog, PoolUse
from holdfast.values.blobs import BlobInfo
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.channels import ChannelEvent
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.documents import Document, SearchResult
from holdfast.values.erasure import ErasureRecord, ErasureReport
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.facts import Memory
from holdfast.values.graph import Direction, Entity, Relationship, SubGraph
from holdfast.values.identity import Agent, AgentId, AnyAgent
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut, Namespace
from holdfast.values.keys import ApiKey, KeyScope, NewApiKey
from holdfast.values.lifecycle import TaskState
from holdfast.values.memory import Assembled, Hydrated
from holdfast.values.owners import MemoryScope, Owner
from holdfast.values.schedules import Missed, ScheduleRecord
from holdfast.values.states import Patched, StatePatch, StateSnapshot, StateVersion
from holdfast.values.tasks.changes import TaskChanges
from holdfast.values.tasks.cleanup import CleanupKind, CleanupMark
from holdfast.values.tasks.events import ArtifactChunk, StepKey, StepRecord, TaskEvent
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.new_task import NewTask
from holdfast.values.tasks.operations import ManyTasks, TaskCounts, WorkerRecord
from holdfast.values.tasks.push import OutboxEntry, PushConfig
from holdfast.values.tasks.records import (
    Artifact,
    ClaimedTask,
    Completion,
    ContextPage,
    ContextRecord,
    Feedback,
    Lease,
    TaskPage,
    TaskRecord,
)
from holdfast.values.tasks.reports import Report
from holdfast.wiring.archive_runs import ArchiveReport, OnProgress
from holdfast.wiring.health import Health
from holdfast.wiring.portal import Portal
from holdfast.wiring.state import State
from holdfast.wiring.telemetry import Tracing

class BlockingStores:
    def __init__(self, target: Any, portal: Portal) -> None: ...
    def _wrap(self, answer: Any) -> Any: ...
    def for_owner(self, owner: str, *, memory: MemoryScope = ...) -> Self: ...
    @property
    def blobs(self) -> BlockingStoredBlobs: ...
    @property
    def boards(self) -> BlockingBoards: ...
    def channel(self, name: str) -> BlockingChannel: ...
    @property
    def checkpoints(self) -> BlockingCheckpoints: ...
    def confined(self) -> Self: ...
    @property
    def engines(self) -> dict[str, str]: ...
    @property
    def episodes(self) -> BlockingEpisodicMemory: ...
    def erase(
        self,
        *,
        tenant: str | None = ...,
        subject: str | None = ...,
        agent: Agent | None = ...,
        session: str | None = ...,
        dry_run: bool = ...,
        progress: Progress | None = ...,
    ) -> ErasureReport: ...
    def for_tenant(self, tenant: str) -> Self: ...
    @property
    def graph(self) -> BlockingKnowledgeGraph: ...
    @property
    def history(self) -> BlockingHistory: ...
    @property
    def items(self) -> BlockingItems: ...
    @property
    def keys(self) -> BlockingKeyStore: ...
    @property
    def long_term(self) -> BlockingLongTerm: ...
    def memory(self, agent: Agent, *, session_id: str | None = ...) -> BlockingAgentMemory: ...
    @property
    def ops(self) -> BlockingOps: ...
    @property
    def owner(self) -> str: ...
    @property
    def runner(self) -> type[BlockingRunner]: ...
    @property
    def schedules(self) -> BlockingScheduleStore: ...
    @property
    def short_term(self) -> BlockingStates: ...
    @property
    def tasks(self) -> BlockingTaskLedger: ...
    @property
    def tenant(self) -> str: ...
    @property
    def tracing(self) -> Tracing | None: ...
    @property
    def vectors(self) -> BlockingVectors: ...

@type_check_only
class BlockingStoredBlobs:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def delete(self, ref: str) -> bool: ...
    def open(
        self, ref: str, *, offset: int = ..., length: int | None = ...
    ) -> Generator[bytes, None, None]: ...
    def pin(self, ref: str) -> None: ...
    def resolve(self, ref: str) -> bytes: ...
    def stat(self, ref: str) -> BlobInfo: ...
    def store(
        self,
        data: bytes | str,
        *,
        content_type: str = ...,
        pinned: bool = ...,
        ttl_seconds: float | None = ...,
        subject: str | None = ...,
    ) -> str: ...
    def store_stream(
        self,
        chunks: AsyncIterable[bytes],
        *,
        content_type: str = ...,
        pinned: bool = ...,
        ttl_seconds: float | None = ...,
        subject: str | None = ...,
    ) -> str: ...
    def sweep(self) -> int: ...
    def unpin(self, ref: str) -> None: ...

@type_check_only
class BlockingBoards:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]: ...
    def create_task_list(
        self,
        conversation_id: str,
        task_titles: list[str],
        *,
        agent_id: str = ...,
        agent_label: str = ...,
        parent_agent_id: str | None = ...,
        max_retries: int = ...,
    ) -> TaskList: ...
    def delete_task(self, task_list_id: str, task_id: str) -> bool: ...
    def delete_task_list(self, task_list_id: str) -> bool: ...
    def force_retry(self, task_list_id: str, task_id: str) -> Task | None: ...
    def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]: ...
    def get_by_conversation(self, conversation_id: str) -> TaskList | None: ...
    def get_task_list(self, task_list_id: str) -> TaskList | None: ...
    def increment_retry(self, task_list_id: str, task_id: str) -> Task | None: ...
    def list_conversations(
        self, *, limit: int = ..., after: str | None = ...
    ) -> list[ConversationSummary]: ...
    def update_status(
        self,
        task_list_id: str,
        task_id: str,
        status: TaskStatus | str,
        note: str = ...,
        *,
        expected_version: int | None = ...,
    ) -> Task | None: ...
    def update_task_note(
        self, task_list_id: str, task_id: str, note: str, *, expected_version: int | None = ...
    ) -> Task | None: ...
    def update_task_title(
        self, task_list_id: str, task_id: str, title: str, *, expected_version: int | None = ...
    ) -> Task | None: ...

@type_check_only
class BlockingChannel:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def clear(self) -> None: ...
    def publish(self, event: dict[str, Any], *, id: str | None = ...) -> ChannelEvent: ...
    def read(self, *, cursor: str | None = ..., limit: int = ...) -> list[ChannelEvent]: ...
    def subscribe(self, *, cursor: str | None = ...) -> Generator[ChannelEvent, None, None]: ...
    def tail(self) -> str: ...

@type_check_only
class BlockingCheckpoints:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]: ...
    def copy_thread(self, source: str, target: str) -> int: ...
    def delete_runs(self, runs: Sequence[str]) -> int: ...
    def delete_threads(self, threads: Sequence[str]) -> int: ...
    def get(self, thread: str, namespace: str = ..., id: str | None = ...) -> Checkpoint | None: ...
    def list(
        self,
        *,
        thread: str | None = ...,
        namespace: str | None = ...,
        id: str | None = ...,
        before: str | None = ...,
        labels: Mapping[str, Any] | None = ...,
        limit: int | None = ...,
    ) -> Generator[Checkpoint, None, None]: ...
    def prune(self, threads: Sequence[str], *, keep: int = ...) -> int: ...
    def put(
        self,
        checkpoint: Checkpoint,
        *,
        new_values: Mapping[str, TypedBytes | None],
        expected_parent: str | None = ...,
        ttl_seconds: float | None = ...,
    ) -> None: ...
    def put_writes(self, thread: str, namespace: str, id: str, writes: Sequence[Write]) -> None: ...

@type_check_only
class BlockingEpisodicMemory:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def any_owner(self) -> Self: ...
    def append(
        self,
        events: list[Event],
        *,
        embeddings: list[list[float]] | None = ...,
        patches: Sequence[StatePatch] = ...,
    ) -> Patched[Event]: ...
    def append_checked(self, entry: LogEntry) -> Event: ...
    def between(
        self,
        agent_id: AnyAgent,
        start: datetime,
        end: datetime,
        *,
        session_id: str | None = ...,
        types: list[str] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        where: dict[str, Any] | None = ...,
    ) -> list[Event]: ...
    def clear(
        self,
        session_id: str,
        *,
        agent_id: Agent | None = ...,
        run_id: str | None = ...,
        types: list[str] | None = ...,
    ) -> int: ...
    def delete_events(self, session_id: str, ids: list[str]) -> int: ...
    def delete_session(self, session_id: str) -> bool: ...
    def end_session(self, session_id: str) -> Session: ...
    def fork(self, session_id: str, into: str, *, at: int | None = ...) -> Session: ...
    def get(self, session_id: str, ids: list[str]) -> list[Event]: ...
    def get_session(self, session_id: str) -> Session | None: ...
    def list_agents(self, *, limit: int = ..., after: Agent | None = ...) -> list[AgentId]: ...
    def list_sessions(
        self,
        agent_id: AnyAgent,
        *,
        limit: int = ...,
        cursor: str | None = ...,
        where: dict[str, Any] | None = ...,
        by: SessionOrder = ...,
    ) -> list[Session]: ...
    def list_sessions_with_states(
        self,
        agent_id: AnyAgent,
        *,
        key: str = ...,
        limit: int = ...,
        cursor: str | None = ...,
        where: dict[str, Any] | None = ...,
    ) -> tuple[list[Session], dict[str, StateSnapshot]]: ...
    def recall(
        self,
        agent_id: AnyAgent,
        query: str | list[float],
        *,
        limit: int = ...,
        session_id: str | None = ...,
        types: list[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        where: dict[str, Any] | None = ...,
        explain: bool = ...,
        reranker: Reranker | None = ...,
    ) -> list[Recalled]: ...
    def recent(
        self,
        agent_id: AnyAgent,
        *,
        session_id: str | None = ...,
        limit: int | None = ...,
        types: list[str] | None = ...,
        where: dict[str, Any] | None = ...,
        after_seq: int | None = ...,
    ) -> list[Event]: ...
    def refuse_patches(self, engine: str) -> None: ...
    def start_session(
        self,
        agent_id: Agent,
        session_id: str | None = ...,
        *,
        metadata: dict[str, Any] | None = ...,
        subject: str | None = ...,
    ) -> Session: ...

@type_check_only
class BlockingKnowledgeGraph:
    def add_entities(self, entities: list[Entity]) -> list[str]: ...
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def add_relationships(self, relationships: list[Relationship]) -> list[str]: ...
    def degrees(self, entity_ids: list[str]) -> list[int]: ...
    def delete_entity(self, entity_id: str) -> bool: ...
    def delete_relationship(self, relationship_id: str) -> bool: ...
    def find_entities(self, names: list[str]) -> list[Entity]: ...
    def get_neighbors(
        self,
        entity_id: str,
        *,
        depth: int = ...,
        relationship_types: list[str] | None = ...,
        direction: Direction = ...,
        limit: int = ...,
    ) -> SubGraph: ...
    def list_entities(self, *, limit: int = ..., after: str | None = ...) -> list[Entity]: ...
    def list_relationships(
        self,
        entity_id: str,
        *,
        relationship_types: list[str] | None = ...,
        direction: Direction = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> list[Relationship]: ...

@type_check_only
class BlockingHistory:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def append(
        self, agent_id: Agent, message: ChatMessage, *, session_id: str, run_id: str | None = ...
    ) -> None: ...
    def append_checked(self, entries: Sequence[LogEntry]) -> None: ...
    def append_many(
        self,
        agent_id: Agent,
        messages: list[ChatMessage],
        *,
        session_id: str,
        run_id: str | None = ...,
    ) -> None: ...
    def checked(
        self, agent_id: Agent, messages: list[ChatMessage], *, session_id: str, run_id: str
    ) -> list[LogEntry]: ...
    def clear(self, agent_id: Agent, *, session_id: str) -> None: ...
    def clear_run(self, agent_id: Agent, *, session_id: str, run_id: str) -> None: ...
    def count_messages(self, agent_id: Agent, *, session_id: str) -> int: ...
    def get_messages(
        self,
        agent_id: Agent,
        *,
        session_id: str,
        limit: int | None = ...,
        offset: int | None = ...,
        recent_limit: int | None = ...,
        after_seq: int | None = ...,
    ) -> list[ChatMessage]: ...
    def pop(self, agent_id: Agent, *, session_id: str) -> ChatMessage | None: ...
    def replace_tail(
        self,
        agent_id: Agent,
        *,
        session_id: str,
        after_seq: int,
        messages: list[ChatMessage],
        expected_last_seq: int,
        run_id: str | None = ...,
    ) -> int: ...

@type_check_only
class BlockingItems:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def get_many(self, keys: Sequence[ItemKey], *, refresh: bool = ...) -> list[Item | None]: ...
    def list_namespaces(
        self,
        *,
        prefix: Sequence[str | None] = ...,
        suffix: Sequence[str | None] = ...,
        max_depth: int | None = ...,
        limit: int = ...,
        offset: int = ...,
    ) -> list[Namespace]: ...
    def put_many(self, puts: Sequence[ItemPut]) -> list[int]: ...
    def search(
        self,
        prefix: Namespace,
        *,
        filter: dict[str, Any] | None = ...,
        vector: list[float] | None = ...,
        limit: int = ...,
        offset: int = ...,
        refresh: bool = ...,
    ) -> list[ItemHit]: ...

@type_check_only
class BlockingKeyStore:
    def create(
        self,
        owner: str,
        *,
        name: str = ...,
        scope: KeyScope | str = ...,
        ttl_seconds: float | None = ...,
    ) -> NewApiKey: ...
    def delete(self, key_id: str) -> bool: ...
    def list_keys(self) -> list[ApiKey]: ...
    def live(self, key_id: str) -> ApiKey | None: ...
    def revoke(self, key_id: str) -> bool: ...
    def rotate(self, key_id: str, *, grace_seconds: float = ...) -> NewApiKey: ...
    def verify(self, text: str) -> ApiKey | None: ...

@type_check_only
class BlockingLongTerm:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def clear(self, agent_id: Agent, *, namespace: str = ...) -> None: ...
    def delete(self, agent_id: Agent, memory_id: str, *, namespace: str = ...) -> bool: ...
    def get(self, agent_id: Agent, memory_id: str, *, namespace: str = ...) -> Memory | None: ...
    def list(
        self,
        agent_id: Agent,
        *,
        namespace: str = ...,
        limit: int = ...,
        after: str | None = ...,
        topic: str | None = ...,
        min_confidence: float | None = ...,
        superseded: bool = ...,
    ) -> builtins.list[Memory]: ...
    def namespaces(
        self, agent_id: Agent, *, limit: int = ..., after: str | None = ...
    ) -> builtins.list[str]: ...
    def save(
        self,
        agent_id: Agent,
        content: str,
        *,
        namespace: str = ...,
        metadata: dict[str, Any] | None = ...,
        ttl_seconds: int | None = ...,
        topic: str = ...,
        confidence: float = ...,
        source: str = ...,
        supersedes: str | None = ...,
        idempotency_key: str | None = ...,
        entities: builtins.list[str] | None = ...,
        subject: str | None = ...,
    ) -> str: ...
    def search(
        self,
        agent_id: Agent,
        query: str,
        *,
        namespace: str = ...,
        limit: int = ...,
        topic: str | None = ...,
        min_confidence: float | None = ...,
    ) -> builtins.list[Memory]: ...
    def update(
        self,
        agent_id: Agent,
        memory_id: str,
        content: str,
        *,
        namespace: str = ...,
        metadata: dict[str, Any] | None = ...,
        ttl_seconds: int | None = ...,
        topic: str | None = ...,
        confidence: float | None = ...,
        source: str | None = ...,
        idempotency_key: str | None = ...,
        entities: builtins.list[str] | None = ...,
    ) -> str: ...

@type_check_only
class BlockingAgentMemory:
    @property
    def agent_id(self) -> AgentId: ...
    def assemble(
        self,
        query: str,
        budget_tokens: int,
        *,
        limit: int | None = ...,
        recent_limit: int = ...,
        facts_limit: int = ...,
        count_tokens: Callable[[ChatMessage], int] | None = ...,
    ) -> Assembled: ...
    def between(
        self,
        start: datetime,
        end: datetime,
        *,
        types: list[str] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        where: dict[str, Any] | None = ...,
    ) -> list[Event]: ...
    @property
    def facts(self) -> BlockingAgentFacts: ...
    def hydrate(
        self, query: str | list[float] | None = ..., *, limit: int = ..., recent_limit: int = ...
    ) -> Hydrated: ...
    def recall(
        self,
        query: str | list[float],
        limit: int = ...,
        *,
        types: list[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        session_id: str | None = ...,
        neighbours: int = ...,
        recency_weight: float = ...,
        half_life_seconds: float = ...,
        where: dict[str, Any] | None = ...,
        explain: bool = ...,
        reranker: Reranker | None = ...,
    ) -> list[Recalled]: ...
    def recent(
        self, limit: int = ..., *, types: list[str] | None = ..., where: dict[str, Any] | None = ...
    ) -> list[Event]: ...
    def record(
        self,
        type: str,
        payload: dict[str, Any] | ChatMessage,
        *,
        event_id: str | None = ...,
        run_id: str | None = ...,
        occurred_at: datetime | None = ...,
    ) -> Event: ...
    def record_many(
        self, events: Sequence[Recordable], embeddings: list[list[float]] | None = ...
    ) -> list[Event]: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def state(self) -> BlockingWorkingMemory: ...

@type_check_only
class BlockingOps:
    @property
    def archives(self) -> BlockingArchives: ...
    def assign_context(self, session_id: str, *, owner: str, new_id: str | None = ...) -> None: ...
    def backlog(self, *, agents: Sequence[Agent] = ..., limit: int = ...) -> Backlog: ...
    def embed_pending(self) -> int: ...
    def erasures(self) -> Generator[ErasureRecord, None, None]: ...
    def health(self) -> Health: ...
    def index_pending(self, progress: Callable[[int], None] | None = ...) -> int: ...
    def pending_events(self) -> int: ...
    def pools(self) -> dict[str, PoolUse]: ...
    def rotate_dek(
        self,
        progress: Callable[[int], None] | None = ...,
        *,
        older_than_seconds: float | None = ...,
    ) -> int: ...
    def rotate_kek(
        self, progress: Callable[[int], None] | None = ..., *, all_tenants: bool = ...
    ) -> int: ...
    def tenants(self, *, after: str = ..., limit: int = ...) -> list[str]: ...
    def unindexed_events(self) -> int: ...
    @property
    def work(self) -> BlockingWorkSignal: ...

@type_check_only
class BlockingRunner:
    def run(self, claimed: ClaimedTask, held: RunningTask) -> Ending: ...

@type_check_only
class BlockingScheduleStore:
    def create(
        self,
        schedule_id: str,
        cron: str,
        *,
        agent: Agent,
        message: ChatMessage | str,
        timezone: str = ...,
        missed: Missed | str = ...,
        missed_limit: int = ...,
        grace_seconds: float = ...,
        owner: str | None = ...,
        session_id: str | None = ...,
        metadata: dict[str, Any] | None = ...,
        max_attempts: int = ...,
    ) -> ScheduleRecord: ...
    def delete(self, schedule_id: str, *, owner: str | None = ...) -> bool: ...
    def get(self, schedule_id: str, *, owner: str | None = ...) -> ScheduleRecord | None: ...
    def list(
        self, *, owner: Owner = ..., limit: int = ..., after: ScheduleRecord | None = ...
    ) -> builtins.list[ScheduleRecord]: ...
    def next_runs(
        self, schedule_id: str, count: int = ..., *, owner: str | None = ...
    ) -> Ticks: ...
    def pause(self, schedule_id: str, *, owner: str | None = ...) -> ScheduleRecord: ...
    def resume(self, schedule_id: str, *, owner: str | None = ...) -> ScheduleRecord: ...
    def run_due(self, *, limit: int = ...) -> Tasks: ...
    def upsert(
        self,
        schedule_id: str,
        cron: str,
        *,
        agent: Agent,
        message: ChatMessage | str,
        timezone: str = ...,
        missed: Missed | str = ...,
        missed_limit: int = ...,
        grace_seconds: float = ...,
        owner: str | None = ...,
        session_id: str | None = ...,
        metadata: dict[str, Any] | None = ...,
        max_attempts: int = ...,
    ) -> ScheduleRecord: ...

@type_check_only
class BlockingStates:
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def clear(self, session_id: str) -> None: ...
    def get_many(self, session_ids: Sequence[str]) -> list[StateSnapshot]: ...
    def get_state(self, session_id: str, *, keys: Sequence[str] | None = ...) -> dict[str, Any]: ...
    def set_state(
        self,
        session_id: str,
        state: dict[str, Any],
        *,
        expected_version: int | None = ...,
        ttl_seconds: float | None = ...,
    ) -> int: ...
    def snapshot(
        self, session_id: str, *, keys: Sequence[str] | None = ..., at: int | None = ...
    ) -> StateSnapshot: ...
    def update_state(
        self,
        session_id: str,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = ...,
        expected_version: int | None = ...,
        ttl_seconds: float | None = ...,
    ) -> int: ...
    def versions(
        self, session_id: str, *, before: int | None = ..., limit: int = ...
    ) -> list[StateVersion]: ...

@type_check_only
class BlockingTaskLedger:
    def add_cleanup(
        self, lease: Lease, kind: CleanupKind, ref: str, *, agent: str = ...
    ) -> None: ...
    def adopt(
        self,
        task_id: str,
        *,
        agent: Agent,
        owner: str | None = ...,
        session_id: str | None = ...,
        metadata: dict[str, Any] | None = ...,
        reports: Sequence[Report] = ...,
    ) -> TaskRecord: ...
    def append_artifact(
        self,
        lease: Lease,
        artifact_id: str,
        parts: Sequence[ContentBlock],
        *,
        name: str = ...,
        metadata: dict[str, Any] | None = ...,
        append: bool = ...,
        last_chunk: bool = ...,
        step: StepKey | None = ...,
    ) -> ArtifactChunk: ...
    def append_feedback(
        self,
        task_id: str,
        text: str,
        *,
        rating: int | None = ...,
        metadata: dict[str, Any] | None = ...,
        feedback_id: str | None = ...,
        owner: Owner = ...,
    ) -> Feedback: ...
    def append_message(
        self, lease: Lease, message: ChatMessage, *, step: StepKey | None = ...
    ) -> ChatMessage: ...
    def artifacts(self, task_id: str, *, owner: Owner = ...) -> builtins.list[Artifact]: ...
    def cancel(
        self,
        task_id: str,
        *,
        owner: Owner = ...,
        note: str = ...,
        children: bool = ...,
        by: str | None = ...,
    ) -> TaskRecord: ...
    def cancel_many(
        self,
        *,
        owner: Owner = ...,
        note: str = ...,
        by: str | None = ...,
        limit: int = ...,
        dry_run: bool = ...,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks: ...
    def changes(
        self, after: str | None = ..., *, owner: Owner = ..., limit: int = ...
    ) -> TaskChanges: ...
    def children(
        self, task_id: str, *, owner: Owner = ..., limit: int = ..., cursor: str | None = ...
    ) -> TaskPage: ...
    def claim(
        self,
        worker: str,
        *,
        agents: Sequence[Agent] | None = ...,
        limit: int = ...,
        lease_seconds: float = ...,
        serial_contexts: bool = ...,
        messages_limit: int | None = ...,
        limits: Sequence[Limit] = ...,
        versions: Mapping[AgentId, Sequence[str]] | None = ...,
        app_version: str | None = ...,
    ) -> builtins.list[ClaimedTask]: ...
    def claim_cleanup(
        self, *, limit: int = ..., retry_seconds: float = ...
    ) -> builtins.list[CleanupMark]: ...
    def claim_outbox(
        self,
        *,
        limit: int = ...,
        lease_seconds: float = ...,
        per_owner: int | None = ...,
        busy: Mapping[str, int] | None = ...,
    ) -> builtins.list[OutboxEntry]: ...
    def clear_context(self, session_id: str, *, owner: str | None = ...) -> int: ...
    def complete_many(
        self, leases: Sequence[Lease | Completion]
    ) -> builtins.list[TaskState | None]: ...
    def context_messages(
        self,
        session_id: str,
        *,
        agents: Collection[Agent],
        owner: str | None = ...,
        limit: int = ...,
    ) -> builtins.list[TaskMessage]: ...
    def counts(
        self, by: CountBy = ..., *, owner: Owner = ..., limit: int = ..., **where: Unpack[TaskWhere]
    ) -> TaskCounts: ...
    def delete(self, task_id: str, *, owner: Owner = ...) -> bool: ...
    def delete_cleanup(self, marks: Sequence[CleanupMark]) -> int: ...
    def delete_push_config(self, task_id: str, config_id: str, *, owner: Owner = ...) -> bool: ...
    def events(
        self,
        task_id: str,
        *,
        after_seq: int = ...,
        limit: int | None = ...,
        owner: Owner = ...,
        max_bytes: int | None = ...,
    ) -> builtins.list[TaskEvent]: ...
    def follow(
        self, task_id: str, *, after_seq: int = ..., owner: Owner = ...
    ) -> Generator[TaskEvent, None, None]: ...
    def fork(
        self,
        task_id: str,
        at_seq: int,
        *,
        message: ChatMessage | None = ...,
        owner: Owner = ...,
        submit_key: str | None = ...,
        by: str | None = ...,
    ) -> TaskRecord: ...
    def get(
        self,
        task_id: str,
        *,
        owner: Owner = ...,
        messages_limit: int | None = ...,
        artifacts: bool = ...,
        max_bytes: int | None = ...,
    ) -> TaskRecord | None: ...
    def get_artifact(
        self, task_id: str, artifact_id: str, *, owner: Owner = ...
    ) -> Artifact | None: ...
    def get_context(
        self,
        session_id: str,
        *,
        owner: str | None = ...,
        messages_limit: int | None = ...,
        max_bytes: int | None = ...,
    ) -> ContextRecord | None: ...
    def get_push_config(
        self, task_id: str, config_id: str, *, owner: Owner = ...
    ) -> PushConfig | None: ...
    def heartbeat(self, lease: Lease, *, lease_seconds: float = ...) -> Lease: ...
    def held_elsewhere(self, task_id: str, refs: Sequence[str]) -> set[str]: ...
    def keep_files(self, task_id: str, refs: Sequence[str]) -> bool: ...
    def list(
        self,
        *,
        owner: Owner = ...,
        session_id: str | None = ...,
        states: Collection[TaskState | str] | None = ...,
        agent: Agent | None = ...,
        updated_after: datetime | None = ...,
        updated_before: datetime | None = ...,
        id_prefix: str | None = ...,
        worker: str | None = ...,
        text: str | None = ...,
        children: bool = ...,
        order: TaskOrder = ...,
        limit: int = ...,
        cursor: str | None = ...,
        messages_limit: int | None = ...,
        first_message: bool = ...,
        artifacts: bool = ...,
        count: bool = ...,
        max_bytes: int | None = ...,
    ) -> TaskPage: ...
    def list_cleanup(self, task_id: str) -> builtins.list[CleanupMark]: ...
    def list_context_cleanup(
        self, session_id: str, *, owner: str | None = ...
    ) -> builtins.list[CleanupMark]: ...
    def list_contexts(
        self,
        *,
        owner: Owner = ...,
        limit: int = ...,
        cursor: str | None = ...,
        children: bool = ...,
    ) -> ContextPage: ...
    def list_feedback(self, task_id: str, *, owner: Owner = ...) -> builtins.list[Feedback]: ...
    def list_outbox(self, task_id: str, *, owner: Owner = ...) -> builtins.list[OutboxEntry]: ...
    def list_push_configs(
        self, task_id: str, *, owner: Owner = ...
    ) -> builtins.list[PushConfig]: ...
    def mark_copied(self, tasks: Sequence[tuple[str, int]]) -> set[str]: ...
    def mark_delivered(self, entry: OutboxEntry) -> bool: ...
    def mark_failed(self, entry: OutboxEntry, error: str, *, max_attempts: int = ...) -> bool: ...
    def message_bytes(self, task_id: str, *, owner: Owner = ...) -> int: ...
    def messages_of_contexts(
        self,
        contexts: Sequence[tuple[str, str | None]],
        *,
        agents: Collection[Agent],
        limit: int = ...,
    ) -> builtins.list[TaskMessage]: ...
    def pause(
        self, task_id: str, *, owner: Owner = ..., note: str = ..., by: str | None = ...
    ) -> TaskRecord: ...
    def pause_many(
        self,
        *,
        owner: Owner = ...,
        note: str = ...,
        by: str | None = ...,
        limit: int = ...,
        dry_run: bool = ...,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks: ...
    def receive(
        self, lease: Lease, key: StepKey, *, topic: str = ..., last: bool = ...
    ) -> StepRecord | None: ...
    def record(
        self,
        task_id: str,
        reports: Sequence[Report],
        *,
        owner: Owner = ...,
        expected_version: int | None = ...,
    ) -> int: ...
    def record_step(
        self,
        lease: Lease,
        key: StepKey,
        result: Any,
        *,
        digest: str = ...,
        seconds: float | None = ...,
    ) -> StepRecord: ...
    def recover_expired(self, *, limit: int = ...) -> builtins.list[TaskRecord]: ...
    def release(self, lease: Lease, *, note: str = ...) -> TaskRecord: ...
    def replay(
        self,
        task_id: str,
        at_seq: int,
        *,
        owner: Owner = ...,
        messages_limit: int | None = ...,
        artifacts: bool = ...,
    ) -> TaskRecord | None: ...
    def respond(
        self, task_id: str, message: ChatMessage, *, owner: Owner = ..., by: str | None = ...
    ) -> TaskRecord: ...
    def resting_messages(
        self, *, agents: Collection[Agent], limit: int = ...
    ) -> builtins.list[TaskMessage]: ...
    def restore_artifacts(self, lease: Lease, step: StepKey) -> builtins.list[ArtifactChunk]: ...
    def resume(
        self, task_id: str, *, owner: Owner = ..., note: str = ..., by: str | None = ...
    ) -> TaskRecord: ...
    def resume_failed(
        self,
        task_id: str,
        *,
        owner: Owner = ...,
        submit_key: str | None = ...,
        by: str | None = ...,
    ) -> TaskRecord: ...
    def retry(
        self,
        task_id: str,
        *,
        owner: Owner = ...,
        submit_key: str | None = ...,
        by: str | None = ...,
    ) -> TaskRecord: ...
    def retry_many(
        self,
        *,
        owner: Owner = ...,
        by: str | None = ...,
        limit: int = ...,
        dry_run: bool = ...,
        **where: Unpack[TaskWhere],
    ) -> ManyTasks: ...
    def send(
        self,
        task_id: str,
        message: Any,
        *,
        topic: str = ...,
        message_id: str | None = ...,
        owner: Owner = ...,
    ) -> str: ...
    def steps(self, task_id: str) -> builtins.list[StepRecord]: ...
    def submit(
        self,
        agent: Agent,
        message: ChatMessage,
        *,
        session_id: str | None = ...,
        owner: str | None = ...,
        metadata: dict[str, Any] | None = ...,
        submit_key: str | None = ...,
        max_attempts: int = ...,
        run_after: datetime | timedelta | None = ...,
        retry_of: str | None = ...,
        push: Sequence[PushConfig] = ...,
        priority: int = ...,
        key: str | None = ...,
        by: str | None = ...,
    ) -> TaskRecord: ...
    def submit_and_wait(
        self,
        agent: Agent,
        message: ChatMessage,
        *,
        timeout_seconds: float | None = ...,
        session_id: str | None = ...,
        owner: str | None = ...,
        metadata: dict[str, Any] | None = ...,
        submit_key: str | None = ...,
        max_attempts: int = ...,
        run_after: datetime | timedelta | None = ...,
    ) -> TaskRecord: ...
    def submit_child(
        self,
        lease: Lease,
        key: StepKey,
        agent: Agent,
        message: ChatMessage,
        *,
        session_id: str | None = ...,
        metadata: dict[str, Any] | None = ...,
        max_attempts: int = ...,
        run_after: datetime | timedelta | None = ...,
    ) -> TaskRecord: ...
    def submit_many(
        self, tasks: Sequence[NewTask], *, owner: str | None = ...
    ) -> builtins.list[TaskRecord]: ...
    def transition(
        self,
        lease: Lease,
        to: TaskState | str,
        *,
        message: ChatMessage | None = ...,
        note: str = ...,
        run_after: datetime | timedelta | None = ...,
        progress: bool = ...,
        ask: StepKey | None = ...,
        result: Any = ...,
        children: Sequence[str] = ...,
        topic: str | None = ...,
        options: Sequence[str] | None = ...,
        schema: dict[str, Any] | None = ...,
    ) -> TaskRecord: ...
    def upsert_push_config(
        self, task_id: str, config: PushConfig, *, owner: Owner = ..., max_configs: int | None = ...
    ) -> None: ...
    def versions(self, *, owner: Owner = ..., limit: int = ...) -> dict[str, int]: ...
    def wait(
        self, task_id: str, *, timeout_seconds: float | None = ..., owner: Owner = ...
    ) -> TaskRecord: ...
    def workers(self, *, owner: Owner = ...) -> builtins.list[WorkerRecord]: ...

@type_check_only
class BlockingVectors:
    def add(self, documents: list[Document], *, collection: str = ...) -> list[str]: ...
    def add_layer(self, layer: Callable[[Any], Any]) -> None: ...
    def delete(self, ids: list[str], *, collection: str = ...) -> int: ...
    def delete_collection(self, collection: str) -> int: ...
    def get(self, ids: list[str], *, collection: str = ...) -> list[Document]: ...
    def list_collections(self) -> list[str]: ...
    def search(
        self,
        query_embedding: list[float],
        *,
        collection: str = ...,
        limit: int = ...,
        filter: dict[str, Any] | None = ...,
    ) -> list[SearchResult]: ...
    def upsert(self, documents: list[Document], *, collection: str = ...) -> list[str]: ...

@type_check_only
class BlockingAgentFacts:
    def delete(self, memory_id: str, *, namespace: str = ...) -> bool: ...
    def get(self, memory_id: str, *, namespace: str = ...) -> Memory | None: ...
    def list(
        self,
        *,
        namespace: str = ...,
        limit: int = ...,
        after: str | None = ...,
        topic: str | None = ...,
        min_confidence: float | None = ...,
        superseded: bool = ...,
    ) -> builtins.list[Memory]: ...
    def namespaces(self, *, limit: int = ..., after: str | None = ...) -> builtins.list[str]: ...
    def save(
        self,
        content: str,
        *,
        namespace: str = ...,
        metadata: dict[str, Any] | None = ...,
        ttl_seconds: int | None = ...,
        topic: str = ...,
        confidence: float = ...,
        source: str | None = ...,
        supersedes: str | None = ...,
        idempotency_key: str | None = ...,
        entities: builtins.list[str] | None = ...,
        subject: str | None = ...,
    ) -> str: ...
    def search(
        self,
        query: str,
        *,
        namespace: str = ...,
        limit: int = ...,
        topic: str | None = ...,
        min_confidence: float | None = ...,
    ) -> builtins.list[Memory]: ...
    def update(
        self,
        memory_id: str,
        content: str,
        *,
        namespace: str = ...,
        metadata: dict[str, Any] | None = ...,
        ttl_seconds: int | None = ...,
        topic: str | None = ...,
        confidence: float | None = ...,
        source: str | None = ...,
        idempotency_key: str | None = ...,
        entities: builtins.list[str] | None = ...,
    ) -> str: ...

@type_check_only
class BlockingWorkingMemory:
    def clear(self) -> None: ...
    def get(self, *, keys: Sequence[str] | None = ...) -> dict[str, Any]: ...
    def set(
        self,
        state: dict[str, Any],
        *,
        expected_version: int | None = ...,
        ttl_seconds: float | None = ...,
    ) -> int: ...
    def snapshot(self) -> StateSnapshot: ...
    def update(
        self,
        patch: dict[str, Any],
        *,
        delete_keys: Sequence[str] = ...,
        expected_version: int | None = ...,
        ttl_seconds: float | None = ...,
    ) -> int: ...

@type_check_only
class BlockingArchives:
    def copy_to(
        self, other: State, *, without: Collection[str] = ..., progress: OnProgress | None = ...
    ) -> ArchiveReport: ...
    def export(
        self,
        folder: str | os.PathLike[str],
        *,
        without: Collection[str] = ...,
        recipient: KeyProvider | None = ...,
        progress: OnProgress | None = ...,
    ) -> ArchiveReport: ...
    def load(
        self,
        folder: str | os.PathLike[str],
        *,
        rename: bool = ...,
        progress: OnProgress | None = ...,
    ) -> ArchiveReport: ...

@type_check_only
class BlockingWorkSignal:
    def notices(self) -> Generator[None, None, None]: ...
    @property
    def notified(self) -> bool: ...
    def requests(self, worker: str) -> Generator[None, None, None]: ...
    def scheduled(
        self, *, tenants: Sequence[str] | None = ..., limit: int = ...
    ) -> ScheduledWork: ...
    def survey(self, *, limit: int = ..., tenants: Sequence[str] | None = ...) -> WorkSurvey: ...
    def tenants(self, kind: WorkKind = ..., *, limit: int = ...) -> list[str]: ...
    def wait(self, *, timeout_seconds: float) -> None: ...
