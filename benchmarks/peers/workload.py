"""What the agents of the contests say: real runs from a file, or generated text."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConfigError

BODY_BYTES = 1800
_GENERATED = 400
_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn: who, and what."""

    role: Literal["user", "assistant"]
    text: str

    def to_message(self) -> ChatMessage:
        """As our own message, with an id of its own each time."""
        make = ChatMessage.user if self.role == "user" else ChatMessage.assistant
        return make(self.text)

    def to_item(self) -> dict[str, str]:
        """As the plain object that most libraries take."""
        return {"role": self.role, "content": self.text}


@dataclass(frozen=True, slots=True)
class Workload:
    """Turns in the order in which they were said; asked for more, it begins again.

    ::

        workload = Workload.generated()
        workload.turns(3)
    """

    name: str
    said: tuple[Said, ...]

    @classmethod
    def generated(cls) -> Workload:
        """The same 400 turns of 1.8 KB each time, of words as frequent as words are."""
        rng = random.Random(7)  # noqa: S311 - the same text each time
        syllables = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
        words = sorted({"".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(3000)})
        rng.shuffle(words)
        weights = list(itertools.accumulate(1 / place for place in range(1, len(words) + 1)))
        said = []
        for at in range(_GENERATED):
            text = " ".join(rng.choices(words, cum_weights=weights, k=BODY_BYTES // 2))
            said.append(Said("assistant" if at % 2 else "user", text[:BODY_BYTES]))
        return cls(f"generated, {BODY_BYTES:,} bytes a message", tuple(said))

    @classmethod
    def read(cls, path: Path) -> Workload:
        """The runs of a tau-bench result file, one after another.

        A tool's answer is said to the model, so it is the user's; a tool call is said by the
        model, as its JSON. System prompts are left out: one peer refuses them. ::

            workload = Workload.read(Path("tau_gpt4o_airline.json"))
        """
        try:
            runs = json.loads(path.read_text(encoding="utf-8"))
            said = tuple(itertools.chain.from_iterable(_turns(run["traj"]) for run in runs))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} is not a tau-bench result file, a list of runs with their 'traj': {error}"
            ) from error
        if not said:
            raise ConfigError(f"{path} has no run in which anything is said")
        return cls(f"tau-bench, {len(runs):,} runs, {len(said):,} messages", said)

    def turns(self, count: int, start: int = 0) -> list[Said]:
        """So many turns from a place on."""
        return [self.said[(start + at) % len(self.said)] for at in range(count)]

    def messages(self, count: int) -> list[ChatMessage]:
        """So many messages: to make them is the agent's work, so they are made beforehand."""
        return [one.to_message() for one in self.turns(count)]

    def questions(self, count: int) -> list[str]:
        """Eight words from the middle of so many turns."""
        found = []
        for one in self.turns(count):
            words = one.text.split()
            middle = max(0, len(words) // 2 - 4)
            found.append(" ".join(words[middle : middle + 8]))
        return found

    def document(self) -> dict[str, Any]:
        """A working state of about one message's size, in eight fields."""
        text = self.said[0].text
        step = max(1, len(text) // 8)
        return {f"field_{at}": text[at * step : (at + 1) * step] for at in range(8)}

    def checkpoint(self, step: int) -> dict[str, Any]:
        """What a graph saves after a step: the last twenty messages, and where it is."""
        messages = [one.to_item() for one in self.turns(20)]
        return {"messages": messages, "step": step, "next": "model"}


def _turns(trajectory: list[dict[str, Any]]) -> list[Said]:
    said = []
    for turn in trajectory:
        text = turn.get("content") or ""
        if turn.get("tool_calls"):
            text += json.dumps(turn["tool_calls"])
        if turn["role"] != "system" and text.strip():
            said.append(Said("assistant" if turn["role"] == "assistant" else "user", text))
    return said
