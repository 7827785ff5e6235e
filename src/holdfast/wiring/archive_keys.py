"""The data keys of sealed tenants in archives: wrapped by a key that the importer must have."""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from holdfast.sealing.data_keys import context_of
from holdfast.spi.archive.kinds import KINDS, UNSEALED
from holdfast.spi.archive.records import DataKeyRecord, Record
from holdfast.spi.archive.storage import ArchiveStorage
from holdfast.spi.key_provider import KeyProvider
from holdfast.values.errors import CodecError, InvalidInputError, NotSupportedError, SealedError


class ArchiveKeys:
    """Wraps the data keys of a tenant for a recipient, and checks that they open.

    ``provider`` has the keys that wrap them now. Without ``recipient`` they stay as they are. ::

        keys = ArchiveKeys("acme", provider, recipient)
    """

    def __init__(
        self, tenant: str, provider: KeyProvider | None, recipient: KeyProvider | None = None
    ) -> None:
        self._tenant = tenant
        self._provider = provider
        self._recipient = recipient
        self._checked: dict[int, DataKeyRecord] = {}

    @property
    def seals(self) -> bool:
        """Whether this tenant's content is sealed."""
        return self._provider is not None

    async def convert(self, record: Record) -> Record:
        """Return a record with its data key wrapped for the recipient; others as they are."""
        if not isinstance(record, DataKeyRecord) or self._recipient is None:
            return record
        secret = await self._open(record)
        wrapped = await self._recipient.wrap(self._recipient.current, secret, self._context(record))
        return msgspec.structs.replace(record, kek=self._recipient.current, wrapped=wrapped)

    async def check(self, record: Record) -> None:
        """Raise ``SealedError`` for a data key that does not open here."""
        if isinstance(record, DataKeyRecord):
            await self._open(record)
            self._checked[record.key_number] = record

    def check_first_keys(self) -> None:
        """Raise ``CodecError`` if the keys that were checked do not fit together.

        Each subject has one current key, and a later key names the first one of its subject.
        """
        current: set[str] = set()
        for record in self._checked.values():
            first = self._checked.get(record.first_number)
            named = not record.first_number or (
                first is not None
                and (first.subject, first.replaced, first.first_number) == (record.subject, True, 0)
            )
            if not named or (not record.replaced and record.subject in current):
                raise CodecError(
                    f"archive: the data key {record.key_number} does not fit the others of its "
                    "subject: the archive was changed; export it again"
                )
            if not record.replaced:
                current.add(record.subject)
        if current != {record.subject for record in self._checked.values()}:
            raise CodecError("archive: a subject has no current data key: export it again")

    def check_archive(self, *, sealed: bool, tenant: str, has_content: bool) -> None:
        """Raise unless this tenant can load an archive of ``tenant``, ``sealed`` or not.

        A tenant without content has no data keys, whether it is sealed or not.
        """
        if sealed and tenant != self._tenant:
            raise NotSupportedError(
                "sealed",
                "archives under another name",
                why=f"they can be decrypted only in tenant {tenant!r}: load it there",
            )
        if sealed and self._provider is None:
            raise SealedError(
                "this archive is sealed, and the state was opened without keys: "
                "set HOLDFAST_SEAL, or pass seal= to holdfast.open()"
            )
        if not sealed and has_content and self._provider is not None:
            raise NotSupportedError(
                "sealed",
                "archives that are not sealed",
                why="its content would stay unsealed: load it into a state without HOLDFAST_SEAL",
            )

    async def _open(self, record: DataKeyRecord) -> bytes:
        if self._provider is None:
            raise InvalidInputError(
                "recipient", "needs the keys of this tenant: set HOLDFAST_SEAL, or pass seal="
            )
        return await self._provider.unwrap(record.kek, record.wrapped, self._context(record))

    def _context(self, record: DataKeyRecord) -> bytes:
        return context_of(self._tenant, record.subject, record.key_number)


def without_wrapping(record: Record) -> Record:
    """Return a record without how its data key is wrapped, which differs in a copy."""
    if isinstance(record, DataKeyRecord):
        return msgspec.structs.replace(record, kek="", wrapped=b"")
    return record


async def has_content(storage: ArchiveStorage) -> bool:
    """Return whether there are records that a sealed tenant would have sealed.

    ::

        await has_content(storage)
    """
    async with storage.snapshot() as snapshot:
        for kind in KINDS:
            if kind.name in storage.kinds and kind.name not in UNSEALED:
                async with aclosing(snapshot.records(kind.name)) as found:
                    if await anext(found, None) is not None:
                        return True
    return False
