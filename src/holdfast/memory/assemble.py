"""Builds the context for a model from a memory, within a budget: a pure function.

The working state comes first, since the agent cannot continue without it. Half of the remaining
budget goes to the newest turns, the rest to facts and recalled events, and what then remains to
older turns. A section is one system message; the turns stay separate messages, in their order.
Recalled events are chosen by rank, as many as fit, and shown in the order of time under their days.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from holdfast.memory.compaction import TokenCounter, Turn, Window, estimate_tokens, turns_of
from holdfast.values.checks import check_count
from holdfast.values.codec import encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.event_text import event_text
from holdfast.values.events import Event, Recalled
from holdfast.values.facts import Memory
from holdfast.values.memory import Assembled, ContextItem, ContextKind

OVER = "over the budget"
IN_WINDOW = "in the recent window already"
SAME_WORDS = "says the same as another"
RECALLED = "recalled already"
ORPHAN = "its tool call is beyond the window"

STATE_TITLE = "Working state:"
FACTS_TITLE = "What you know:"
RECALLED_TITLE = "What you remember from earlier:"


SHORT_TURN_TOKENS = 20
MOST_RECALLED = 200


def recallable(budget_tokens: int) -> int:
    """Return how many events to recall for a budget: as many short turns as it may hold.

    >>> recallable(1000)
    50
    """
    return min(MOST_RECALLED, -(-budget_tokens // SHORT_TURN_TOKENS))


@dataclass(slots=True)
class _Draft:
    """The remaining budget, and what was kept and left out."""

    count: TokenCounter
    left: int
    kept: list[ContextItem] = field(default_factory=list)
    left_out: list[ContextItem] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    recalled: set[tuple[str, str]] = field(default_factory=set)

    def keep(self, kind: ContextKind, id: str, tokens: int) -> None:
        self.left -= tokens
        self.kept.append(ContextItem(kind, id, tokens))

    def leave(self, kind: ContextKind, id: str, tokens: int, reason: str) -> None:
        self.left_out.append(ContextItem(kind, id, tokens, reason))

    def cost(self, *messages: ChatMessage) -> int:
        return sum(max(0, self.count(one)) for one in messages)

    def section(
        self,
        kind: ContextKind,
        title: str,
        items: Sequence[tuple[int, str, str]],
        lines: Callable[[Sequence[int]], list[str]],
    ) -> list[int]:
        """Keep as many (index, id, text) as fit the budget. Returns the indexes of those kept.

        ``lines`` returns the lines of the section for some indexes.
        """
        taken: list[int] = []
        spent = 0
        for at, name, text in items:
            words = _folded(text)
            total = self.cost(_section(title, lines([*taken, at])))
            if words in self.said:
                self.leave(kind, name, total - spent, SAME_WORDS)
            elif total - spent > self.left:
                self.leave(kind, name, total - spent, OVER)
            else:
                self.said.add(words)
                self.keep(kind, name, total - spent)
                taken.append(at)
                spent = total
        return taken


def assemble(
    *,
    state: dict[str, Any],
    facts: Sequence[Memory],
    recalled: Sequence[Recalled],
    window: Sequence[Event],
    budget_tokens: int,
    count_tokens: Callable[[ChatMessage], int] | None = None,
) -> Assembled:
    r"""Combine the parts of a memory into messages of at most ``budget_tokens`` together.

    >>> found = assemble(state={"step": 2}, facts=[], recalled=[], window=[], budget_tokens=100)
    >>> [one.text for one in found.messages]
    ['Working state:\n{"step":2}']
    """
    budget = check_count("budget_tokens", budget_tokens)
    draft = _Draft(count_tokens or estimate_tokens, budget)
    messages = _state(draft, state)

    shown = [_as_message(event) for event in window]
    turns = _turns(draft, shown)
    newest = _newest(draft, turns, draft.left - draft.left // 2)
    fresh = {_key(window[index]) for turn in newest for index in turn.indexes}
    draft.said |= {_words(event) for event in window if _key(event) in fresh}

    known = draft.section(
        "fact",
        FACTS_TITLE,
        [(at, fact.id, fact.content) for at, fact in enumerate(facts)],
        lambda taken: [f"- {facts[at].content}" for at in taken],
    )
    if known:
        messages.append(_section(FACTS_TITLE, [f"- {facts[at].content}" for at in known]))

    remembered = _recalled(draft, recalled, fresh)
    if remembered:
        messages.append(_section(RECALLED_TITLE, remembered))

    older = _older(draft, turns[: len(turns) - len(newest)], [_key(event) for event in window])
    indexes = sorted(index for turn in [*older, *newest] for index in turn.indexes)
    messages += [shown[index] for index in indexes]
    degraded = next((hit.degraded for hit in recalled if hit.degraded), "")
    return Assembled(
        messages,
        budget_tokens=budget,
        tokens=budget - draft.left,
        kept=tuple(draft.kept),
        left_out=tuple(draft.left_out),
        degraded=degraded,
    )


def _state(draft: _Draft, state: dict[str, Any]) -> list[ChatMessage]:
    if not state:
        return []
    message = _section(STATE_TITLE, [encode_json(state, field="state")])
    tokens = draft.cost(message)
    if tokens > draft.left:
        draft.leave("state", "state", tokens, OVER)
        return []
    draft.keep("state", "state", tokens)
    return [message]


def _turns(draft: _Draft, messages: list[ChatMessage]) -> list[Turn]:
    """Group the window into turns, oldest first. A tool result without its call is left out."""
    turns = []
    for turn in turns_of(messages, Window((), 0, draft.count)):
        calls = {call.id for one in turn.messages for call in one.tool_uses}
        asked = {result.tool_use_id for one in turn.messages for result in one.tool_results}
        if asked <= calls:
            turns.append(turn)
        else:
            _leave(draft, turn, ORPHAN)
    return sorted(turns, key=lambda turn: turn.indexes[-1])


def _newest(draft: _Draft, turns: list[Turn], share: int) -> list[Turn]:
    """Return the newest turns within a share of the budget; the newest one may exceed the share."""
    taken: list[Turn] = []
    spent = 0
    for turn in reversed(turns):
        bound = share if taken else draft.left
        if spent + turn.tokens > bound:
            break
        spent += turn.tokens
        taken.append(turn)
    for turn in taken:
        _keep(draft, turn)
    return taken[::-1]


def _older(draft: _Draft, turns: list[Turn], keys: list[tuple[str, str]]) -> list[Turn]:
    """Return more turns, from the newest of the rest back to the first that does not fit."""
    taken: list[Turn] = []
    full = False
    for turn in reversed(turns):
        again = all(keys[index] in draft.recalled for index in turn.indexes)
        full = full or (not again and turn.tokens > draft.left)
        if again or full:
            _leave(draft, turn, RECALLED if again else OVER)
        else:
            _keep(draft, turn)
            taken.append(turn)
    return taken


def _keep(draft: _Draft, turn: Turn) -> None:
    for message in turn.messages:
        draft.keep("recent", message.id, draft.cost(message))


def _leave(draft: _Draft, turn: Turn, reason: str) -> None:
    for message in turn.messages:
        draft.leave("recent", message.id, draft.cost(message), reason)


def _recalled(
    draft: _Draft, recalled: Sequence[Recalled], fresh: set[tuple[str, str]]
) -> list[str]:
    """Return lines of recalled events: the best are chosen, and ordered by time."""
    items = []
    for at, hit in enumerate(recalled):
        event = hit.event
        if _key(event) in fresh:
            draft.leave("recalled", event.id, 0, IN_WINDOW)
        else:
            items.append((at, event.id, event_text(event.type, event.payload)))
    said = {at: text for at, _, text in items}

    def lines(taken: Sequence[int]) -> list[str]:
        return _by_day([(recalled[at].event, said[at]) for at in taken])

    taken = draft.section("recalled", RECALLED_TITLE, items, lines)
    draft.recalled = {_key(recalled[at].event) for at in taken}
    return lines(taken)


def _by_day(said: Sequence[tuple[Event, str]]) -> list[str]:
    """Return a line for each event in the order of time, and one for each day before its events."""
    shown: list[str] = []
    last = ""
    for event, text in sorted(said, key=lambda one: _order(one[0])):
        when = event.occurred_at.astimezone(UTC)
        day = f"{when:%Y-%m-%d}:"
        shown += [day] if day != last else []
        shown.append(f"- {when:%H:%M} {text}")
        last = day
    return shown


def _order(event: Event) -> tuple[object, ...]:
    return (event.occurred_at, event.session_id, event.epoch, event.seq)


def _key(event: Event) -> tuple[str, str]:
    return (event.session_id, event.id)


def _words(event: Event) -> str:
    return _folded(event_text(event.type, event.payload))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _as_message(event: Event) -> ChatMessage:
    """Return the event's message; for other types a system message with the event's text."""
    if event.type == "message":
        return event.to_message()
    text = f"[{event.type}] {event_text(event.type, event.payload)}"
    return ChatMessage.system(text, id=event.id, created_at=event.occurred_at)


def _section(title: str, lines: Sequence[str]) -> ChatMessage:
    return ChatMessage.system("\n".join([title, *lines]))
