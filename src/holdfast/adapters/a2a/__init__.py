"""The A2A SDK: its task stores, event stream and push configs. Needs the extra ``server``."""

from holdfast.adapters.a2a.installed import EXTRA
from holdfast.adapters.a2a.push_store import HoldfastPushStore
from holdfast.adapters.a2a.stream import HoldfastEventStream
from holdfast.adapters.a2a.task_store import HoldfastTaskStore
from holdfast.adapters.a2a.versioned_store import HoldfastVersionedTaskStore

__all__ = [
    "EXTRA",
    "HoldfastEventStream",
    "HoldfastPushStore",
    "HoldfastTaskStore",
    "HoldfastVersionedTaskStore",
]
