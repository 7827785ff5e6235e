"""Conversations with questions whose evidence is known, read from the files of two benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConfigError

# The files write "D1:3", but also "D8:6; D9:17" and "D:11:26".
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
LOCOMO_CATEGORIES: dict[int | str, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the turns that answer it."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one agent experienced: its sessions in order, and the questions to it.

    The names of sessions are unique within a conversation only; ``session_id`` makes them unique.
    """

    agent: str
    sessions: dict[str, list[ChatMessage]]
    questions: list[Question]

    def session_id(self, name: str) -> str:
        """Return a session id that no other conversation has."""
        return f"{self.agent}/{name}"

    @property
    def turns(self) -> int:
        """How many messages the conversation has."""
        return sum(map(len, self.sessions.values()))


def load_conversations(path: Path) -> tuple[str, list[Conversation]]:
    """Return the kind of a file, and its conversations.

    ::

        kind, conversations = load_conversations(Path("locomo10.json"))
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if isinstance(data, list) and data and isinstance(data[0], dict):
        if "conversation" in data[0]:
            return "LoCoMo", [_sample(path, at, one) for at, one in enumerate(data)]
        if "haystack_sessions" in data[0]:
            return "LongMemEval", [_longmemeval(one) for one in data]
    raise ConfigError(f"{path} is neither LoCoMo nor LongMemEval: no list of their samples")


def _sample(path: Path, at: int, given: Any) -> Conversation:
    try:
        return _locomo(given, at)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path} is not in LoCoMo's format: sample {at}: {error}") from error


class _Turn(msgspec.Struct):
    """A turn in LoCoMo's format; other fields, such as those of images, are ignored."""

    speaker: str
    dia_id: str
    text: str = ""


class _Asked(msgspec.Struct):
    """A question in LoCoMo's format."""

    question: str
    evidence: list[str] | None = None
    category: int | str = "other"


class _Sample(msgspec.Struct):
    """A conversation in LoCoMo's format: ``session_1``, ``session_1_date_time`` and so on."""

    conversation: dict[str, Any]
    qa: list[_Asked]
    sample_id: str | int = ""


def _locomo(given: dict[str, Any], at: int) -> Conversation:
    sample = msgspec.convert(given, _Sample)
    talk = sample.conversation
    sessions: dict[str, list[ChatMessage]] = {}
    names = [name for name in talk if re.fullmatch(r"session_\d+", name)]
    first_speaker = talk.get("speaker_a")
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        turns = _turns(name, talk[name])
        first_speaker = first_speaker or (turns[0].speaker if turns else None)
        began = _locomo_time(talk.get(f"{name}_date_time", ""))
        sessions[name] = [
            ChatMessage(
                "user" if turn.speaker == first_speaker else "assistant",
                ChatMessage.user(turn.text).content,
                name=turn.speaker,
                id=_locomo_id(turn.dia_id),
                created_at=began + timedelta(seconds=place),
            )
            for place, turn in enumerate(turns)
        ]
    questions = []
    for asked in sample.qa:
        found = frozenset(_evidence(asked.evidence))
        if found:
            category = LOCOMO_CATEGORIES.get(asked.category, str(asked.category))
            questions.append(Question(asked.question, found, category))
    return Conversation(f"locomo/{sample.sample_id or at}", sessions, questions)


def _turns(session: str, given: Any) -> list[_Turn]:
    try:
        return msgspec.convert(given, list[_Turn])
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{session}: {error}") from error


def _evidence(listed: list[str] | None) -> Iterator[str]:
    for text in listed or []:
        found = [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(text)]
        yield from found or [text]


def _locomo_id(text: str) -> str:
    found = _EVIDENCE.fullmatch(text)
    return f"D{int(found[1])}:{int(found[2])}" if found else text


def _locomo_time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return datetime(2023, 1, 1, tzinfo=UTC)


def _longmemeval(sample: dict[str, Any]) -> Conversation:
    sessions: dict[str, list[ChatMessage]] = {}
    evidence = set()
    dates = sample.get("haystack_dates") or []
    for at, (name, turns) in enumerate(
        zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True)
    ):
        began = _longmemeval_time(dates[at] if at < len(dates) else "")
        messages = []
        for place, turn in enumerate(turns):
            # A session may occur twice in a haystack, so its position is part of the id.
            turn_id = f"{at}:{name}:{place}"
            say = ChatMessage.user if turn["role"] == "user" else ChatMessage.assistant
            when = began + timedelta(seconds=place)
            messages.append(say(turn["content"], id=turn_id, created_at=when))
            if turn.get("has_answer"):
                evidence.add(turn_id)
        sessions[f"{at}:{name}"] = messages
    asked = Question(sample["question"], frozenset(evidence), sample["question_type"])
    questions = [asked] if evidence else []
    return Conversation(f"longmemeval/{sample['question_id']}", sessions, questions)


def _longmemeval_time(text: str) -> datetime:
    try:
        return datetime.strptime(text[:10], "%Y/%m/%d").replace(tzinfo=UTC)
    except ValueError:
        return datetime(2023, 1, 1, tzinfo=UTC)
