"""What an engine implements: narrow Protocols on records that the contracts have checked.

An engine also uses these values, and the records in the modules of its Protocols. ::

    from holdfast.spi import Engine, EngineOptions, Transcripts
"""

from holdfast.spi.blob_index import BlobIndexStorage
from holdfast.spi.blobs import BlobStorage
from holdfast.spi.boards import BoardStorage
from holdfast.spi.channels import ChannelStorage
from holdfast.spi.embedding import Embedder, TurnEmbedder
from holdfast.spi.engine import Engine, EngineOptions
from holdfast.spi.episodes import EpisodeStorage
from holdfast.spi.graph import CypherStorage, GraphStorage
from holdfast.spi.keys import KeyStorage
from holdfast.spi.long_term import LongTermStorage
from holdfast.spi.reranking import Reranker
from holdfast.spi.states import StateStorage
from holdfast.spi.tasks.ledger import TaskStorage
from holdfast.spi.tasks.work import WorkStorage
from holdfast.spi.transcripts import Transcripts
from holdfast.spi.vectors import VectorStorage
from holdfast.spi.wake import SessionWake
from holdfast.values.blobs import IndexedBlob
from holdfast.values.clock import Clock, SystemClock
from holdfast.values.explanations import Explanation
from holdfast.values.states import StatePatch, StateSnapshot
from holdfast.values.tasks.events import ArtifactChunk, StepKey, StepRecord, TaskRequest, Transition
from holdfast.values.tasks.push import OutboxEntry
from holdfast.values.tasks.records import ClaimedTask, Completion, Lease
from holdfast.values.tasks.reports import StatusReport

__all__ = [
    "ArtifactChunk",
    "BlobIndexStorage",
    "BlobStorage",
    "BoardStorage",
    "ChannelStorage",
    "ClaimedTask",
    "Clock",
    "Completion",
    "CypherStorage",
    "Embedder",
    "Engine",
    "EngineOptions",
    "EpisodeStorage",
    "Explanation",
    "GraphStorage",
    "IndexedBlob",
    "KeyStorage",
    "Lease",
    "LongTermStorage",
    "OutboxEntry",
    "Reranker",
    "SessionWake",
    "StatePatch",
    "StateSnapshot",
    "StateStorage",
    "StatusReport",
    "StepKey",
    "StepRecord",
    "SystemClock",
    "TaskRequest",
    "TaskStorage",
    "Transcripts",
    "Transition",
    "TurnEmbedder",
    "VectorStorage",
    "WorkStorage",
]
