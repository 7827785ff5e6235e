"""Tasks that somebody else runs, in the view of one owner."""

from __future__ import annotations

import pytest

from holdfast import State, new_id
from holdfast.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from holdfast.spi import StatusReport

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def state(wired: State) -> State:
    """A state of each wiring."""
    return wired


async def test_adopted_tasks_are_each_owners_own(state: State) -> None:
    ana, bob, name = state.for_owner("ana"), state.for_owner("bob"), new_id()
    task = await ana.tasks.adopt(name, agent="writer")
    assert task.owner == "ana"
    working, cancel = [StatusReport("working")], [StatusReport("canceled")]
    for other in (bob, state.for_owner("")):
        assert await other.tasks.get(name) is None
        for reports, version in ((working, task.version), (cancel, None)):
            with pytest.raises(NotFoundError):
                await other.tasks.record(name, reports, expected_version=version)
        assert not await other.tasks.delete(name)
        with pytest.raises(AlreadyExistsError):
            await other.tasks.adopt(name, agent="writer")
    with pytest.raises(InvalidInputError, match="owner"):
        await bob.tasks.delete(name, owner="ana")
    assert await ana.tasks.record(name, working, expected_version=task.version) == 2
    assert await ana.tasks.delete(name)
