"""Encrypted session logs: bodies and metadata; words and filters use keyed digests."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal
from holdfast.sealing.states import seal_patches
from holdfast.spi.episodes import (
    EpisodeStorage,
    EventScope,
    NamedStates,
    NearestEvents,
    RecallQuestion,
    SessionScope,
    no_states,
)
from holdfast.spi.hybrid.hot_entry import PositionedEntry
from holdfast.spi.id_page import IdPage
from holdfast.spi.log_entry import LogEntry, TranscriptPage
from holdfast.spi.transcripts import MessageRow, Tail, TranscriptKey, Transcripts
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import ConflictError
from holdfast.values.events import Event, Recalled, Session
from holdfast.values.explanations import Explanation
from holdfast.values.filters import Filter
from holdfast.values.owners import split_owned
from holdfast.values.sealed import WORDS, is_sealed
from holdfast.values.states import ExpectedWrite, Patched, StateSnapshot

Stored: TypeAlias = Callable[[str, list[str]], Awaitable[Sequence[Event]]]
"""Reads the stored, encrypted events of a session by their ids."""

_METADATA = Place("session", "", "metadata")
"""The place of session metadata. It has no id, because a fork copies the metadata."""


async def seal_entries(sealing: Seal, entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return entries with encrypted bodies. A retry of an entry gives the same bytes.

    ::

        await storage.append(await seal_entries(sealing, entries))
    """
    found = []
    blind = await sealing.blind()
    for entry in entries:
        sealing.check("payload", entry.body)
        sealer = await sealing.session_sealer(entry.session)
        if sealer is None or blind is None:
            found.append(entry)
            continue
        payload = decode_json(entry.body)
        words = blind.event(entry.type, payload, entry.occurred_at)
        # A retry from before a rotation has other bytes: ``as_stored`` finds those that are stored.
        body = sealer.newest.json(
            _body(entry.id),
            entry.body,
            {WORDS: words.to_json(), **blind.scalars(payload)},
            again=True,
        )
        found.append(dataclasses.replace(entry, body=body))
    return found


async def as_stored(
    sealing: Seal, stored: Stored, entries: Sequence[LogEntry], sealed: Sequence[LogEntry]
) -> list[LogEntry] | None:
    """Return the encrypted entries, with the stored bodies for those that are already stored.

    The bytes of a retry differ on another day, or if the event was stored before encryption was
    turned on. Returns ``None`` if no entry is stored with other bytes and the same content. ::

        again = await as_stored(sealing, storage.get, entries, sealed)
    """
    ids: dict[str, list[str]] = {}
    for one in entries:
        ids.setdefault(one.session, []).append(one.id)
    found = [one for session in ids for one in await stored(session, ids[session])]
    opened = await open_events(sealing, found)
    bodies = {
        (one.session_id, one.id): (encode_json(one.payload), encode_json(plain.payload))
        for one, plain in zip(found, opened, strict=True)
    }
    again = []
    for entry, one in zip(entries, sealed, strict=True):
        body, content = bodies.get((entry.session, entry.id), (one.body, ""))
        again.append(dataclasses.replace(one, body=body) if content == entry.body else one)
    return None if again == list(sealed) else again


class SealedTranscripts(Transcripts):
    """Encrypts what a ``Transcripts`` stores; ``stored`` reads events of the log by their ids.

    ::

        transcripts = SealedTranscripts(PostgresTranscripts(engine), sealing, episodes.get)
    """

    def __init__(self, inner: Transcripts, seal: Seal, stored: Stored | None = None) -> None:
        self._inner = inner
        self._seal = seal
        self._stored = stored

    async def append(self, entries: Sequence[LogEntry]) -> None:
        """Append entries."""
        sealed = await seal_entries(self._seal, entries)
        try:
            await self._inner.append(sealed)
        except ConflictError:
            again = await self._again(entries, sealed)
            if again is None:
                raise
            await self._inner.append(again)

    async def append_across(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of several sessions."""
        try:
            await self._inner.append_across(await seal_entries(self._seal, entries))
        except ConflictError:
            # One of them may be a retry with other bytes.
            await super().append_across(entries)

    async def read(self, key: TranscriptKey, page: TranscriptPage) -> Sequence[MessageRow]:
        """Return a page of messages."""
        rows = await self._inner.read(key, page)
        opener = await self._seal.opener(*(_text(row) for row in rows))
        if opener.is_plain:
            return rows
        return [_opened_row(opener, key.session, row) for row in rows]

    async def pop(self, key: TranscriptKey) -> MessageRow | None:
        """Remove the newest message and return it."""
        row = await self._inner.pop(key)
        return row and _opened_row(await self._seal.opener(_text(row)), key.session, row)

    async def replace_tail(self, key: TranscriptKey, tail: Tail) -> int:
        """Replace the messages after a number."""
        sealed = await seal_entries(self._seal, tail.entries)
        try:
            return await self._inner.replace_tail(key, tail._replace(entries=sealed))
        except ConflictError:
            again = await self._again(tail.entries, sealed)
            if again is None:
                raise
            return await self._inner.replace_tail(key, tail._replace(entries=again))

    async def clear(self, key: TranscriptKey, run: str | None) -> None:
        """Delete the messages of one run, or of all runs."""
        await self._inner.clear(key, run)

    async def count(self, key: TranscriptKey) -> int:
        """Return the number of messages."""
        return await self._inner.count(key)

    async def _again(
        self, entries: Sequence[LogEntry], sealed: Sequence[LogEntry]
    ) -> list[LogEntry] | None:
        if self._stored is None or self._seal.keys is None:
            return None
        return await as_stored(self._seal, self._stored, entries, sealed)


class SealedEpisodes(EpisodeStorage):
    """Encrypts what an ``EpisodeStorage`` stores; a search by words finds the same events.

    ::

        episodes = SealedEpisodes(PostgresEpisodes(engine), sealing)
    """

    def __init__(self, inner: EpisodeStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        seal.subjects.read = inner.get_session

    async def append(
        self,
        entries: Sequence[LogEntry],
        vectors: Sequence[list[float]] | None,
        patches: Sequence[ExpectedWrite] = (),
    ) -> list[PositionedEntry] | Patched[PositionedEntry]:
        """Append entries and patch states, all or none."""
        self._seal.check_vectors(vectors)
        sealed = await seal_entries(self._seal, entries)
        writes = await seal_patches(self._seal, patches)
        # Engines without patches do not have the third argument.
        more = (writes,) if writes else ()
        try:
            stored = await self._inner.append(sealed, vectors, *more)
        except ConflictError:
            again = None
            if self._seal.keys is not None:
                again = await as_stored(self._seal, self._inner.get, entries, sealed)
            if again is None:
                raise
            stored = await self._inner.append(again, vectors, *more)
        # What is stored has the same content: the caller's bodies need not be opened again.
        found = [
            dataclasses.replace(
                one, entry=dataclasses.replace(own, occurred_at=one.entry.occurred_at)
            )
            for one, own in zip(stored, entries, strict=True)
        ]
        return Patched(found, versions=stored.versions) if isinstance(stored, Patched) else found

    async def recent(self, scope: EventScope, limit: int | None, after_seq: int = 0) -> list[Event]:
        """Return the newest events, ascending."""
        return await self._open(
            await self._inner.recent(await self._blind(scope), limit, after_seq)
        )

    async def between(self, scope: EventScope, after: Event | None, limit: int) -> list[Event]:
        """Return the oldest events after ``after``, ascending."""
        return await self._open(await self._inner.between(await self._blind(scope), after, limit))

    async def search(self, scope: EventScope, question: RecallQuestion) -> list[Recalled]:
        """Return the best events by words."""
        blind = await self._seal.blind()
        if blind is None:
            return await self._open_hits(await self._inner.search(scope, question))
        asked = blind.question(question.text)
        found = await self._inner.search(
            await self._blind(scope), dataclasses.replace(question, text=asked.text)
        )
        return await self._open_hits(
            dataclasses.replace(hit, explanation=_readable(hit.explanation, asked.lexemes))
            for hit in found
        )

    async def nearest(self, scope: EventScope, vector: list[float], limit: int) -> NearestEvents:
        """Return the events whose vectors are closest."""
        self._seal.check_vectors(vector)
        found = await self._inner.nearest(await self._blind(scope), vector, limit)
        return found._replace(found=await self._open_hits(found.found))

    async def start_session(
        self, session: str, agent: str, metadata: str | None, subject: str | None = None
    ) -> Session:
        """Create or reopen a session."""
        blind = await self._seal.blind()
        if subject is None:
            sealer = await self._seal.session_sealer(session)
        else:
            sealer = await self._seal.sealer_about(split_owned(session)[0], subject)
        if metadata is not None:
            self._seal.check("metadata", metadata)
            if sealer is not None and blind is not None:
                scalars = blind.scalars(decode_json(metadata))
                metadata = sealer.json(_METADATA, metadata, scalars)
        about = () if subject is None else (subject,)
        stored = await self._inner.start_session(session, agent, metadata, *about)
        self._seal.subjects.remember(session, stored.subject)
        [found] = await self._open_sessions([stored])
        return found

    async def end_session(self, session: str) -> Session | None:
        """End a session."""
        return await self._session(await self._inner.end_session(session))

    async def get_session(self, session: str) -> Session | None:
        """Return a session."""
        return await self._session(await self._inner.get_session(session))

    async def list_sessions(
        self, scope: SessionScope, limit: int, after: Session | None
    ) -> list[Session]:
        """Return sessions, newest first."""
        wanted = dataclasses.replace(scope, where=await self._filter(scope.where))
        return await self._open_sessions(await self._inner.list_sessions(wanted, limit, after))

    async def list_sessions_with_states(
        self, scope: SessionScope, limit: int, after: Session | None, named: NamedStates
    ) -> tuple[list[Session], dict[str, StateSnapshot]]:
        """Return sessions with their states, where metadata is not encrypted."""
        if await self._seal.blind() is not None:
            raise no_states("sealed")
        return await self._inner.list_sessions_with_states(scope, limit, after, named)

    async def agents(self, page: IdPage) -> list[str]:
        """Return a page of the agents that have events."""
        return await self._inner.agents(page)

    async def get(self, session: str, ids: list[str]) -> list[Event]:
        """Return events by their ids."""
        return await self._open(await self._inner.get(session, ids))

    async def fork(self, session: str, at: int | None, into: str) -> Session:
        """Copy a log into a new session."""
        stored = await self._inner.fork(session, at, into)
        self._seal.subjects.remember(into, stored.subject)
        [found] = await self._open_sessions([stored])
        return found

    async def delete_session(self, session: str) -> bool:
        """Delete a session with its log."""
        existed = await self._inner.delete_session(session)
        self._seal.subjects.forget(session)
        return existed

    async def delete_events(self, session: str, ids: list[str]) -> int:
        """Delete events by their ids."""
        return await self._inner.delete_events(session, ids)

    async def clear(
        self, session: str, agent: str | None, run: str | None, types: list[str] | None
    ) -> int:
        """Delete events."""
        return await self._inner.clear(session, agent, run, types)

    async def _blind(self, scope: EventScope) -> EventScope:
        if scope.where is None:
            return scope
        return dataclasses.replace(scope, where=await self._filter(scope.where))

    async def _filter(self, wanted: Filter | None) -> Filter | None:
        blind = await self._seal.blind()
        if wanted is None or blind is None:
            return wanted
        return blind.filter(wanted, whole=True)

    async def _open(self, events: Sequence[Event]) -> list[Event]:
        return await open_events(self._seal, events)

    async def _open_hits(self, hits: Iterable[Recalled]) -> list[Recalled]:
        found = list(hits)
        if not any(is_sealed(hit.event.payload) for hit in found):
            return found
        events = await self._open([hit.event for hit in found])
        return [
            dataclasses.replace(hit, event=event) for hit, event in zip(found, events, strict=True)
        ]

    async def _session(self, session: Session | None) -> Session | None:
        if session is None:
            return None
        [found] = await self._open_sessions([session])
        return found

    async def _open_sessions(self, sessions: Sequence[Session]) -> list[Session]:
        opener = await self._seal.opener(*(one.metadata for one in sessions))
        return [
            dataclasses.replace(
                one, metadata=opener.json(split_owned(one.id)[0], _METADATA, one.metadata)
            )
            for one in sessions
        ]


async def open_events(sealing: Seal, events: Sequence[Event]) -> list[Event]:
    """Return events with decrypted payloads.

    ::

        events = await open_events(sealing, stored)
    """
    opener = await sealing.opener(*(one.payload for one in events))
    if opener.is_plain:
        return list(events)
    return [
        dataclasses.replace(
            one,
            payload=opener.json(split_owned(one.session_id)[0], _body(one.id), one.payload),
        )
        for one in events
    ]


def _body(event_id: str) -> Place:
    # A fork keeps the ids of its events, so they are not bound to the session.
    return Place("log", event_id, "body")


def _opened_row(opener: Opener, session: str, row: MessageRow) -> MessageRow:
    _, event_id, when, seq = row
    body = opener.json_text(split_owned(session)[0], _body(event_id), _text(row))
    return (body, event_id, when, seq)


def _text(row: MessageRow) -> str:
    body = row[0]
    return body.decode() if isinstance(body, bytes) else body


def _readable(found: Explanation | None, lexemes: Mapping[str, str]) -> Explanation | None:
    if found is None:
        return None
    return dataclasses.replace(
        found,
        words=tuple(lexemes.get(one, one) for one in found.words),
        borrowed=tuple(lexemes.get(one, one) for one in found.borrowed),
    )
