"""Decides which records of an archive have not expired."""

from __future__ import annotations

from datetime import datetime

from holdfast.spi.archive import records as of

_EXPIRING = (
    *(of.StateRecord, of.FactRecord, of.BlobRecord, of.ChannelEventRecord),
    *(of.ThreadRecord, of.ItemRecord),
)
_OF_THREADS = (of.CheckpointRecord, of.ChannelValueRecord, of.CheckpointWriteRecord)


class Live:
    """Decides whether records have not expired at a given time.

    Call it with threads before their checkpoints, and with states before their versions.

    >>> from datetime import UTC
    >>> live = Live(datetime(2030, 1, 1, tzinfo=UTC))
    >>> live(of.ThreadRecord("t1", 60.0, datetime(2029, 1, 1, tzinfo=UTC)))
    False
    """

    def __init__(self, at: datetime) -> None:
        self._at = at
        self._expired_threads: set[str] = set()
        self._expired_states: set[str] = set()

    def __call__(self, record: of.Record) -> bool:
        """Return whether the record has not expired; without an expiry it never does."""
        if isinstance(record, _OF_THREADS):
            return record.thread not in self._expired_threads
        if isinstance(record, of.EarlierStateRecord):
            return record.session not in self._expired_states
        if not isinstance(record, _EXPIRING):
            return True
        expired = record.expires_at is not None and record.expires_at <= self._at
        if expired and isinstance(record, of.ThreadRecord):
            self._expired_threads.add(record.id)
        if expired and isinstance(record, of.StateRecord):
            self._expired_states.add(record.session)
        return not expired
