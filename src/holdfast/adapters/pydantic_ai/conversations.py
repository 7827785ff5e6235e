"""A conversation store of pydantic-ai on ``state.items``.

A conversation and its forks are a family: they share entries, which are items of one namespace. So
a history is read by one search, however long it is. The record of a conversation names its family.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter

from holdfast.adapters.keys import key_of
from holdfast.blocking import Portal
from holdfast.contracts.items import Items
from holdfast.values.errors import VersionConflictError
from holdfast.values.ids import new_id
from holdfast.values.items import Item, ItemKey, ItemPut
from holdfast.wiring.state import State

_RECORD = TypeAdapter(ConversationRecord)
_ROOT = "pydantic-ai"
_RECORDS = (_ROOT, "records")
_FAMILIES = (_ROOT, "families")
_PAGE = 1_000
_REMEMBERED = 10_000
"""For how many entries a store remembers the family."""


class HoldfastConversations(ConversationStore):
    """A ``ConversationStore`` in Holdfast; any event loop may use it.

    ``state`` determines the engine, the tenant and the owner. ``delete`` also deletes the entries
    that no other conversation uses. ::

        store = HoldfastConversations(state)
        conversation = await store.load("c1") or Conversation(conversation_id="c1")
        result = await agent.run("Which tide?", conversation=conversation)
        await store.save(result)
    """

    def __init__(self, state: State | Portal) -> None:
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._families: OrderedDict[str, str] = OrderedDict()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, or ``None``."""
        item = await self._portal.arun(self._record_item(conversation_id))
        return None if item is None else self._record(item)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records of conversations, the most recently saved first."""
        wanted = None if scope is None else {"record.scope": scope}
        items = await self._portal.arun(self._all(_RECORDS, filter=wanted))
        found = [self._record(item) for item in items]
        return sorted(found, key=lambda one: one.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries, all or none."""
        await self._portal.arun(self._write(record, new_entries, expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation, and the entries that no other conversation uses."""
        await self._portal.arun(self._delete(conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry. Raises ``KeyError`` if it does not exist."""
        return await self._portal.arun(self._entry(entry_id))

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to ``head_id``, or only the last ``limit`` of them."""
        if head_id is None or limit == 0:
            return []
        return await self._portal.arun(self._history(head_id, limit))

    @property
    def _items(self) -> Items:
        return self._portal.state.items

    async def _record_item(self, conversation_id: str) -> Item | None:
        [found] = await self._items.get_many([ItemKey(_RECORDS, key_of(conversation_id))])
        return found

    def _record(self, item: Item) -> ConversationRecord:
        record = _RECORD.validate_python(item.value["record"])
        for entry in (record.head_id, *record.branches):
            if entry is not None:
                self._remember(entry, item.value["family"])
        return record

    async def _write(
        self,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        expected_revision: str | None,
    ) -> None:
        head, known = record.head_id, {one.id for one in new_entries}
        value = _RECORD.dump_python(record, mode="json")
        while True:
            stored = await self._record_item(record.conversation_id)
            if (stored.value["record"]["revision"] if stored else None) != expected_revision:
                raise ConversationConflict(record.conversation_id)
            family, puts = (stored.value["family"], []) if stored else await self._join(record)
            if head is not None and head not in known and not await self._has(family, head):
                raise ConversationConflict(record.conversation_id)
            key, version = key_of(record.conversation_id), stored.version if stored else 0
            row = {"record": value, "family": family}
            puts.append(ItemPut(_RECORDS, key, row, expected_version=version))
            puts += [
                ItemPut(_entries(family), key_of(one.id), _to_json(one)) for one in new_entries
            ]
            try:
                await self._items.put_many(puts)
            except VersionConflictError:
                continue  # saved, forked or deleted in between: look again
            if head is not None:
                self._remember(head, family)
            return

    async def _join(self, record: ConversationRecord) -> tuple[str, list[ItemPut]]:
        """Return the family of a new conversation, and the item write that makes it a member."""
        source = record.forked_from
        forked = await self._record_item(source) if source is not None else None
        if forked is None:
            family = new_id()
            members = {"members": [record.conversation_id]}
            return family, [ItemPut(_FAMILIES, family, members, expected_version=0)]
        family = forked.value["family"]
        [found] = await self._items.get_many([ItemKey(_FAMILIES, family)])
        if found is None:
            raise ConversationConflict(record.conversation_id)
        members = {"members": [*found.value["members"], record.conversation_id]}
        return family, [ItemPut(_FAMILIES, family, members, expected_version=found.version)]

    async def _delete(self, conversation_id: str, expected_revision: str) -> None:
        while True:
            stored = await self._record_item(conversation_id)
            if stored is None or stored.value["record"]["revision"] != expected_revision:
                raise ConversationConflict(conversation_id)
            family = stored.value["family"]
            [found] = await self._items.get_many([ItemKey(_FAMILIES, family)])
            members = found.value["members"] if found else []
            left = [one for one in members if one != conversation_id]
            unused = await self._unused(family, left)
            puts = [
                ItemPut(_RECORDS, key_of(conversation_id), None, expected_version=stored.version)
            ]
            if found is not None:
                value = {"members": left} if left else None
                puts.append(ItemPut(_FAMILIES, family, value, expected_version=found.version))
            at_once = _PAGE - len(puts)
            try:
                await self._items.put_many([*puts, *unused[:at_once]])
            except VersionConflictError:
                continue  # saved, forked or deleted in between: look again
            for start in range(at_once, len(unused), _PAGE):
                await self._items.put_many(unused[start : start + _PAGE])
            return

    async def _unused(self, family: str, members: Sequence[str]) -> list[ItemPut]:
        """Return the writes that delete the entries that no member's history or branch uses."""
        rows = await self._all(_entries(family))
        parents = {item.value["id"]: item.value["parent_id"] for item in rows}
        used: set[str] = set()
        for member in members:
            item = await self._record_item(member)
            if item is not None:
                record = _RECORD.validate_python(item.value["record"])
                for tip in (record.head_id, *record.branches):
                    entry = tip
                    while entry is not None and entry not in used:
                        used.add(entry)
                        entry = parents.get(entry)
        return [ItemPut(_entries(family), key_of(one), None) for one in parents if one not in used]

    async def _has(self, family: str, entry: str) -> bool:
        [found] = await self._items.get_many([ItemKey(_entries(family), key_of(entry))])
        return found is not None

    async def _entry(self, entry_id: str) -> ConversationEntry:
        family = await self._family(entry_id)
        [found] = await self._items.get_many([ItemKey(_entries(family), key_of(entry_id))])
        if found is None:
            raise KeyError(entry_id)
        return _from_json(found.value)

    async def _history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        namespace = _entries(await self._family(head_id))
        found: list[dict[str, Any]] = []
        rows: dict[str, dict[str, Any]] = {}
        entry: str | None = head_id
        offset, size = 0, _PAGE if limit is None else min(limit, _PAGE)
        while entry is not None and len(found) != limit:
            if entry not in rows:
                # The newest come first, so the end of a history is mostly in the first page.
                page = await self._items.search(namespace, limit=size, offset=offset)
                rows |= {hit.item.value["id"]: hit.item.value for hit in page}
                offset, size = offset + len(page), _PAGE
                if entry not in rows:
                    if not page:
                        raise KeyError(entry)
                    continue
            found.append(rows[entry])
            entry = rows[entry]["parent_id"]
        return [_from_json(one) for one in reversed(found)]

    async def _family(self, entry_id: str) -> str:
        """Return the family of an entry: the remembered one, or by a search of all families."""
        if entry_id in self._families:
            return self._families[entry_id]
        hits = await self._items.search((_ROOT, "entries"), filter={"id": entry_id}, limit=1)
        if not hits:
            raise KeyError(entry_id)
        self._remember(entry_id, hits[0].item.namespace[-1])
        return hits[0].item.namespace[-1]

    def _remember(self, entry: str, family: str) -> None:
        self._families[entry] = family
        self._families.move_to_end(entry)
        if len(self._families) > _REMEMBERED:
            self._families.popitem(last=False)

    async def _all(
        self, namespace: tuple[str, ...], *, filter: dict[str, Any] | None = None
    ) -> list[Item]:
        """Return all items of a namespace, each once."""
        found: dict[str, Item] = {}
        offset = 0
        while True:
            page = await self._items.search(namespace, filter=filter, limit=_PAGE, offset=offset)
            found |= {hit.item.key: hit.item for hit in page}
            if len(page) < _PAGE:
                return list(found.values())
            offset += len(page)


def _entries(family: str) -> tuple[str, ...]:
    return (_ROOT, "entries", family)


def _to_json(entry: ConversationEntry) -> dict[str, Any]:
    [message] = json.loads(ModelMessagesTypeAdapter.dump_json([entry.message]))
    return {
        "id": entry.id,
        "parent_id": entry.parent_id,
        "kind": entry.kind,
        "message": message,
    }


def _from_json(value: dict[str, Any]) -> ConversationEntry:
    text = json.dumps([value["message"]])
    [message] = ModelMessagesTypeAdapter.validate_json(text)
    return ConversationEntry(
        id=value["id"], parent_id=value["parent_id"], kind=value["kind"], message=message
    )
