"""An event of ADK is read as it was stored, with and without bytes in it."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.genai import types

from holdfast.adapters.google_adk import records

BLOB = types.Blob(data=b"\x00\xff", mime_type="image/png")
CALL = types.FunctionCall(id="c1", name="tide", args={"at": [1, None, {"of": "Brest"}]})
ANSWER = types.FunctionResponse(id="c1", name="tide", response={"m": 4.5, "bytes": "AP8="})


def _event(*parts: types.Part, **more: Any) -> Event:
    return Event(author="pilot", content=types.Content(role="model", parts=list(parts)), **more)


PLAIN = {
    "text": _event(types.Part(text="ahoy"), types.Part(text="so", thought=True), partial=False),
    "calls": _event(
        types.Part(function_call=CALL),
        types.Part(function_response=ANSWER),
        long_running_tool_ids={"c1"},
    ),
    "nothing": Event(author="user"),
    "of a model": _event(
        types.Part(text="x"),
        finish_reason=types.FinishReason.MAX_TOKENS,
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            total_token_count=9,
            prompt_tokens_details=[
                types.ModalityTokenCount(modality=types.MediaModality.TEXT, token_count=4)
            ],
        ),
        custom_metadata={"n": [1.5, "AP8="]},
        actions=EventActions(state_delta={"a": {"b": None}}, artifact_delta={"chart": 2}),
    ),
}
BYTES = {
    "a blob": _event(types.Part(inline_data=BLOB)),
    "a signature": _event(types.Part(text="x", thought_signature=b"\x00\xff")),
    "in an answer": _event(
        types.Part(
            function_response=types.FunctionResponse(
                name="draw",
                response={},
                parts=[
                    types.FunctionResponsePart(
                        inline_data=types.FunctionResponseBlob(data=b"\xff", mime_type="image/png")
                    )
                ],
            )
        )
    ),
    "in what was compacted": _event(
        types.Part(text="x"),
        actions=EventActions(
            compaction=EventCompaction(
                start_timestamp=1.0,
                end_timestamp=2.0,
                compacted_content=types.Content(parts=[types.Part(inline_data=BLOB)]),
            )
        ),
    ),
}


def _has_bytes(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_bytes, value.values()))
    return any(map(_has_bytes, value)) if isinstance(value, list) else isinstance(value, bytes)


@pytest.mark.parametrize("name", [*PLAIN, *BYTES])
def test_an_event_is_read_as_it_was_stored(name: str) -> None:
    event = (PLAIN | BYTES)[name]
    stored = {"event": records.dumped(event)}
    assert records.event_of(stored) == event
    assert _has_bytes(event.model_dump()) == (name in BYTES)
    assert records._has_no_bytes(stored["event"]) == (name in PLAIN)
