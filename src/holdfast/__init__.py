"""Holdfast: the durable state and memory layer for AI agents.

Agent code imports the Protocols and value types from here; ``holdfast.open()`` chooses the engines.
Errors are in ``holdfast.errors``, message blocks in ``holdfast.content``, compaction in
``holdfast.memory``, checkpoints of graphs in ``holdfast.checkpoints``, JSON objects by namespace
and key in ``holdfast.items``, limits on running tasks in ``holdfast.queues``, schedules in
``holdfast.schedules``, API keys and health in ``holdfast.ops``, a state without an event loop in
``holdfast.blocking``, and the interfaces that engines implement in ``holdfast.spi``.
"""

import logging

from holdfast import blocking as blocking
from holdfast import checkpoints as checkpoints
from holdfast import content as content
from holdfast import errors as errors
from holdfast import items as items
from holdfast import memory as memory
from holdfast import ops as ops
from holdfast import queues as queues
from holdfast import schedules as schedules
from holdfast import spi as spi
from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import Blobs, BlobStore
from holdfast.contracts.boards import TaskStore
from holdfast.contracts.channel import Channel
from holdfast.contracts.cypher_graph import CypherCapable
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import Graph, GraphStore
from holdfast.contracts.history import HistoryProvider, HistoryRetention, HistoryStore
from holdfast.contracts.long_term_memory import LongTermMemory
from holdfast.contracts.short_term import ShortTerm, ShortTermMemory
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.vectors import VectorStore
from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.runtime.outcome import Reply, TaskFailedError, TaskRejectedError
from holdfast.runtime.skills import Provider
from holdfast.runtime.worker import Worker
from holdfast.values.blobs import BlobInfo
from holdfast.values.boards import Card, Task, TaskList, TaskStatus
from holdfast.values.channels import ChannelEvent
from holdfast.values.clock import ManualClock
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import moved as _moved
from holdfast.values.documents import Document, SearchResult
from holdfast.values.errors import HoldfastError
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.facts import Memory
from holdfast.values.graph import Entity, Relationship, SubGraph
from holdfast.values.identity import ALL_AGENTS, AgentId
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TaskState
from holdfast.values.memory import Assembled, Hydrated
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.events import TaskEvent
from holdfast.values.tasks.push import PushConfig
from holdfast.values.tasks.records import (
    Artifact,
    ContextPage,
    ContextRecord,
    Feedback,
    TaskPage,
    TaskRecord,
)
from holdfast.wiring.front_door import open as open  # not in __all__: `import *` keeps Python's own
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

__all__ = [
    "ALL_AGENTS",
    "ANY_OWNER",
    "AgentId",
    "AgentMemory",
    "App",
    "Artifact",
    "Assembled",
    "BlobIndex",
    "BlobInfo",
    "BlobStore",
    "Blobs",
    "Card",
    "Channel",
    "ChannelEvent",
    "ChatMessage",
    "ContextPage",
    "ContextRecord",
    "CypherCapable",
    "Document",
    "Entity",
    "EpisodicMemory",
    "Event",
    "Feedback",
    "Graph",
    "GraphStore",
    "HistoryProvider",
    "HistoryRetention",
    "HistoryStore",
    "HoldfastError",
    "Hydrated",
    "LongTermMemory",
    "ManualClock",
    "Memory",
    "Provider",
    "PushConfig",
    "Recalled",
    "Relationship",
    "Reply",
    "SearchResult",
    "Session",
    "Settings",
    "ShortTerm",
    "ShortTermMemory",
    "State",
    "SubGraph",
    "Task",
    "TaskContext",
    "TaskEvent",
    "TaskFailedError",
    "TaskLedger",
    "TaskList",
    "TaskPage",
    "TaskRecord",
    "TaskRejectedError",
    "TaskState",
    "TaskStatus",
    "TaskStore",
    "VectorStore",
    "Worker",
    "new_id",
]

_MOVED = {
    content: [
        "AudioBlock",
        "ContentBlock",
        "DataBlock",
        "DocumentBlock",
        "ErrorBlock",
        "ImageBlock",
        "ReasoningBlock",
        "Role",
        "TextBlock",
        "ToolResultBlock",
        "ToolUseBlock",
        "UnknownBlock",
        "VideoBlock",
    ],
    errors: [
        "AlreadyExistsError",
        "BackPressureError",
        "CodecError",
        "ConfigError",
        "ConflictError",
        "EngineError",
        "IllegalTransitionError",
        "InvalidInputError",
        "LeaseLostError",
        "MissingExtraError",
        "NotFoundError",
        "NotSupportedError",
        "SchemaError",
        "TimedOutError",
        "UnavailableError",
        "UnknownSchemeError",
        "VersionConflictError",
    ],
    memory: [
        "AgentFacts",
        "ContextItem",
        "SlidingWindow",
        "Strategy",
        "SummaryCheckpoint",
        "TokenBudget",
        "TrimToolResults",
        "Wake",
        "WakeStatus",
        "WorkingMemory",
        "compact",
        "compact_async",
        "estimate_tokens",
    ],
    ops: [
        "ApiKey",
        "EngineHealth",
        "Health",
        "KeyScope",
        "KeyStore",
        "NewApiKey",
        "Opening",
    ],
    spi: [
        "ArtifactChunk",
        "ClaimedTask",
        "Clock",
        "Embedder",
        "IndexedBlob",
        "Lease",
        "OutboxEntry",
        "StateSnapshot",
        "StepKey",
        "StepRecord",
        "SystemClock",
        "TaskRequest",
        "Transition",
    ],
}
"""Deprecated names of this module, by the module that has them now."""

# Not a definition: a type checker would take it to have every name.
globals()["__getattr__"] = _moved(__name__, _MOVED)

# A library leaves it to the program where its log lines go.
logging.getLogger("holdfast").addHandler(logging.NullHandler())
