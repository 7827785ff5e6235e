"""The base of the state machines: an engine and its reference, side by side, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from holdfast.testing.archives import check_round_trips
from holdfast.testing.harness import Harness
from holdfast.values.errors import HoldfastError, NotSupportedError

T = TypeVar("T")


class EngineMachine(RuleBasedStateMachine):
    """Does the same to an engine and to its reference and compares what they answer.

    A subclass names its contract, and its rules call ``both``. Ids that a store mints differ
    between the two; a rule keeps the pair and passes each side its own with ``each``.
    """

    contract: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    steps: ClassVar[int] = 0

    subject: ClassVar[type[Harness]]
    """The engine under test, and the loop to run it on: set for each run."""
    runner: ClassVar[asyncio.Runner]

    def __init__(self) -> None:
        super().__init__()
        self.engine, self.reference = self.subject(), self.subject.reference()()
        self.run(self.engine.open())
        self.run(self.reference.open())
        options = self.options_for(self.engine)
        self.left = self.engine.subject(self.contract, **options)
        self.right = self.reference.subject(self.contract, **options)

    def options_for(self, engine: Harness) -> dict[str, Any]:
        """The options of both stores."""
        del engine
        return self.options

    def run(self, work: Awaitable[T]) -> T:
        """Run one coroutine on the machine's own loop."""

        async def waiting() -> T:
            return await work

        return self.runner.run(waiting())

    def both(
        self,
        call: Callable[[Any], Awaitable[Any]],
        view: Callable[[Any], Any] = lambda value: value,
    ) -> Any:
        """The same call on both; what they answer, seen through ``view``, must be equal."""
        return self.each(call, call, view)[0]

    def each(
        self,
        left: Callable[[Any], Awaitable[Any]],
        right: Callable[[Any], Awaitable[Any]],
        view: Callable[[Any], Any] = lambda value: value,
    ) -> tuple[Any, Any]:
        """One call for each side; the answers, seen through ``view``, must be equal."""
        engine = self._outcome(left, self.left)
        if isinstance(engine, NotSupportedError) and engine.engine == self.subject.refuses:
            return engine, engine
        reference = self._outcome(right, self.right)
        seen, expected = (
            answer if isinstance(answer, HoldfastError) else view(answer)
            for answer in (engine, reference)
        )
        if isinstance(seen, HoldfastError) or isinstance(expected, HoldfastError):
            assert type(seen) is type(expected), f"{seen!r} on the engine, expected {expected!r}"
        else:
            assert seen == expected
        return engine, reference

    def elapse(self, seconds: float) -> None:
        """Let time go forward on both."""
        self.run(self.engine.elapse(seconds))
        self.run(self.reference.elapse(seconds))

    def _outcome(self, call: Callable[[Any], Awaitable[Any]], store: Any) -> Any:
        try:
            return self.run(call(store))
        except HoldfastError as error:
            return error

    @invariant()
    def counted(self) -> None:
        """Every step counts towards the number that the suite promises."""
        type(self).steps += 1

    def teardown(self) -> None:
        """Copy all that was stored to other engines and back, and close both."""
        self.run(check_round_trips(self.engine))
        self.run(self.engine.close())
        self.run(self.reference.close())
