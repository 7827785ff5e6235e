"""An event of ADK is read as it was stored, with and without bytes in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.genai import types
from pydantic import BaseModel, ValidationError

from holdfast.adapters.google_adk import events, records

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


@pytest.mark.parametrize("name", [*PLAIN, *BYTES])
def test_an_event_is_read_as_it_was_stored(name: str) -> None:
    event = (PLAIN | BYTES)[name]
    stored = {"event": records.dumped(event)}
    found = events.event_of(stored)
    assert found == event
    validated = Event.model_validate_json(msgspec.json.encode(stored["event"]))
    assert _described(found) == _described(validated)


@pytest.mark.parametrize("name", PLAIN)
def test_an_event_of_simple_types_is_not_validated(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the event was validated")

    monkeypatch.setattr(Event, "model_validate_json", refuse)
    assert events.event_of({"event": records.dumped(PLAIN[name])}) == PLAIN[name]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["author"], 5),
        (["content", "parts", 0, "text"], ["x"]),
        (["content", "parts", 0], None),
        (["content"], "x"),
        (["actions", "artifact_delta"], {"chart": "one"}),
        (["long_running_tool_ids"], [None]),
        (["usage_metadata"], {"total_token_count": "many"}),
    ],
)
def test_an_event_with_a_value_of_another_type_is_refused(path: list[Any], value: object) -> None:
    event = records.dumped(PLAIN["text"])
    at: Any = event
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    with pytest.raises(ValidationError):
        events.event_of({"event": event})


def test_two_events_share_nothing_that_can_be_changed() -> None:
    stored = [records.dumped(PLAIN["nothing"]) for _ in range(2)]
    one, other = (events.event_of({"event": event}) for event in stored)
    one.actions.state_delta["a"] = 1
    one.node_info.path = "w"
    assert other == PLAIN["nothing"]


def _described(value: Any) -> Any:
    """Describe a model with the types of its values, and which of its fields are set."""
    if isinstance(value, BaseModel):
        fields = {name: _described(getattr(value, name)) for name in type(value).model_fields}
        return type(value), value.model_fields_set, fields
    if isinstance(value, dict):
        return {key: _described(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_described(one) for one in value]
    return type(value), value
