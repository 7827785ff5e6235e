"""The index of one agent's events for recall: words, speakers, vectors, and who said what."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.engines.inmemory.vector_rows import VectorRows
from holdfast.spi.log_entry import LogEntry
from holdfast.values.codec import decode_json
from holdfast.values.event_text import event_text
from holdfast.values.events import Event
from holdfast.values.ranking import LexicalIndex
from holdfast.values.recall_rules import (
    LOOK_BACK,
    REACH,
    Utterance,
    asks,
    borrowed_from,
    context,
    index_text,
    speaker_key,
    utterance,
)
from holdfast.values.text import tokenize


@dataclass(slots=True)
class Row(LogEntry):
    """One stored event. It is never returned to callers."""

    epoch: int = 0
    seq: int = 0
    asks: bool = False
    speaker: str = ""
    borrows: bool = False
    """Whether the words of the question that it answers are indexed for it, too."""

    @property
    def position(self) -> tuple[str, int, int]:
        """The session, epoch and seq of the event."""
        return (self.session, self.epoch, self.seq)

    def event(self) -> Event:
        """Return a new event object, which the caller may keep."""
        return self.to_event(self.epoch, self.seq)


@dataclass(frozen=True, slots=True)
class _Said:
    row: Row
    utterance: Utterance

    @property
    def position(self) -> tuple[int, int]:
        return (self.row.epoch, self.row.seq)


@dataclass(slots=True)
class EventIndex:
    """The index of one agent's events. It depends only on the current log.

    New events are indexed by ``catch_up``, so that an append does no indexing. When events are
    removed, the messages whose index entries may contain their words are indexed again at once.
    """

    words: LexicalIndex = field(default_factory=LexicalIndex)
    vectors: VectorRows = field(default_factory=VectorRows)
    speakers: Counter[str] = field(default_factory=Counter)
    bare: dict[str, Row] = field(default_factory=dict)
    """The events that have no vector."""
    given: set[str] = field(default_factory=set)
    """The keys of the events whose vector was passed by the writer."""

    _new: dict[str, Row] = field(default_factory=dict)
    _said: dict[str, list[_Said]] = field(default_factory=dict)
    _in_context: set[str] = field(default_factory=set)

    def add(self, row: Row, vector: list[float] | None) -> None:
        """Add an event at the end of its session, with a vector if the writer passed one."""
        self._new[row.key] = row
        if vector is None:
            self.bare[row.key] = row
        else:
            self.vectors.add(row.key, vector)
            self.given.add(row.key)

    def catch_up(self) -> None:
        """Index the events that were added since the last call."""
        while self._new:
            row = self._new.pop(next(iter(self._new)))
            payload = decode_json(row.body)
            row.asks, row.speaker = asks(row.type, payload), speaker_key(row.type, payload)
            if row.speaker:
                self.speakers[row.speaker] += 1
            if said := utterance(row.type, payload):
                self._said.setdefault(row.session, []).append(_Said(row, said))
            self._index(row)

    def remove(self, rows: Iterable[Row]) -> None:
        """Remove events, and index the messages again whose entries may contain their words."""
        gone: dict[str, list[Row]] = {}
        for row in rows:
            self._drop_vector(row.key)
            self.bare.pop(row.key, None)
            if self._new.pop(row.key, None) is None:
                self.words.remove(row.key)
                self._forget_speaker(row.speaker)
                gone.setdefault(row.session, []).append(row)
        for session, removed in gone.items():
            for row in self._after(session, removed):
                self._index(row)
                if row.key in self._in_context:
                    self._drop_vector(row.key)
                    self.bare[row.key] = row

    def turn(self, row: Row) -> tuple[str, str]:
        """Return the context and the text of an event, for an embedder."""
        payload = decode_json(row.body)
        return context(row.type, payload, self._before(row)), event_text(row.type, payload)

    def embedded(self, row: Row, turn: tuple[str, str], vector: list[float]) -> None:
        """Store the vector that an embedder computed, unless the event or its context has changed.

        ``turn`` is the context and text that the embedder has read; the context may be empty.
        """
        if self.bare.get(row.key) is not row or (turn[0] and turn != self.turn(row)):
            return
        del self.bare[row.key]
        self.vectors.add(row.key, vector)
        if turn[0]:
            self._in_context.add(row.key)

    def _index(self, row: Row) -> None:
        payload, before = decode_json(row.body), self._before(row)
        said = utterance(row.type, payload)
        row.borrows = said is not None and borrowed_from(said.speaker, before) is not None
        text = index_text(row.type, payload, row.occurred_at, before)
        self.words.add(row.key, tokenize(text))

    def _before(self, row: Row) -> list[Utterance]:
        """Return the messages before an event in its session, the nearest first."""
        said = self._said.get(row.session, [])
        at = _find(said, row)
        nearest = reversed(said[max(0, at - LOOK_BACK) : at])
        return [one.utterance for one in nearest if one.row.seq >= row.seq - REACH]

    def _after(self, session: str, removed: list[Row]) -> list[Row]:
        """Forget removed messages. Returns the stored events that follow each of them."""
        keys = {row.key for row in removed}
        every = self._said.pop(session, [])
        said = [one for one in every if one.row.key not in keys]
        if said:
            self._said[session] = said
        after = {}
        for one in every:
            if one.row.key in keys:
                at = _find(said, one.row)
                after.update({next_.row.key: next_.row for next_ in said[at : at + LOOK_BACK]})
        return list(after.values())

    def _forget_speaker(self, speaker: str) -> None:
        if speaker:
            self.speakers[speaker] -= 1
            if not self.speakers[speaker]:
                del self.speakers[speaker]

    def _drop_vector(self, key: str) -> None:
        self.vectors.remove(key)
        self._in_context.discard(key)
        self.given.discard(key)


def _find(said: list[_Said], row: Row) -> int:
    return bisect_left(said, (row.epoch, row.seq), key=lambda one: one.position)
