"""Checkpoints of a graph that runs in steps, and the writes between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class TypedBytes(NamedTuple):
    """Serialised bytes, and their format. A store never interprets them.

    >>> TypedBytes("json", b"[1]").kind
    'json'
    """

    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """What one task wrote to one channel after a checkpoint.

    Of several writes with the same task and index, the first is kept; below index 0, the last.

    >>> Write("t1", 0, "messages", TypedBytes("json", b'"hello"')).path
    ''
    """

    task: str
    index: int
    channel: str
    value: TypedBytes
    path: str = ""
    """The path of the task in the graph: writes are ordered by it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of one namespace of a thread after a step.

    ``versions`` names the version of each channel. ``values`` has the channels that have a value at
    that version, and ``writes`` what tasks wrote since, by path, task and index.

    >>> body, about = TypedBytes("json", b"{}"), TypedBytes("json", b"{}")
    >>> Checkpoint("thread-1", "", "c1", None, body, about).versions
    {}
    """

    thread: str
    namespace: str
    id: str
    parent: str | None
    body: TypedBytes
    metadata: TypedBytes
    labels: Mapping[str, Any] = field(default_factory=dict)
    """Labels for the filters of ``list``; ``delete_runs`` uses the label ``run_id``."""
    versions: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, TypedBytes] = field(default_factory=dict)
    writes: tuple[Write, ...] = ()
