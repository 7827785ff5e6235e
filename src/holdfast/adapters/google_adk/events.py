"""Reads stored events of ADK.

Validation takes most of the time in which a session is read. So an event that has only fields of
simple types is made by copying a blank one, after its types are compared; all others are validated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec
from google.adk.events.event import Event
from google.genai import types
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


class _Complex(Exception):  # noqa: N818 - not an error: the event has to be validated
    """An event has a field that is not of a simple type, or a field of another type."""


class _Template(Generic[M]):
    """Makes models by copying a blank one."""

    def __init__(self, blank: M, **fields: type) -> None:
        self._blank = blank
        self._fields = fields
        # Fields whose default is made anew for each model: a copy would share it with the blank.
        described = type(blank).model_fields.items()
        self._required = {name for name, field in described if field.default_factory}

    def filled(self, values: Any) -> M:
        """Return a model with these values, or raise ``_Complex`` where they have other types."""
        fields = self._fields
        if type(values) is not dict or not self._required <= values.keys():
            raise _Complex
        for name, value in values.items():
            if fields.get(name) is not type(value):
                raise _Complex
        return self._blank.model_copy(update=values)


_BLANK = Event.model_construct()
_EVENT = _Template(
    _BLANK,
    **dict.fromkeys(("id", "author", "invocation_id", "branch", "model_version"), str),
    **dict.fromkeys(("error_code", "error_message", "finish_reason"), str),
    **dict.fromkeys(("partial", "turn_complete", "interrupted"), bool),
    **dict.fromkeys(("content", "actions", "node_info", "custom_metadata", "usage_metadata"), dict),
    timestamp=float,
    long_running_tool_ids=list,
)
_NODE = _Template(_BLANK.node_info, path=str, message_as_output=bool)
_ACTIONS = _Template(
    _BLANK.actions,
    **dict.fromkeys(("state_delta", "artifact_delta"), dict),
    **dict.fromkeys(("requested_auth_configs", "requested_tool_confirmations"), dict),
    **dict.fromkeys(("escalate", "skip_summarization"), bool),
    transfer_to_agent=str,
)
_CONTENT = _Template(types.Content.model_construct(), role=str, parts=list)
_PART = _Template(
    types.Part.model_construct(),
    text=str,
    thought=bool,
    function_call=dict,
    function_response=dict,
)
_CALL = _Template(types.FunctionCall.model_construct(), id=str, name=str, args=dict)
_ANSWER = _Template(types.FunctionResponse.model_construct(), id=str, name=str, response=dict)


def event_of(payload: dict[str, Any]) -> Event:
    """Return the event of a payload that ``row_of`` made."""
    event = payload["event"]
    try:
        return _event(event)
    except _Complex:
        # As JSON, since bytes are base64 only there.
        return Event.model_validate_json(msgspec.json.encode(event))


def _event(event: Any) -> Event:
    made = _EVENT.filled(event)
    # Set past the models, whose __setattr__ takes longer than all the rest.
    fields = made.__dict__
    fields["actions"] = _actions(event["actions"])
    fields["node_info"] = _NODE.filled(event["node_info"])
    if "content" in event:
        fields["content"] = _content(event["content"])
    if "finish_reason" in event:
        fields["finish_reason"] = types.FinishReason(event["finish_reason"])
    if "usage_metadata" in event:
        fields["usage_metadata"] = types.GenerateContentResponseUsageMetadata.model_validate(
            event["usage_metadata"]
        )
    if "long_running_tool_ids" in event:
        _check(str, event["long_running_tool_ids"])
        fields["long_running_tool_ids"] = set(event["long_running_tool_ids"])
    return made


def _actions(actions: dict[str, Any]) -> Any:
    made = _ACTIONS.filled(actions)
    if actions["requested_auth_configs"] or actions["requested_tool_confirmations"]:
        raise _Complex
    _check(int, actions["artifact_delta"].values())
    return made


def _content(content: dict[str, Any]) -> types.Content:
    made = _CONTENT.filled(content)
    if "parts" in content:
        made.__dict__["parts"] = [_part(one) for one in content["parts"]]
    return made


def _part(part: Any) -> types.Part:
    made = _PART.filled(part)
    fields = made.__dict__
    if "function_call" in part:
        fields["function_call"] = _CALL.filled(part["function_call"])
    if "function_response" in part:
        fields["function_response"] = _ANSWER.filled(part["function_response"])
    return made


def _check(kind: type, values: Iterable[Any]) -> None:
    for value in values:
        if type(value) is not kind:
            raise _Complex
