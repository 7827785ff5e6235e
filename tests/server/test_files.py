"""Small files go along with an artifact, large ones are fetched by who may."""

from __future__ import annotations

import hashlib

import pytest
from a2a.types import a2a_pb2 as a2a

from holdfast import State
from tests.server.running import example_app, http_client, said, sent, serving, talking

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_large_file_is_a_link_that_only_its_owner_can_follow(state: State) -> None:
    ana, max_ = (await state.keys.create("ana")).text, (await state.keys.create("max")).text
    async with (
        serving(example_app(), state, auth=True) as service,
        talking(service, key=ana) as client,
        http_client(timeout=60) as http,
    ):
        events = await sent(client, said("file 300000"))
        [piece] = [one.artifact_update for one in events if one.HasField("artifact_update")]
        task = await client.get_task(a2a.GetTaskRequest(id=piece.task_id))
        part = task.artifacts[0].parts[0]
        assert part == piece.artifact.parts[0]
        assert (part.filename, part.media_type) == ("data.bin", "application/x-test")

        mine = await http.get(part.url, headers={"Authorization": f"Bearer {ana}"})
        assert mine.status_code == 200
        assert mine.content == b"x" * 300_000
        assert mine.headers["content-type"] == "application/x-test"
        assert mine.headers["x-content-type-options"] == "nosniff"
        assert mine.headers["etag"] == f'"{hashlib.sha256(mine.content).hexdigest()}"'
        theirs = await http.get(part.url, headers={"Authorization": f"Bearer {max_}"})
        assert theirs.status_code == 404
        assert (await http.get(part.url)).status_code == 401

        # A blob of the same tenant that no task of the caller's shows is not to be had either.
        hidden = await state.blobs.store(b"secret")
        guessed = f"{service.url}/blobs/{hidden}?task={task.id}"
        refused = await http.get(guessed, headers={"Authorization": f"Bearer {ana}"})
        assert (refused.status_code, refused.content) == (404, theirs.content)


async def test_a_small_file_goes_along(state: State) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, streaming=False) as client,
    ):
        [answer] = await sent(client, said("file 3"))
        part = answer.task.artifacts[0].parts[0]
        assert (part.raw, part.filename) == (b"xxx", "data.bin")
