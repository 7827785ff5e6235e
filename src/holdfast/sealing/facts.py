"""Encrypted facts: contents, metadata, topics and sources; words become keyed digests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from holdfast.sealing.blind import Blind
from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal, Sealer
from holdfast.spi.fact_draft import FactChange, FactDraft
from holdfast.spi.long_term import (
    FactFilter,
    FactPage,
    FactQuestion,
    FactScope,
    FoundFacts,
    LongTermStorage,
    UnindexedFact,
)
from holdfast.values.facts import Memory
from holdfast.values.owners import split_owned
from holdfast.values.sealed import SEALED_TEXT

Memories: TypeAlias = list[Memory]
Names: TypeAlias = list[str]


class SealedFacts(LongTermStorage):
    """Encrypts what a ``LongTermStorage`` stores; a search by words finds the same facts.

    A retry must give the same bytes, and an update copies fields to a new id. So the encryption is
    bound to the agent and namespace of a fact, not to its id. The key is that of its subject, but
    for the topic, by which a search narrows the facts of all subjects: that is the owner's. ::

        facts = SealedFacts(PostgresLongTerm(engine), sealing)
    """

    def __init__(self, inner: LongTermStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal
        self.name = inner.name

    async def save(self, scope: FactScope, memory_id: str, draft: FactDraft, language: str) -> str:
        """Store a fact."""
        sealed = await self._draft(scope, draft, language)
        return await self._inner.save(scope, memory_id, sealed, language)

    async def update(
        self, scope: FactScope, memory_id: str, change: FactChange, language: str
    ) -> str:
        """Store a fact that supersedes another."""
        sealed = await self._change(scope, change, language)
        return await self._inner.update(scope, memory_id, sealed, language)

    async def replayed(self, scope: FactScope, draft: FactDraft | FactChange) -> str | None:
        """Return the id of an earlier save with the same key."""
        language = "english"  # a state has no other
        if isinstance(draft, FactDraft):
            return await self._inner.replayed(scope, await self._draft(scope, draft, language))
        return await self._inner.replayed(scope, await self._change(scope, draft, language))

    async def get(self, scope: FactScope, memory_id: str) -> Memory | None:
        """Return a fact."""
        found = await self._inner.get(scope, memory_id)
        return None if found is None else (await self._open(scope, [found]))[0]

    async def delete(self, scope: FactScope, memory_id: str) -> bool:
        """Delete a fact."""
        return await self._inner.delete(scope, memory_id)

    async def clear(self, scope: FactScope) -> None:
        """Delete all facts of a scope."""
        await self._inner.clear(scope)

    async def namespaces(self, agent: str, limit: int, after: str) -> Names:
        """Return the namespaces in which an agent has facts."""
        return await self._inner.namespaces(agent, limit, after)

    async def recent(self, scope: FactScope, wanted: FactFilter) -> Memories:
        """Return the newest facts."""
        return await self._open(
            scope, await self._inner.recent(scope, await self._wanted(scope, wanted))
        )

    async def search(
        self, scope: FactScope, wanted: FactFilter, question: FactQuestion
    ) -> FoundFacts:
        """Return the best facts by words."""
        asked = await self._question(question)
        found = await self._inner.search(scope, await self._wanted(scope, wanted), asked)
        return FoundFacts(await self._open(scope, found.memories), found.unindexed)

    async def index(
        self,
        question: FactQuestion,
        facts: Sequence[UnindexedFact],
        vectors: Sequence[list[float] | None],
    ) -> None:
        """Store the words of facts that are not indexed yet."""
        await self._inner.index(await self._question(question), facts, vectors)

    async def list(self, scope: FactScope, page: FactPage) -> Memories:
        """Return a page of facts."""
        wanted = await self._wanted(scope, page.wanted)
        return await self._open(scope, await self._inner.list(scope, page._replace(wanted=wanted)))

    async def _draft(self, scope: FactScope, draft: FactDraft, language: str) -> FactDraft:
        self._seal.check("metadata", draft.metadata)
        self._seal.check("content", draft.content, draft.topic, draft.source)
        sealer, blind = await self._sealer(scope, draft.subject), await self._seal.blind()
        topics = await self._sealer(scope)
        if sealer is None or topics is None or blind is None:
            return draft
        if draft.key is None:
            # Nobody compares it with a retry.
            sealer = sealer.newest
        return dataclasses.replace(
            draft,
            content=_content(sealer, blind, scope, draft.content, language),
            metadata=sealer.json(_place(scope, "metadata"), draft.metadata, again=True),
            topic=topics.text(_place(scope, "topic"), draft.topic, again=True),
            source=sealer.text(_place(scope, "source"), draft.source, again=True),
        )

    async def _change(self, scope: FactScope, change: FactChange, language: str) -> FactChange:
        metadata, topic, source = change.metadata, change.topic, change.source
        self._seal.check("metadata", metadata or "")
        self._seal.check("content", change.content, topic or "", source or "")
        topics, blind = await self._sealer(scope), await self._seal.blind()
        if topics is None or blind is None:
            return change
        old = await self._inner.get(scope, change.supersedes)
        sealer = await self._sealer(scope, old.subject if old else "") or topics
        if change.key is None:
            sealer = sealer.newest
        return dataclasses.replace(
            change,
            content=_content(sealer, blind, scope, change.content, language),
            metadata=metadata and sealer.json(_place(scope, "metadata"), metadata, again=True),
            topic=topic and topics.text(_place(scope, "topic"), topic, again=True),
            source=source and sealer.text(_place(scope, "source"), source, again=True),
        )

    async def _wanted(self, scope: FactScope, wanted: FactFilter) -> FactFilter:
        sealer = await self._sealer(scope) if wanted.topic else None
        if sealer is None or not wanted.topic:
            return wanted
        topic = sealer.text(_place(scope, "topic"), wanted.topic, again=True)
        return wanted._replace(topic=topic)

    async def _question(self, question: FactQuestion) -> FactQuestion:
        blind = await self._seal.blind()
        if blind is None:
            return question
        words = blind.words(question.text, language=question.language)
        return dataclasses.replace(question, text=f"{SEALED_TEXT} {words}")

    async def _sealer(self, scope: FactScope, subject: str = "") -> Sealer | None:
        return await self._seal.sealer(subject or split_owned(scope[1])[0])

    async def _open(self, scope: FactScope, found: Sequence[Memory]) -> Memories:
        values = (
            one for each in found for one in (each.content, each.metadata, each.topic, each.source)
        )
        opener = await self._seal.opener(*values)
        if opener.is_plain:
            return [*found]
        return [_opened(opener, scope, one) for one in found]


def _place(scope: FactScope, field: str) -> Place:
    namespace, agent = scope
    return Place(f"fact {field}", namespace, split_owned(agent)[1])


def _content(sealer: Sealer, blind: Blind, scope: FactScope, content: str, language: str) -> str:
    sealed = sealer.text(_place(scope, "content"), content, again=True)
    words = blind.words(content, language=language)
    return f"{sealed} {words}" if words else sealed


def _opened(opener: Opener, scope: FactScope, one: Memory) -> Memory:
    owner, _ = split_owned(scope[1])
    whose = one.subject or owner
    return dataclasses.replace(
        one,
        content=opener.text(whose, _place(scope, "content"), one.content),
        metadata=opener.json(whose, _place(scope, "metadata"), one.metadata),
        topic=opener.text(owner, _place(scope, "topic"), one.topic),
        source=opener.text(whose, _place(scope, "source"), one.source),
    )
