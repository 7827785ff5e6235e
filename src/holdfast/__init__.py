"""Holdfast: the durable state and memory layer for AI agents.

Agent code imports the Protocols and value types from here; ``holdfast.open()`` chooses the engines.
"""

import logging

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.blob_index import BlobIndex
from holdfast.contracts.blobs import Blobs, BlobStore
from holdfast.contracts.boards import TaskStore
from holdfast.contracts.channel import Channel
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import CypherCapable, Graph, GraphStore
from holdfast.contracts.history import HistoryProvider, HistoryRetention
from holdfast.contracts.keys import KeyStore
from holdfast.contracts.long_term import LongTermMemory
from holdfast.contracts.short_term import ShortTerm, ShortTermMemory
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.contracts.vectors import VectorStore
from holdfast.contracts.working_memory import AgentFacts, WorkingMemory
from holdfast.memory.compaction import (
    SlidingWindow,
    Strategy,
    SummaryCheckpoint,
    TokenBudget,
    TrimToolResults,
    compact,
    compact_async,
    estimate_tokens,
)
from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext
from holdfast.runtime.outcome import Reply, TaskFailedError, TaskRejectedError
from holdfast.runtime.skills import Provider
from holdfast.runtime.worker import Worker
from holdfast.spi.embedding import Embedder
from holdfast.values.blobs import BlobInfo, IndexedBlob
from holdfast.values.boards import Task, TaskList, TaskStatus
from holdfast.values.channels import ChannelEvent
from holdfast.values.clock import Clock, ManualClock, SystemClock
from holdfast.values.content import (
    AudioBlock,
    ChatMessage,
    ContentBlock,
    DataBlock,
    DocumentBlock,
    ErrorBlock,
    ImageBlock,
    ReasoningBlock,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)
from holdfast.values.documents import Document, SearchResult
from holdfast.values.errors import (
    AlreadyExistsError,
    BackPressureError,
    CodecError,
    ConfigError,
    ConflictError,
    EngineError,
    HoldfastError,
    IllegalTransitionError,
    InvalidInputError,
    LeaseLostError,
    MissingExtraError,
    NotFoundError,
    NotSupportedError,
    SchemaError,
    TimedOutError,
    UnavailableError,
    UnknownSchemeError,
    VersionConflictError,
)
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.facts import Memory
from holdfast.values.graph import Entity, Relationship, SubGraph
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id
from holdfast.values.keys import ApiKey, KeyScope, NewApiKey
from holdfast.values.lifecycle import TaskState
from holdfast.values.memory import Assembled, ContextItem, Hydrated
from holdfast.values.states import StateSnapshot
from holdfast.values.tasks.events import (
    ArtifactChunk,
    StepKey,
    StepRecord,
    TaskEvent,
    TaskRequest,
    Transition,
)
from holdfast.values.tasks.push import OutboxEntry, PushConfig
from holdfast.values.tasks.records import (
    Artifact,
    ClaimedTask,
    ContextPage,
    ContextRecord,
    Feedback,
    Lease,
    TaskPage,
    TaskRecord,
)
from holdfast.values.wakes import Wake, WakeStatus
from holdfast.wiring.front_door import Opening
from holdfast.wiring.front_door import open as open  # not in __all__: `import *` keeps Python's own
from holdfast.wiring.health import EngineHealth, Health
from holdfast.wiring.settings import Settings
from holdfast.wiring.state import State

__all__ = [
    "AgentFacts",
    "AgentId",
    "AgentMemory",
    "AlreadyExistsError",
    "ApiKey",
    "App",
    "Artifact",
    "ArtifactChunk",
    "Assembled",
    "AudioBlock",
    "BackPressureError",
    "BlobIndex",
    "BlobInfo",
    "BlobStore",
    "Blobs",
    "Channel",
    "ChannelEvent",
    "ChatMessage",
    "ClaimedTask",
    "Clock",
    "CodecError",
    "ConfigError",
    "ConflictError",
    "ContentBlock",
    "ContextItem",
    "ContextPage",
    "ContextRecord",
    "CypherCapable",
    "DataBlock",
    "Document",
    "DocumentBlock",
    "Embedder",
    "EngineError",
    "EngineHealth",
    "Entity",
    "EpisodicMemory",
    "ErrorBlock",
    "Event",
    "Feedback",
    "Graph",
    "GraphStore",
    "Health",
    "HistoryProvider",
    "HistoryRetention",
    "HoldfastError",
    "Hydrated",
    "IllegalTransitionError",
    "ImageBlock",
    "IndexedBlob",
    "InvalidInputError",
    "KeyScope",
    "KeyStore",
    "Lease",
    "LeaseLostError",
    "LongTermMemory",
    "ManualClock",
    "Memory",
    "MissingExtraError",
    "NewApiKey",
    "NotFoundError",
    "NotSupportedError",
    "Opening",
    "OutboxEntry",
    "Provider",
    "PushConfig",
    "ReasoningBlock",
    "Recalled",
    "Relationship",
    "Reply",
    "Role",
    "SchemaError",
    "SearchResult",
    "Session",
    "Settings",
    "ShortTerm",
    "ShortTermMemory",
    "SlidingWindow",
    "State",
    "StateSnapshot",
    "StepKey",
    "StepRecord",
    "Strategy",
    "SubGraph",
    "SummaryCheckpoint",
    "SystemClock",
    "Task",
    "TaskContext",
    "TaskEvent",
    "TaskFailedError",
    "TaskLedger",
    "TaskList",
    "TaskPage",
    "TaskRecord",
    "TaskRejectedError",
    "TaskRequest",
    "TaskState",
    "TaskStatus",
    "TaskStore",
    "TextBlock",
    "TimedOutError",
    "TokenBudget",
    "ToolResultBlock",
    "ToolUseBlock",
    "Transition",
    "TrimToolResults",
    "UnavailableError",
    "UnknownBlock",
    "UnknownSchemeError",
    "VectorStore",
    "VersionConflictError",
    "VideoBlock",
    "Wake",
    "WakeStatus",
    "Worker",
    "WorkingMemory",
    "compact",
    "compact_async",
    "estimate_tokens",
    "new_id",
]

# A library leaves it to the program where its log lines go.
logging.getLogger("holdfast").addHandler(logging.NullHandler())
