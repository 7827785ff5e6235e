"""Requests that no client should send, the same ones for the same seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 10**30, 10**400, 1e308, "", "x", "\u0000", "\ud800"),
    *("x" * 10_000, "../../etc/passwd", "holdfast.cleanup", "🦀\u202e", "%s%n", "'; --", "NaN"),
    *([], {}, [[]], {"": {}}, [None] * 100, {"a": [1, "b", {"c": None}]}),
]
HEADERS = {
    "A2A-Version": ["", "1.0", "0.3", "2.0", "1", "x" * 500, "\xff", "1.0.0.0", "-1"],
    "Last-Event-ID": ["", "0", "1", "-1", "9" * 30, "x", "\xe9"],
    "Idempotency-Key": ["", "k1", "k" * 600, "\xff\xfe", "a b", "holdfast.x"],
    "Content-Type": ["application/json", "", "text/plain", "application/a2a+json", "x/y; z=\xff"],
    "Accept": ["*/*", "text/event-stream", "application/json;q=0.1", "\xff"],
    "A2A-Extensions": ["", "urn:x", "urn:holdfast:contexts-and-control:v1", "\xff", "," * 100],
    "Host": ["localhost", "127.0.0.1"],
}
RAW = [
    b"\x00" * 100,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffff\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    b"GET /%zz%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n" * 50,
]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``raw`` is sent as it is, instead of all else."""

    method: str = "GET"
    path: str = "/"
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""


def _message(**fields: Any) -> dict[str, Any]:
    parts = [{"text": "hello"}, {"data": {"a": 1}}, {"raw": "aGk=", "filename": "f.txt"}]
    whole = {"messageId": "m", "role": "ROLE_USER", "parts": parts, "contextId": "c"}
    return {"message": whole | fields, "configuration": {"historyLength": 1}}


def _old(**fields: Any) -> dict[str, Any]:
    parts = [{"kind": "text", "text": "x"}]
    whole = {"kind": "message", "messageId": "m", "role": "user", "parts": parts}
    return {"message": whole | fields}


def _calls(task: str) -> list[tuple[str, dict[str, Any]]]:
    hook = {"url": "http://127.0.0.1:9/hook", "id": "p", "token": "t"}
    about: list[tuple[str, dict[str, Any]]] = [
        (name, {"id": task})
        for name in (
            *("GetTask", "CancelTask", "SubscribeToTask", "tasks/get", "tasks/cancel"),
            *("tasks/resubscribe", "tasks/pause", "tasks/resume"),
        )
    ]
    return [
        *about,
        ("SendMessage", _message()),
        ("SendStreamingMessage", _message()),
        ("message/send", _old()),
        ("message/stream", _old()),
        ("ListTasks", {"pageSize": 10, "status": "TASK_STATE_WORKING", "contextId": "c"}),
        ("tasks/list", {"pageSize": 10}),
        ("tasks/feedback", {"id": task, "text": "good", "rating": 5, "metadata": {}}),
        ("contexts/list", {"pageSize": 10, "pageToken": ""}),
        ("contexts/clear", {"contextId": "c"}),
        ("CreateTaskPushNotificationConfig", hook | {"taskId": task}),
        ("GetTaskPushNotificationConfig", {"taskId": task, "id": "p"}),
        ("ListTaskPushNotificationConfigs", {"taskId": task, "pageToken": ""}),
        ("DeleteTaskPushNotificationConfig", {"taskId": task, "id": "p"}),
        ("tasks/pushNotificationConfig/set", {"taskId": task, "pushNotificationConfig": hook}),
        ("tasks/pushNotificationConfig/get", {"id": task, "pushNotificationConfigId": "p"}),
        ("tasks/pushNotificationConfig/list", {"id": task}),
        ("GetExtendedAgentCard", {}),
        ("agent/getAuthenticatedExtendedCard", {}),
    ]


def _paths(task: str) -> list[tuple[str, str, Any]]:
    hook = {"url": "http://127.0.0.1:9/hook", "id": "p"}
    return [
        ("POST", "/message:send", _message()),
        ("POST", "/message:stream", _message()),
        ("POST", "/v1/message:send", {"request": _old()["message"]}),
        ("POST", "/v1/message:stream", {"request": _old()["message"]}),
        ("POST", f"/tasks/{task}/pushNotificationConfigs", hook),
        ("POST", f"/v1/tasks/{task}/pushNotificationConfigs", {"config": hook}),
        ("GET", f"/tasks/{task}?historyLength=1", None),
        ("GET", f"/v1/tasks/{task}?historyLength=1", None),
        ("GET", f"/tasks/{task}:subscribe", None),
        ("GET", f"/v1/tasks/{task}:subscribe", None),
        ("POST", f"/tasks/{task}:cancel", {}),
        ("GET", "/tasks?pageSize=5&pageToken=x&status=1", None),
        ("GET", f"/tasks/{task}/pushNotificationConfigs?pageSize=1", None),
        ("DELETE", f"/tasks/{task}/pushNotificationConfigs/p", None),
        ("GET", f"/blobs/b?task={task}", None),
        ("GET", "/extendedAgentCard", None),
        ("GET", "/v1/card", None),
        ("GET", "/tenant/tasks", None),
        ("GET", "/.well-known/agent-card.json", None),
        ("GET", "/metrics", None),
        ("GET", "/nowhere", None),
    ]


class Fuzzer:
    """Makes requests by changing good ones at random.

    ::

        for request in Fuzzer(seed=7, task="t1").requests(1000): ...
    """

    def __init__(self, *, seed: int, task: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._calls = _calls(task)
        self._paths = _paths(task)

    def requests(self, count: int) -> Iterator[Request]:
        """So many requests."""
        for _ in range(count):
            kind = self._random.random()
            if kind < 0.1:
                yield Request(raw=self._flipped(self._random.choice(RAW)))
            elif kind < 0.6:
                yield self._rpc()
            else:
                yield self._rest()

    def _rpc(self) -> Request:
        method, params = self._random.choice(self._calls)
        call: Any = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return Request("POST", "/", self._encoded(self._changed(call)), self._headers())

    def _rest(self) -> Request:
        method, path, body = self._random.choice(self._paths)
        if self._random.random() < 0.2:
            method = self._random.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "X"])
        if self._random.random() < 0.3:
            at = self._random.randrange(1, len(path) + 1)
            odd = ["%00", "%ff", "/", ":", "?", "%2e%2e/", "a" * 5000, "%F0%9F%A6%80", ";", "&x=y"]
            path = path[:at] + self._random.choice(odd) + path[at:]
        content = b"" if body is None else self._encoded(self._changed(body))
        return Request(method, path, content, self._headers())

    def _headers(self) -> dict[str, str]:
        chosen = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        for name, values in HEADERS.items():
            if self._random.random() < 0.15:
                chosen[name] = self._random.choice(values)
        return chosen

    def _changed(self, value: Any) -> Any:
        """The same with some of its values exchanged, dropped or doubled."""
        changed = copy.deepcopy(value)
        for _ in range(self._random.choice([0, 1, 1, 2, 5])):
            changed = self._once(changed)
        return changed

    def _once(self, value: Any) -> Any:
        if isinstance(value, dict) and value and self._random.random() < 0.85:
            key = self._random.choice(list(value))
            if self._random.random() < 0.1:
                value[str(self._random.choice(HOSTILE))[:100]] = value.pop(key)
            else:
                value[key] = self._once(value[key])
            return value
        if isinstance(value, list) and value and self._random.random() < 0.7:
            at = self._random.randrange(len(value))
            value[at] = self._once(value[at])
            return value * (1 if self._random.random() < 0.9 else 20)
        return copy.deepcopy(self._random.choice(HOSTILE))

    def _encoded(self, value: Any) -> bytes:
        body = json.dumps(value).encode()
        return self._flipped(body) if self._random.random() < 0.15 else body

    def _flipped(self, body: bytes) -> bytes:
        found = bytearray(body)
        for _ in range(self._random.choice([0, 1, 3, 10])):
            found[self._random.randrange(len(found))] = self._random.randrange(256)
        return bytes(found[: self._random.randrange(1, len(found) + 1)])
