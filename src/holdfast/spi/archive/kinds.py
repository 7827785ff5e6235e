"""The kinds of records, in the order in which they are dumped and loaded."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.spi.archive import records as of
from holdfast.spi.archive import task_records as of_tasks


class Kind(NamedTuple):
    """A kind of records: its name, the attribute of a ``State`` that it belongs to, its class."""

    name: str
    contract: str
    record: type[of.Record]


KINDS: tuple[Kind, ...] = (
    Kind("data_keys", "sealing", of.DataKeyRecord),
    Kind("sessions", "episodes", of.SessionRecord),
    Kind("deleted_sessions", "episodes", of.DeletedSessionRecord),
    Kind("events", "episodes", of.EventRecord),
    Kind("states", "short_term", of.StateRecord),
    Kind("earlier_states", "short_term", of.EarlierStateRecord),
    Kind("facts", "long_term", of.FactRecord),
    Kind("documents", "vectors", of.DocumentRecord),
    Kind("entities", "graph", of.EntityRecord),
    Kind("relationships", "graph", of.RelationshipRecord),
    Kind("blobs", "blobs", of.BlobRecord),
    Kind("boards", "boards", of.BoardRecord),
    Kind("channels", "channel", of.ChannelRecord),
    Kind("channel_events", "channel", of.ChannelEventRecord),
    Kind("threads", "checkpoints", of.ThreadRecord),
    Kind("checkpoints", "checkpoints", of.CheckpointRecord),
    Kind("channel_values", "checkpoints", of.ChannelValueRecord),
    Kind("checkpoint_writes", "checkpoints", of.CheckpointWriteRecord),
    Kind("items", "items", of.ItemRecord),
    Kind("contexts", "tasks", of_tasks.ContextRecord),
    Kind("tasks", "tasks", of_tasks.TaskRecord),
    Kind("task_events", "tasks", of_tasks.TaskEventRecord),
    Kind("feedback", "tasks", of_tasks.FeedbackRecord),
    Kind("inbox", "tasks", of_tasks.InboxRecord),
    Kind("push_configs", "tasks", of_tasks.PushConfigRecord),
    Kind("deliveries", "tasks", of_tasks.DeliveryRecord),
    Kind("cleanup", "tasks", of_tasks.CleanupRecord),
    Kind("schedules", "schedules", of.ScheduleRecord),
    Kind("keys", "keys", of.KeyRecord),
)
"""All kinds; a kind comes after the kinds that its records refer to."""

SEALED = KINDS[0]
"""The kind of the data keys: the archive of a tenant that is not sealed is without it."""

UNSEALED = frozenset({"deleted_sessions", "keys"})
"""The kinds that have nothing to seal: a sealed tenant without data keys has only these."""

BY_NAME = {kind.name: kind for kind in KINDS}
