"""Every parameter of every store against the hostile corpus."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from holdfast.testing import probes
from holdfast.testing.harness import Harness
from holdfast.testing.hostile import JSON_VALUES, REFUSED, TEXTS, VECTORS, Hostile
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import HoldfastError, InvalidInputError, NotSupportedError

CONTRACT = None
pytestmark = pytest.mark.asyncio(loop_scope="session")


def _probes() -> list[tuple[str, Probe]]:
    found = []
    for info in pkgutil.iter_modules(probes.__path__):
        module = importlib.import_module(f"{probes.__name__}.{info.name}")
        if info.name != "probe":
            found += [(module.CONTRACT, probe) for probe in module.PROBES]
    return found


@pytest.mark.parametrize(
    ("contract", "probe"), [pytest.param(c, p, id=f"{c}.{p.name}") for c, p in _probes()]
)
async def test_hostile_input_is_kept_exactly_or_refused_with_nothing_written(
    harness: Harness, contract: str, probe: Probe
) -> None:
    store = harness.subject(contract, **dict(probe.options))
    if probe.prepare is not None:
        await probe.prepare(store)
    faults = []
    stored: list[str | bytes] | None = None
    for hostile in probe.corpus():
        refused = hostile.verdict is REFUSED
        # What the engine holds, read again only after a value that it keeps.
        stored = (stored or await harness.raw(contract)) if refused else None
        fault = await _fault(harness, contract, store, probe, hostile, before=stored)
        if fault:
            faults.append(f"{hostile.name}: {fault}")
            stored = None
    assert not faults, "\n".join(faults)


async def _fault(
    harness: Harness,
    contract: str,
    store: object,
    probe: Probe,
    hostile: Hostile,
    *,
    before: list[str | bytes] | None,
) -> str:
    """What is wrong with what became of one value; empty when it is right."""
    refused = hostile.verdict is REFUSED
    try:
        echo = await probe.use(store, hostile.value)
    except InvalidInputError as error:
        if not refused:
            return f"refused, and should be kept: {error}"
        if not error.field or not str(error).isprintable():
            return f"the error names no field, or does not print: {str(error)!r}"
        return "" if await harness.raw(contract) == before else "refused, but something was written"
    except HoldfastError as error:
        if isinstance(error, NotSupportedError) and error.engine == harness.refuses:
            return ""  # a read that it refuses by design, of what the probe stored before
        return f"{type(error).__name__} instead of InvalidInputError: {error}"
    except Exception as error:  # noqa: BLE001 - whatever crosses the contract is the finding
        return f"{type(error).__name__} crossed the contract: {error}"[:300]
    if refused:
        return "kept, and should be refused"
    # repr tells 1 from 1.0 from True, and 0.0 from -0.0, which == does not.
    if echo is not NO_ECHO and repr(echo) != repr(probe.expect(hostile.value)):
        return f"came back as {echo!r}"[:300]
    return ""


async def test_the_corpus_has_at_least_120_values() -> None:
    assert len(TEXTS) + len(JSON_VALUES) + len(VECTORS) >= 120
