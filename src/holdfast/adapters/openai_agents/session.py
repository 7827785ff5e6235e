"""Sessions of the OpenAI Agents SDK on ``state.history``."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from agents.memory import SessionSettings
from agents.memory.session import OpenAIResponsesCompactionArgs
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from holdfast.adapters.keys import id_of
from holdfast.adapters.openai_agents.items import to_item, to_message
from holdfast.blocking import Portal
from holdfast.contracts.history import History
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError, VersionConflictError
from holdfast.values.identity import Agent, AgentId
from holdfast.wiring.state import State

T = TypeVar("T")
_log = logging.getLogger("holdfast.openai_agents")

AGENT = "openai-agents"
"""The default agent, in whose transcript the items are stored."""

CANDIDATES = 10
"""How many items that are neither user messages nor compactions trigger a compaction."""

Item: TypeAlias = Any
"""An input item of the Responses API: the SDK's ``TResponseInputItem``."""

Compact: TypeAlias = Callable[[list[Item]], Awaitable[Sequence[Item]]]
"""Takes the whole history of a session, and returns the items that replace it."""


class HoldfastSession:
    """A session for ``Runner.run(..., session=...)``, for every thread and event loop.

    ``state`` determines the engine, the tenant and the owner. The items are messages of ``agent``
    in the transcript of the session, so ``state.episodes`` recalls them. Each method is one call of
    ``state.history``. ::

        session = HoldfastSession("c1", state)
        result = await Runner.run(agent, "What is the tide?", session=session)
    """

    def __init__(
        self,
        session_id: str,
        state: State | Portal,
        *,
        agent: Agent = AGENT,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(session_id, str):
            raise InvalidInputError("session_id", f"must be text, not {type(session_id).__name__}")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = (
            SessionSettings()
            if session_settings is None
            else coerce_session_settings(session_settings)
        )
        self._portal = state if isinstance(state, Portal) else Portal(state)
        self._agent = AgentId.parse(agent)
        self._id = id_of(session_id)

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the newest ``limit`` items, oldest first; by default the limit of the settings.

        ::

            items = await session.get_items(limit=20)
        """
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most <= 0:
            return []
        return [to_item(one) for one in await self._messages(most)]

    async def add_items(self, items: list[Item]) -> None:
        """Append items, all or none; no other item comes between them.

        ::

            await session.add_items([{"role": "user", "content": "hello"}])
        """
        messages = _messages(items)
        if messages:
            await self._call(
                lambda history: history.append_many(self._agent, messages, session_id=self._id)
            )

    async def pop_item(self) -> Item | None:
        """Remove the newest item and return it; ``None`` if there is none.

        ::

            undone = await session.pop_item()
        """
        popped = await self._call(lambda history: history.pop(self._agent, session_id=self._id))
        return None if popped is None else to_item(popped)

    async def clear_session(self) -> None:
        """Remove all items.

        ::

            await session.clear_session()
        """
        await self._call(lambda history: history.clear(self._agent, session_id=self._id))

    async def _messages(self, most: int | None) -> list[ChatMessage]:
        return await self._call(
            lambda history: history.get_messages(
                self._agent, session_id=self._id, recent_limit=most
            )
        )

    async def _call(self, use: Callable[[History], Awaitable[T]]) -> T:
        """Run ``use`` on the event loop of the state, since a state works on no other."""

        async def used() -> T:
            return await use(self._portal.state.history)

        return await self._portal.arun(used())


class CompactingSession(HoldfastSession):
    """A session whose history is replaced by ``compact`` after a turn, once it is long.

    The Runner calls ``run_compaction`` after each turn. ``compact`` gets all items and returns
    those that replace them, as ``client.responses.compact`` does; they are replaced in one step.
    ``should_compact`` gets the items and decides; by default, 10 of them must be neither user
    messages nor compactions. ::

        async def compact(items):
            return (await client.responses.compact(model="gpt-4.1", input=items)).output

        session = CompactingSession("c1", state, compact=compact)
    """

    def __init__(
        self,
        session_id: str,
        state: State | Portal,
        *,
        compact: Compact,
        should_compact: Callable[[list[Item]], bool] | None = None,
        agent: Agent = AGENT,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        super().__init__(session_id, state, agent=agent, session_settings=session_settings)
        self._compact = compact
        self._should_compact = should_compact or _is_long

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Compact the history if it is long, or if ``args["force"]`` is set.

        If an item was added or removed meanwhile, nothing is replaced: a later turn compacts. ::

            await session.run_compaction({"force": True})
        """
        seen = await self._messages(None)
        items = [to_item(one) for one in seen]
        is_forced = bool((args or {}).get("force"))
        if not items or not (is_forced or self._should_compact(items)):
            return
        kept = _messages(list(await self._compact(items)))
        try:
            await self._call(
                lambda history: history.replace_tail(
                    self._agent,
                    session_id=self._id,
                    after_seq=0,
                    messages=kept,
                    expected_last_seq=seen[-1].seq or 0,
                )
            )
        except VersionConflictError as error:
            _log.warning("session %s is not compacted: %s", self.session_id, error)


def _messages(items: object) -> list[ChatMessage]:
    if not isinstance(items, (list, tuple)):
        raise InvalidInputError("items", f"must be a list, not {type(items).__name__}")
    return [to_message(f"items[{at}]", item) for at, item in enumerate(items)]


def _is_long(items: list[Item]) -> bool:
    rest = [one for one in items if one.get("role") != "user" and one.get("type") != "compaction"]
    return len(rest) >= CANDIDATES
