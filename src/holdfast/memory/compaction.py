"""Compaction: a view of a transcript that fits a model's window. The source never changes.

Strategies run in order, each only as far as necessary. Whatever they leave, the result is within
the budget whenever the system messages alone are: the oldest turns are dropped first. A tool call
and its results are dropped or kept together, and system messages are always kept.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from holdfast.values.checks import check_count
from holdfast.values.codec import encode_json, message_to_payload
from holdfast.values.content import ChatMessage, ContentBlock, TextBlock, ToolResultBlock
from holdfast.values.deprecation import renamed, warn_deprecated
from holdfast.values.errors import InvalidInputError

TokenCounter: TypeAlias = Callable[[ChatMessage], int]
Summariser: TypeAlias = Callable[[list[ChatMessage]], "str | Awaitable[str]"]

SUMMARY_KEY = "holdfast.summary_of"
"""The metadata key of a summary: how many messages it replaces."""


def estimate_tokens(message: ChatMessage) -> int:
    """Estimate a message's tokens without a tokeniser: one for every four characters of JSON.

    >>> estimate_tokens(ChatMessage.user("hello"))
    20
    """
    return len(encode_json(message_to_payload(message))) // 4 + 4


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages that are kept or dropped together: one message, or a tool call with its results."""

    messages: tuple[ChatMessage, ...]
    indexes: tuple[int, ...]
    tokens: int
    pinned: bool = False
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """The input and output of a strategy: a transcript's turns, oldest first, and the budget."""

    turns: tuple[Turn, ...]
    budget: int
    count: TokenCounter

    @property
    def tokens(self) -> int:
        """The tokens of all turns."""
        return sum(turn.tokens for turn in self.turns)

    @property
    def fits(self) -> bool:
        """Whether the turns fit the budget."""
        return self.tokens <= self.budget

    @property
    def loose(self) -> list[Turn]:
        """The turns that may be dropped, oldest first: all but system messages and the summary."""
        return [turn for turn in self.turns if not turn.pinned and not turn.summary]

    def without(self, gone: Sequence[Turn]) -> Window:
        """Return the window without some turns."""
        indexes = {turn.indexes for turn in gone}
        return self.with_turns([turn for turn in self.turns if turn.indexes not in indexes])

    def with_turns(self, turns: Sequence[Turn]) -> Window:
        """Return the window with other turns."""
        return dataclasses.replace(self, turns=tuple(turns))

    def turn(self, messages: Sequence[ChatMessage], indexes: Sequence[int]) -> Turn:
        """Return messages as one turn, with their tokens."""
        return Turn(
            tuple(messages), tuple(indexes), sum(max(0, self.count(one)) for one in messages)
        )


class Strategy(Protocol):
    """One way to make a transcript smaller."""

    def apply(self, window: Window) -> Window:
        """Return a smaller window. Never change its messages in place.

        ::

            return window.without(window.loose[:1])
        """
        ...


@renamed(last="limit")
@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Keeps only the newest turns, whether or not more would fit.

    >>> turns = [ChatMessage.user("one"), ChatMessage.user("two")]
    >>> [one.text for one in compact(turns, 1000, strategies=[SlidingWindow(limit=1)])]
    ['two']
    """

    limit: int

    @property
    def last(self) -> int:
        """The old name of ``limit``."""
        warn_deprecated("SlidingWindow.last", "SlidingWindow.limit")
        return self.limit

    def apply(self, window: Window) -> Window:
        """Drop the older turns."""
        loose = window.loose
        kept = check_count("limit", self.limit)
        return window.without(loose[: max(0, len(loose) - kept)])


@dataclass(frozen=True, slots=True)
class TrimToolResults:
    """Shortens old tool results, oldest first, until the transcript fits.

    The newest ``keep_last`` turns with results stay whole; a result of at most ``max_characters``
    is left as it is.

    >>> old = ChatMessage.tool("c1", "x" * 5000)
    >>> trim = TrimToolResults(keep_last=0)
    >>> view = compact([old, ChatMessage.user("hi")], 150, strategies=[trim])
    >>> "trimmed" in view[0].text
    True
    """

    keep_last: int = 2
    max_characters: int = 200

    def apply(self, window: Window) -> Window:
        """Shorten the results, turn by turn."""
        with_results = [
            turn for turn in window.loose if any(one.tool_results for one in turn.messages)
        ]
        for turn in with_results[: max(0, len(with_results) - self.keep_last)]:
            if window.fits:
                break
            shorter = window.turn([self._shorten(one) for one in turn.messages], turn.indexes)
            window = window.with_turns(
                [
                    shorter if one is turn and shorter.tokens < turn.tokens else one
                    for one in window.turns
                ]
            )
        return window

    def _shorten(self, message: ChatMessage) -> ChatMessage:
        return dataclasses.replace(
            message, content=[self._shorten_block(block) for block in message.content]
        )

    def _shorten_block(self, block: ContentBlock) -> ContentBlock:
        if not isinstance(block, ToolResultBlock):
            return block
        text = ChatMessage.user(block.content).text
        if len(text) <= self.max_characters and all(
            isinstance(b, TextBlock) for b in block.content
        ):
            return block
        note = f"{text[: self.max_characters]}… [trimmed: {len(text):,} characters in all]"
        return dataclasses.replace(block, content=[TextBlock(note)])


@dataclass(frozen=True, slots=True)
class SummaryCheckpoint:
    """Replaces the older turns by one summary, if they do not fit.

    ``summarise`` gets the messages that it replaces and returns text; with ``compact_async`` it may
    be a coroutine function. The summary is a system message that is dropped only when nothing else
    is left to drop.

    >>> turns = [ChatMessage.user("x" * 400) for _ in range(9)]
    >>> view = compact(turns, 400, strategies=[SummaryCheckpoint(lambda old: f"{len(old)} x")])
    >>> view[0].text
    'Summary of the conversation so far: 7 x'
    """

    summarise: Summariser
    keep_last: int = 2

    def old(self, window: Window) -> list[ChatMessage]:
        """Return the messages that a summary would replace; none if everything fits."""
        return [] if window.fits else [message for _, message in self._indexed(window)]

    def replace(self, window: Window, summary: str) -> Window:
        """Return the window with the summary at the position of the first replaced message."""
        indexed = self._indexed(window)
        message = ChatMessage.system(
            f"Summary of the conversation so far: {summary}", metadata={SUMMARY_KEY: len(indexed)}
        )
        turn = dataclasses.replace(window.turn([message], [indexed[0][0]]), summary=True)
        rest = window.without(self._turns(window))
        return rest.with_turns([*rest.turns, turn])

    def _turns(self, window: Window) -> list[Turn]:
        return window.loose[: max(0, len(window.loose) - self.keep_last)]

    def _indexed(self, window: Window) -> list[tuple[int, ChatMessage]]:
        return sorted(
            (
                (index, one)
                for turn in self._turns(window)
                for index, one in zip(turn.indexes, turn.messages, strict=True)
            ),
            key=lambda pair: pair[0],
        )


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Drops the oldest turns until the rest fits. Every compaction ends with it.

    >>> turns = [ChatMessage.user(word) for word in ("one", "two", "three")]
    >>> [one.text for one in compact(turns, 45, strategies=[TokenBudget()])]
    ['two', 'three']
    """

    def apply(self, window: Window) -> Window:
        """Drop the oldest turns first; a summary only when nothing else is left."""
        gone: list[Turn] = []
        over = window.tokens - window.budget
        for turn in [*window.loose, *(turn for turn in window.turns if turn.summary)]:
            if over <= 0:
                break
            gone.append(turn)
            over -= turn.tokens
        return window.without(gone)


DEFAULT_STRATEGIES: tuple[Strategy, ...] = (TrimToolResults(), TokenBudget())


def compact(
    messages: Sequence[ChatMessage],
    budget: int,
    *,
    strategies: Sequence[Strategy | SummaryCheckpoint] = DEFAULT_STRATEGIES,
    count_tokens: TokenCounter = estimate_tokens,
) -> list[ChatMessage]:
    """Return the transcript for a model: at most ``budget`` tokens, if that is possible.

    >>> view = compact([ChatMessage.system("be brief"), ChatMessage.user("hello")], 30)
    >>> [one.role for one in view]
    ['system']
    """
    work = _pipeline(messages, budget, strategies, count_tokens)
    try:
        summarise, old = next(work)
        while True:
            answer = summarise(old)
            if inspect.isawaitable(answer):
                if inspect.iscoroutine(answer):
                    answer.close()
                raise InvalidInputError("summarise", "is a coroutine function: use compact_async")
            summarise, old = work.send(answer)
    except StopIteration as finished:
        return _messages(finished.value)


async def compact_async(
    messages: Sequence[ChatMessage],
    budget: int,
    *,
    strategies: Sequence[Strategy | SummaryCheckpoint] = DEFAULT_STRATEGIES,
    count_tokens: TokenCounter = estimate_tokens,
) -> list[ChatMessage]:
    """Return what ``compact`` returns; the summariser may be a coroutine function.

    ::

        view = await compact_async(turns, 8000, strategies=[SummaryCheckpoint(ask_the_model)])
    """
    work = _pipeline(messages, budget, strategies, count_tokens)
    try:
        summarise, old = next(work)
        while True:
            answer = summarise(old)
            summarise, old = work.send(await answer if inspect.isawaitable(answer) else answer)
    except StopIteration as finished:
        return _messages(finished.value)


def _pipeline(
    messages: Sequence[ChatMessage],
    budget: int,
    strategies: Sequence[Strategy | SummaryCheckpoint],
    count: TokenCounter,
) -> Generator[tuple[Summariser, list[ChatMessage]], str, Window]:
    """Yield the messages to summarise and receive the summary: the caller may be async or not."""
    _check(messages, strategies)
    window = Window((), check_count("budget", budget), count)
    window = window.with_turns(turns_of(messages, window))
    for strategy in (*strategies, TokenBudget()):
        if not isinstance(strategy, SummaryCheckpoint):
            window = strategy.apply(window)
        elif old := strategy.old(window):
            window = strategy.replace(window, (yield strategy.summarise, old))
    return window


def _check(messages: object, strategies: object) -> None:
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
        raise InvalidInputError(
            "messages", f"must be a list of ChatMessage, not {type(messages).__name__}"
        )
    for at, message in enumerate(messages):
        if not isinstance(message, ChatMessage):
            raise InvalidInputError(
                f"messages[{at}]",
                f"must be a ChatMessage, not {type(message).__name__}: ChatMessage.user(text)",
            )
    if not isinstance(strategies, Sequence):
        raise InvalidInputError(
            "strategies", f"must be a list, as [TokenBudget()], not {type(strategies).__name__}"
        )
    for at, strategy in enumerate(strategies):
        if isinstance(strategy, type):
            raise InvalidInputError(
                f"strategies[{at}]",
                f"must be an instance, not the class: pass {strategy.__name__}(...)",
            )
        if not isinstance(strategy, SummaryCheckpoint) and not hasattr(strategy, "apply"):
            raise InvalidInputError(
                f"strategies[{at}]",
                f"must have apply(window), as TokenBudget() has, not {type(strategy).__name__}",
            )


def turns_of(messages: Sequence[ChatMessage], window: Window) -> list[Turn]:
    """Return the turns of messages: each tool call is grouped with its results.

    If several calls have the same id, a result belongs to the latest call before it.

    >>> empty = Window((), 0, estimate_tokens)
    >>> [turn.indexes for turn in turns_of([ChatMessage.user("a"), ChatMessage.user("b")], empty)]
    [(0,), (1,)]
    """
    leader = list(range(len(messages)))

    def first(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    owner: dict[str, int] = {}
    for index, message in enumerate(messages):
        for result in message.tool_results:
            if result.tool_use_id in owner:
                low, high = sorted((first(index), first(owner[result.tool_use_id])))
                leader[high] = low
        for call in message.tool_uses:
            owner[call.id] = index
    groups: dict[int, list[int]] = {}
    for index in range(len(messages)):
        groups.setdefault(first(index), []).append(index)
    turns = []
    for indexes in groups.values():
        turn = window.turn([messages[index] for index in indexes], indexes)
        pinned = any(messages[index].role == "system" for index in indexes)
        turns.append(dataclasses.replace(turn, pinned=pinned))
    return turns


def _messages(window: Window) -> list[ChatMessage]:
    indexed = [
        (index, message)
        for turn in window.turns
        for index, message in zip(turn.indexes, turn.messages, strict=True)
    ]
    return [message for _, message in sorted(indexed, key=lambda pair: pair[0])]
