"""The rows of a session's log: a tool call and its result are one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.values.content import (
    ChatMessage,
    DataBlock,
    ErrorBlock,
    ReasoningBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    text_of,
)
from holdfast.values.events import Event

_IDS = ("id", "call_id", "tool_call_id", "tool_use_id")


@dataclass(slots=True)
class Tool:
    """A tool call, with its result if that is among the rows."""

    name: str
    input: Any
    result: Any = None
    is_error: bool = False
    event: Event | None = None
    """The event of the result, if the call's row shows it."""


@dataclass(slots=True)
class LogRow:
    """One row: an event, the message in it, its tool calls, and its other parts."""

    event: Event
    numbers: list[int]
    """The numbers of the events that the row shows."""

    message: ChatMessage | None = None
    tools: list[Tool] = field(default_factory=list)
    parts: list[tuple[str, Any]] = field(default_factory=list)
    """What is neither text nor a tool call: the kind of each, and its content."""

    text: str = ""


def rows_of(events: Sequence[Event]) -> list[LogRow]:
    """Return the rows of a log. A result without its call among the events has its own row.

    ::

        rows_of(await state.episodes.recent("planner", session_id="s1"))
    """
    rows: list[LogRow] = []
    waiting: dict[str, tuple[LogRow, Tool]] = {}
    unnamed: tuple[LogRow, Tool] | None = None
    for event in events:
        message = event.to_message() if event.type == "message" else None
        if message is not None:
            answers = message.tool_results
            known = [waiting.get(one.tool_use_id) for one in answers]
            if answers and len(answers) == len(message.content) and all(known):
                for one in answers:
                    row, tool = waiting.pop(one.tool_use_id)
                    _answered(row, tool, event, text_of(one.content), is_error=one.is_error)
                continue
            row = _row_of_message(event, message)
            for call, tool in zip(message.tool_uses, row.tools, strict=True):
                waiting[call.id] = (row, tool)
            unnamed = None
        elif event.type == "tool_result":
            key = _id(event.payload)
            if (found := waiting.pop(key, None) if key else unnamed) is not None:
                rest = {name: one for name, one in event.payload.items() if name not in _IDS}
                whole = rest["content"] if set(rest) == {"content"} else rest
                _answered(*found, event, whole, is_error=bool(rest.get("is_error")))
                unnamed = None
                continue
            row, unnamed = LogRow(event, [event.seq]), None
        else:
            row, unnamed = LogRow(event, [event.seq]), None
            if event.type == "tool_call":
                tool = _called(event.payload)
                row.tools.append(tool)
                if key := _id(event.payload):
                    waiting[key] = (row, tool)
                else:
                    unnamed = (row, tool)
        rows.append(row)
    return rows


def _answered(row: LogRow, tool: Tool, event: Event, result: Any, *, is_error: bool) -> None:
    tool.result, tool.is_error, tool.event = result, is_error, event
    row.numbers.append(event.seq)


def _id(payload: Mapping[str, Any]) -> str:
    found = next((payload[name] for name in _IDS if name in payload), "")
    return found if isinstance(found, str) else ""


def _called(payload: Mapping[str, Any]) -> Tool:
    rest = {name: one for name, one in payload.items() if name not in {"name", *_IDS}}
    [only] = rest.values() if len(rest) == 1 else [rest]
    return Tool(str(payload.get("name", "")) or "tool", only)


def _row_of_message(event: Event, message: ChatMessage) -> LogRow:
    text = "".join(one.text for one in message.content if isinstance(one, TextBlock))
    row = LogRow(event, [event.seq], message, text=text)
    row.tools = [Tool(one.name, one.input) for one in message.tool_uses]
    row.parts = parts_of(message)
    return row


def parts_of(message: ChatMessage) -> list[tuple[str, Any]]:
    """Return what a message has beside text and tool calls: the kind of each part, and its content.

    >>> parts_of(ChatMessage("assistant", [ReasoningBlock("high tide is at five")]))
    [('reasoning', 'high tide is at five')]
    """
    found: list[tuple[str, Any]] = []
    for one in message.content:
        match one:
            case TextBlock() | ToolUseBlock():
                continue
            case ToolResultBlock():
                found.append(("tool result", text_of(one.content)))
            case ReasoningBlock():
                found.append(("reasoning", one.text))
            case DataBlock():
                found.append(("data", one.data))
            case ErrorBlock():
                found.append(("error", f"{one.code} {one.message}".strip()))
            case UnknownBlock():
                found.append(("unknown part", one.raw))
            case _:
                size = f", {len(one.data)} bytes" if one.data else ""
                where = one.name or one.url or one.blob_ref or one.media_type
                found.append((one.type, f"{where}{size}"))
    return found
