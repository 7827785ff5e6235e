"""The workload of ``holdfast bench hybrid``: what the agents recorded, and the questions to them.

Everything is generated from a seed, so that every run and every contestant has the same. A turn is
a text of 1 to 2 KB, with word frequencies as in a language, and a vector. The vectors lie in
clusters, as those of a model do: a turn is about a subject, a subject belongs to a field, and five
turns of an agent, anywhere in its history, are about one subject. Half of the subjects are the
agent's own. The other half are those of all agents, as when the agents of one product are asked the
same things: there the nearest turns of all are mostly other agents' turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

K = 5
"""How many turns a question asks for, and how many are about its subject."""

FIELDS, FIELD_SHARE, NOISE = 8, 0.8, 1.3
WORDS = 5000
COMMON = "the of and to a in is it that for was on are as with his they at be this from have or by"
"""The most frequent words of English, in order. They are in every turn, and are not indexed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one agent."""

    vector: list[float]
    relevant: frozenset[int]
    """The turns of the agent's history that are about the subject."""

    exact: frozenset[int]
    """The nearest turns of the agent's history, found by comparing all."""

    shared: bool
    """Whether other agents also have turns about the subject."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Agents by number, each with its turns and questions."""

    texts: list[list[str]]
    vectors: list[Array]
    questions: list[list[Question]]

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return len(self.texts)

    @property
    def turns(self) -> int:
        """How many turns each agent has."""
        return len(self.texts[0])


def made(agents: int, turns: int, dimension: int, *, seed: int = 7) -> Workload:
    """Return a workload; the same arguments give the same workload.

    >>> one = made(2, 50, 16)
    >>> one.agents, one.turns, len(one.questions[0])
    (2, 50, 10)
    """
    rng = np.random.default_rng(seed)
    fields = _unit(rng.normal(size=(FIELDS, dimension)))
    subjects = max(2, turns // K)
    common = _subjects(rng, fields, subjects // 2)
    vectors, questions = [], []
    for _ in range(agents):
        own = _subjects(rng, fields, subjects - len(common))
        centres = np.concatenate([common, own])
        about = rng.permutation(np.arange(turns) % subjects)
        table = _near(rng, centres[about])
        vectors.append(table)
        asked = _near(rng, centres)
        questions.append(
            [
                Question(
                    asked[at].tolist(),
                    frozenset(np.flatnonzero(about == at).tolist()),
                    nearest(table, asked[at]),
                    at < len(common),
                )
                for at in rng.permutation(subjects).tolist()
            ]
        )
    return Workload([_texts(rng, turns) for _ in range(agents)], vectors, questions)


def _texts(rng: np.random.Generator, turns: int) -> list[str]:
    """Return texts of 1 to 2 KB whose word frequencies are as in a language (Zipf)."""
    made_up = ["".join(letters) for letters in rng.choice(list("aeiklmnorstu"), (WORDS, 6))]
    words = np.asarray([*COMMON.split(), *made_up], dtype=object)
    weights = 1 / np.arange(1, len(words) + 1)
    lengths = rng.integers(170, 340, size=turns)
    drawn = rng.choice(words, size=int(lengths.sum()), p=weights / weights.sum())
    return [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]


def nearest(table: Array, query: npt.ArrayLike, k: int = K) -> frozenset[int]:
    """Return the rows of a table that are nearest to a query by cosine, by comparing all.

    >>> sorted(nearest(np.eye(4, dtype=np.float32), [1, 0.5, 0, 0], 2))
    [0, 1]
    """
    wanted = np.asarray(query, dtype=np.float32)
    scores = (table @ wanted) / np.linalg.norm(table, axis=1)
    return frozenset(np.argsort(-scores, kind="stable")[:k].tolist())


def share(found: Sequence[Any], wanted: frozenset[Any]) -> float:
    """Return the share of the wanted turns that were found.

    >>> share([1, 2], frozenset({1, 2, 3, 4}))
    0.5
    """
    return len(wanted.intersection(found)) / len(wanted)


def working_state(agent: int) -> dict[str, Any]:
    """Return an agent's working state, 2 KB: a task, its plan, the last results of its tools."""
    said = f"tool output of agent {agent} " * 30
    plan = [f"step {at}: look at the tide table of harbour {at}" for at in range(12)]
    return {"current_task": f"task {agent}", "goal": "arrive", "plan": plan, "tool_output": said}


def _subjects(rng: np.random.Generator, fields: Array, count: int) -> Array:
    """Return random directions, each of which is close to one of the fields."""
    own = _unit(rng.normal(size=(count, fields.shape[1])))
    chosen = fields[rng.integers(len(fields), size=count)]
    return _unit(FIELD_SHARE * chosen + own)


def _near(rng: np.random.Generator, centres: Array) -> Array:
    return _unit(centres + NOISE * _unit(rng.normal(size=centres.shape)))


def _unit(rows: npt.NDArray[Any]) -> Array:
    found: Array = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found
