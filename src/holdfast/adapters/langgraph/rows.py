"""Converts a config and a checkpoint of LangGraph to the columns of a stored row."""

from __future__ import annotations

import math

from langchain_core.runnables import RunnableConfig

from holdfast.adapters.keys import id_of, key_of
from holdfast.values.checks import MAX_ID_BYTES


def where_of(config: RunnableConfig) -> tuple[str, str]:
    """Return the thread id and the namespace of a config, in the form in which they are stored.

    >>> where_of({"configurable": {"thread_id": "t1"}})
    ('t1', '')
    """
    asked = config["configurable"]
    return id_of(str(asked["thread_id"])), namespace_id(asked.get("checkpoint_ns", ""))


def namespace_id(namespace: str) -> str:
    """Return a namespace in the form in which it is stored.

    Nested graphs have long namespaces: a namespace of more than 512 bytes is stored as a hash.

    >>> namespace_id("child:1")
    'child:1'
    """
    if not namespace:
        return ""
    return id_of(namespace) if len(namespace.encode()) <= MAX_ID_BYTES else key_of(namespace)


def config_of(thread: str, namespace: str, id: str) -> RunnableConfig:
    """Return the config of a checkpoint.

    >>> config_of("t1", "", "c1")["configurable"]["checkpoint_id"]
    'c1'
    """
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}}


def version_text(version: object) -> str:
    """Return a version as text; 1, 1.0 and "1" are different versions.

    >>> version_text(1), version_text("1")
    ('i1', 's1')
    """
    return f"{type(version).__name__[0]}{version}"


def is_label(value: object) -> bool:
    """Return whether a metadata value can be filtered by: a text, a finite number or ``None``.

    >>> is_label("loop"), is_label(float("nan"))
    (True, False)
    """
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return value is None or isinstance(value, str)
