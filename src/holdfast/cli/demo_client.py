"""The demo's A2A client over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast.values.errors import MissingExtraError, TimedOutError, UnavailableError
from holdfast.values.ids import new_id

WAIT_SECONDS = 90.0
HEADERS = {"A2A-Version": "1.0"}


class DemoClient:
    """Sends messages to one service and waits for its tasks.

    ::

        task = DemoClient("http://127.0.0.1:8000").send("Tides of Brest?")
    """

    def __init__(self, url: str, *, check: Callable[[], None] = lambda: None) -> None:
        try:
            import httpx  # noqa: PLC0415 - what a service needs is an extra of its own
        except ModuleNotFoundError:
            raise MissingExtraError("the demo", "server", "embedded") from None
        self._http = httpx.Client(base_url=url, headers=HEADERS, timeout=30.0)
        self._lost: tuple[type[Exception], ...] = (httpx.TransportError,)
        self._check = check

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ready(self) -> None:
        """Wait until the service and its Postgres answer."""
        self._wait("the service to answer", self._healthy)

    def send(self, text: str, *, task_id: str = "") -> dict[str, Any]:
        """Submit a task, or answer a task's question. Returns the task at once, done or not.

        The idempotency key makes a retry safe if the response was lost.
        """
        said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
        if task_id:
            said |= {"taskId": task_id}
        key = {"Idempotency-Key": new_id()}
        body = {"message": said, "configuration": {"returnImmediately": True}}
        found: list[dict[str, Any]] = []

        def sent() -> bool:
            answer = self._http.post("/message:send", json=body, headers=key)
            if answer.is_error:
                raise UnavailableError("the service", f"{answer.status_code}: {answer.text[:300]}")
            found.append(answer.json()["task"])
            return True

        self._wait("the service to take a message", sent)
        return found[-1]

    def task(self, task_id: str) -> dict[str, Any]:
        """Return the current state of a task."""
        answer = self._http.get(f"/tasks/{task_id}")
        if answer.is_error:
            raise UnavailableError("the service", f"{answer.status_code}: {answer.text[:300]}")
        found: dict[str, Any] = answer.json()
        return found

    def until(self, task_id: str, *states: str) -> dict[str, Any]:
        """Wait until the task is in one of the states or has ended, and return it."""
        wanted = {*states, "COMPLETED", "FAILED", "CANCELED", "REJECTED"}
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self.task(task_id))
            return state_of(found) in wanted

        self._wait(f"the task to be {' or '.join(states) or 'done'}", there)
        return found

    def wait(self, what: str, reached: Callable[[], bool]) -> None:
        """Wait until ``reached`` returns true, for conditions that the service does not report."""
        self._wait(what, reached)

    def _healthy(self) -> bool:
        return not self._http.get("/health").is_error

    def _wait(self, what: str, reached: Callable[[], bool]) -> None:
        limit = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                if reached():
                    return
            except self._lost:
                # Not up yet, or the connection was cut: retry.
                pass
            self._check()
            if time.monotonic() > limit:
                raise TimedOutError(
                    "the demo", f"gave up waiting for {what} after {WAIT_SECONDS:g} seconds"
                )
            time.sleep(0.05)


def state_of(task: dict[str, Any]) -> str:
    """Return a task's state without its prefix.

    >>> state_of({"status": {"state": "TASK_STATE_INPUT_REQUIRED"}})
    'INPUT_REQUIRED'
    """
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def question_of(task: dict[str, Any]) -> str:
    """Return the question of a waiting task.

    >>> question_of({"status": {"message": {"parts": [{"text": "Which?"}]}}})
    'Which?'
    """
    return _text(task["status"].get("message", {}))


def artifact_of(task: dict[str, Any], name: str) -> str:
    """Return the text of an artifact, with its parts joined.

    >>> artifact_of({"artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}]}, "a")
    'x'
    """
    found = [one for one in task.get("artifacts", []) if one["artifactId"] == name]
    return "".join(_text(one) for one in found)


def _text(holder: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in holder.get("parts", []))
