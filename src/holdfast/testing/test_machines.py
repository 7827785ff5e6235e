"""Each engine beside its reference under random sequences of calls."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.testing import machines
from holdfast.testing.harness import Harness
from holdfast.testing.machines.machine import EngineMachine

CONTRACT = None
STEPS_PER_RUN = 50
USUAL_STEPS = 1000


def _machines() -> list[type[EngineMachine]]:
    for module in pkgutil.iter_modules(machines.__path__):
        importlib.import_module(f"{machines.__name__}.{module.name}")
    found = [one for one in _below(EngineMachine) if hasattr(one, "contract")]
    return sorted(found, key=lambda machine: machine.contract)


def _below(machine: type[EngineMachine]) -> Iterator[type[EngineMachine]]:
    """The machines that extend one, also by way of another that only has rules."""
    for one in machine.__subclasses__():
        yield one
        yield from _below(one)


@pytest.mark.parametrize("machine", _machines(), ids=lambda machine: machine.contract)
def test_the_engine_and_its_reference_give_the_same_answers_step_by_step(
    harness_class: type[Harness], machine: type[EngineMachine], pytestconfig: pytest.Config
) -> None:
    wanted = pytestconfig.getoption("--machine-steps") // harness_class.machine_thrift
    # The same examples each time up to the usual length, so that it never fails by chance; new
    # ones in a longer run, so that it goes on finding what the usual one does not. A run that is
    # shorter than usual wants a quick answer: it does not look for the smallest failing sequence.
    rules = settings(
        # Some sequences end early, so a few more of them.
        max_examples=wanted * 8 // (STEPS_PER_RUN * 5) + 2,
        stateful_step_count=STEPS_PER_RUN,
        derandomize=wanted <= USUAL_STEPS,
        phases=[Phase.generate] if wanted < USUAL_STEPS else [Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine.steps = 0
    with asyncio.Runner() as runner:
        machine.subject, machine.runner = harness_class, runner
        kept = AsyncExitStack()
        runner.run(kept.enter_async_context(harness_class.keep_engines()))
        try:
            run_state_machine_as_test(machine, settings=rules)
        finally:
            runner.run(kept.aclose())
    assert machine.steps >= wanted
