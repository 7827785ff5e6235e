"""A browser without pictures: it keeps its cookie, and sends forms as a page would."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Self

import httpx

from holdfast import State
from holdfast.studio.access import Access, Session
from holdfast.studio.app import studio

BASE = "http://127.0.0.1:8620"
HOSTS = frozenset({"127.0.0.1", "localhost"})
_TOKEN = re.compile(r'<meta name="csrf" content="([^"]+)">')


class Visitor:
    """A session in Studio, by default that of this machine's operator."""

    def __init__(
        self, state: State, session: Session | None = None, *, read_only: bool = False
    ) -> None:
        self.access = Access()
        self.session = session or self.access.open(state.tenant)
        app = studio(state, self.access, hosts=HOSTS, read_only=read_only, valid=_valid)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app),
            base_url=BASE,
            cookies={"holdfast": self.access.seal(self.session)},
        )

    @classmethod
    def owner(cls, state: State, owner: str, *, writes: bool = True) -> Visitor:
        """A session that was opened with the key of an owner."""
        session = Access().open(state.tenant, owner=owner, key_id="k1", writes=writes)
        return cls(state, session)

    @property
    def token(self) -> str:
        """The token of this session's forms."""
        return self.access.form_token(self.session)

    async def get(self, path: str) -> httpx.Response:
        """Read a page."""
        return await self.client.get(path)

    async def page(self, path: str) -> str:
        """The text of a page that must be there."""
        response = await self.get(path)
        assert response.status_code == 200, response.text
        return response.text

    async def send(self, path: str, do: str, **fields: str) -> httpx.Response:
        """Send a form of a page."""
        data = {"csrf": self.token, "do": do, **fields}
        return await self.client.post(path, data=data, headers={"Origin": BASE})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.client.aclose()


async def _valid(_session: Session) -> bool:
    return True


def token_of(page: str) -> str:
    """The form token that a page has."""
    found = _TOKEN.search(page)
    assert found
    return found[1]
