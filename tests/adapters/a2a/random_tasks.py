"""Random tasks and events of the SDK."""

from __future__ import annotations

from random import Random
from typing import Any

from a2a.types import a2a_pb2 as pb

from holdfast.adapters.a2a.messages import parsed

TEXTS = ["", "hello", "\u00e9\u4e2d", "a\nb", "x" * 300]
IDS = ["", "m1", "m2", "m3", "[m]", "holdfast.m"]
ENDED = {
    pb.TASK_STATE_COMPLETED,
    pb.TASK_STATE_CANCELED,
    pb.TASK_STATE_FAILED,
    pb.TASK_STATE_REJECTED,
}


def seeded(seed: int) -> Random:
    """The same numbers each time."""
    return Random(seed)  # noqa: S311 - no secret


def _data(random: Random) -> Any:
    return random.choice([1, 2.5, "t", None, True, [1, {"a": []}], {"k": {"n": -1}}, {}])


def part(random: Random) -> dict[str, Any]:
    """A part of any kind."""
    made: dict[str, Any] = random.choice(
        [
            {"text": random.choice(TEXTS)},
            {"text": "t", "metadata": {"a": 1}},
            {"data": _data(random)},
            {"url": "https://example.org/f", "filename": "f", "mediaType": "text/plain"},
            {"raw": "AAEC/w=="},
            {},
        ]
    )
    return made


def message(random: Random) -> pb.Message:
    """A message; several may have one id."""
    made = {
        "messageId": random.choice(
            ["", "m1", "m2", "m3", "[m]", "holdfast.m", f"{random.random()}"]
        ),
        "role": random.choice(["ROLE_USER", "ROLE_AGENT", "ROLE_UNSPECIFIED"]),
        "parts": [part(random) for _ in range(random.randrange(3))],
        "contextId": random.choice(["", "c1"]),
        "metadata": random.choice([None, {}, {"n": 1}]),
        "extensions": random.choice([[], ["https://e.org"]]),
    }
    return parsed({k: v for k, v in made.items() if v is not None}, pb.Message())


def status(random: Random, *, live: bool) -> pb.TaskStatus:
    """A status, with a time or without."""
    states = [number for number in pb.TaskState.values() if not (live and number in ENDED)]
    made = pb.TaskStatus(state=random.choice(states))
    if random.random() < 0.7:
        made.timestamp.FromNanoseconds(random.randrange(10**18))
    if random.random() < 0.5:
        made.message.CopyFrom(message(random))
    return made


def artifact(random: Random, name: str) -> pb.Artifact:
    """An artifact with this id."""
    made = {
        "artifactId": name,
        "name": random.choice(["", "n"]),
        "description": random.choice(["", "d"]),
        "parts": [part(random) for _ in range(random.randrange(3))],
        "metadata": random.choice([None, {}, {"n": 1}, {"o": [1]}]),
    }
    return parsed({k: v for k, v in made.items() if v is not None}, pb.Artifact())


def task(random: Random, name: str, before: pb.Task | None, *, live: bool) -> pb.Task:
    """A task, new or a changed one: more, fewer or other messages, more or other artifacts."""
    made = pb.Task(id=name, context_id=random.choice(["", "c1", "c\n2"]))
    if before is not None:
        made.CopyFrom(before)
    change = random.randrange(4)
    if change == 0 and made.history:
        del made.history[random.randrange(len(made.history))]
    if change == 1 and made.status.HasField("message"):
        made.history.append(made.status.message)
    for _ in range(random.randrange(3)):
        made.history.insert(
            random.choice([0, len(made.history), len(made.history)]), message(random)
        )
    if random.random() < 0.8:
        made.status.CopyFrom(status(random, live=live))
    for at in range(len(made.artifacts)):
        if random.random() < 0.3:
            made.artifacts[at].CopyFrom(artifact(random, made.artifacts[at].artifact_id))
    if random.random() < 0.4:
        made.artifacts.append(artifact(random, f"a{len(made.artifacts)}"))
    if random.random() < 0.4:
        made.metadata.Clear()
        made.metadata.update({"n": random.randrange(3)})
    return made
