"""Encrypts (seals) and decrypts (opens) the values of one tenant."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.sealing.blind import Blind
from holdfast.sealing.cipher import Box, Place, bound_to, number_of_text, seal
from holdfast.sealing.data_keys import INDEX, DataKeys, OpenKey
from holdfast.sealing.session_subjects import SessionSubjects
from holdfast.values.checkpoints import TypedBytes
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.errors import CodecError, NotSupportedError, SealedError
from holdfast.values.owners import split_owned
from holdfast.values.sealed import SEALED, SEALED_TEXT, check_unsealed, is_sealed

_BEGIN = f'{{"{SEALED}":"'
_MOST_OWNERS = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Sealer:
    """Encrypts values with the data key of one subject.

    Values that must be encrypted to equal bytes if they are equal (``again``) use the subject's
    first key, also after a rotation. ``owner`` is set if the subject is not the record's owner.
    """

    tenant: str
    key: OpenKey
    owner: tuple[str, ...] = ()

    @property
    def newest(self) -> Sealer:
        """A copy with the current key for all values: a retry after a rotation has other bytes."""
        if self.key.first is None:
            return self
        return dataclasses.replace(self, key=dataclasses.replace(self.key, first=None))

    def bytes(self, place: Place, data: bytes, *, again: bool = False) -> bytes:
        """Encrypt bytes; see ``cipher.seal`` for ``again``."""
        key = (self.key.first or self.key) if again else self.key
        bound = bound_to(self.tenant, place, *self.owner)
        return seal(key, data, bound, again=again)

    def box(self, place: Place, text: str, *, again: bool = False) -> str:
        """Encrypt a text. Returns base64."""
        return base64.b64encode(self.bytes(place, text.encode(), again=again)).decode()

    def json(
        self,
        place: Place,
        text: str,
        beside: Mapping[str, Any] | None = None,
        *,
        again: bool = False,
    ) -> str:
        """Encrypt a JSON text. Returns the JSON text of an object, which also has ``beside``."""
        return encode_json({SEALED: self.box(place, text, again=again), **(beside or {})})

    def text(self, place: Place, text: str, *, again: bool = False) -> str:
        """Encrypt a text. Returns a text; an empty one stays empty."""
        return SEALED_TEXT + self.box(place, text, again=again) if text else text

    def typed(self, place: Place, value: TypedBytes) -> TypedBytes:
        """Encrypt bytes together with their kind."""
        head = encode_json(value.kind).encode() + b"\n"
        return TypedBytes(SEALED, self.bytes(place, head + value.data))


class Opener:
    """Decrypts values whose data keys are loaded."""

    def __init__(self, tenant: str, keys: Mapping[int, OpenKey]) -> None:
        self.tenant = tenant
        self._keys = keys
        self.is_plain = not keys
        """Whether nothing is encrypted, so that values can stay as they are."""

    def key_of(self, text: str) -> OpenKey:
        """Return the data key of an encrypted text."""
        return self._keys[_text_box(text).number]

    def bytes(self, subject: str, place: Place, box: Box) -> bytes:
        """Decrypt bytes of a record that belongs to ``subject``.

        The key is that of ``subject``, or of another subject whom the record is about: then the
        bytes must have been bound to ``subject`` when they were encrypted. Raises ``SealedError``
        for any other key.
        """
        key = self._keys[box.number]
        if key.subject in ("", subject):
            return box.open(key, bound_to(self.tenant, place))
        try:
            return box.open(key, bound_to(self.tenant, place, subject))
        except SealedError:
            raise SealedError(
                "a sealed value does not open here: it was sealed with the key of another owner"
            ) from None

    def json(self, subject: str, place: Place, value: Any) -> Any:
        """Decrypt a decoded JSON value; one that is not encrypted is returned as it is."""
        if not is_sealed(value):
            return value
        return decode_json(self.bytes(subject, place, Box.of_text(value[SEALED])))

    def json_text(self, subject: str, place: Place, text: str) -> str:
        """Decrypt a JSON text; one that is not encrypted is returned as it is."""
        box = sealed_box(text)
        if box is None:
            return text
        return self.bytes(subject, place, Box.of_text(box)).decode()

    def text(self, subject: str, place: Place, text: str) -> str:
        """Decrypt a text; one that is not encrypted is returned as it is."""
        if not text.startswith(SEALED_TEXT):
            return text
        return self.bytes(subject, place, _text_box(text)).decode()

    def typed(self, subject: str, place: Place, value: TypedBytes) -> TypedBytes:
        """Decrypt bytes with their kind; if not encrypted, they are returned as they are."""
        if value.kind != SEALED:
            return value
        head, _, data = self.bytes(subject, place, Box.of(value.data)).partition(b"\n")
        return TypedBytes(decode_json(head), data)


class Seal:
    """The encryption of a tenant; without keys it encrypts nothing, and cannot decrypt.

    ::

        sealing = Seal("acme", DataKeys(storage, provider, tenant="acme"))
    """

    def __init__(
        self, tenant: str, keys: DataKeys | None = None, *, plain_vectors: bool = False
    ) -> None:
        self._tenant = tenant
        self.keys = keys
        self._plain_vectors = plain_vectors
        self.owners: dict[str, str] = {}
        """The owners of tasks, which never change."""
        self.subjects = SessionSubjects()

    def remember_owner(self, task_id: str, owner: str) -> None:
        """Cache the owner of a task, so that it need not be read from the store.

        ::

            sealing.remember_owner("t1", "ana")
        """
        if len(self.owners) >= _MOST_OWNERS:
            self.owners.clear()
        self.owners[task_id] = owner

    async def sealer(self, subject: str) -> Sealer | None:
        """Return the object that encrypts the values of a subject; ``None`` without keys.

        ::

            sealer = await sealing.sealer("ana")
        """
        if self.keys is None:
            return None
        return Sealer(self._tenant, await self.keys.of_subject(subject))

    async def session_sealer(self, session: str) -> Sealer | None:
        """Return the object that encrypts what is stored under the id of a session.

        It has the key of the session's subject, or else of its owner. ::

            sealer = await sealing.session_sealer("s1")
        """
        if self.keys is None:
            return None
        return await self.sealer_about(split_owned(session)[0], await self.subjects.of(session))

    async def sealer_about(self, owner: str, subject: str) -> Sealer | None:
        """Return the object that encrypts values of an owner that are about a subject.

        ::

            sealer = await sealing.sealer_about("ben", "ana")
        """
        if self.keys is None:
            return None
        key = await self.keys.of_subject(subject)
        return Sealer(self._tenant, key, () if subject == owner else (owner,))

    async def blind(self) -> Blind | None:
        """Return the object that makes keyed digests; ``None`` without keys.

        ::

            blind = await sealing.blind()
        """
        if self.keys is None:
            return None
        return Blind((await self.keys.of_subject(INDEX)).secret)

    async def opener(self, *values: Any) -> Opener:
        """Return the object that decrypts these values, after loading their data keys.

        A value is decoded JSON, a text, a JSON text, or typed bytes. ::

            opener = await sealing.opener(body)
        """
        numbers = set(_numbers(values))
        if not numbers:
            return Opener(self._tenant, {})
        if self.keys is None:
            raise SealedError(
                "this value is sealed, and the state was opened without keys: "
                "set HOLDFAST_SEAL, or pass seal= to holdfast.open()"
            )
        return Opener(self._tenant, await self.keys.load(numbers))

    def forget(self, numbers: Sequence[int]) -> None:
        """Delete destroyed keys from the cache of unwrapped keys, and all subjects of sessions.

        ::

            sealing.forget([7])
        """
        self.subjects.forget()
        if self.keys is not None:
            self.keys.forget(numbers)

    def check(self, field: str, *texts: str) -> None:
        """Raise ``InvalidInputError`` if a text of a caller looks like an encrypted value."""
        for text in texts:
            check_unsealed(field, text)

    def check_vectors(self, vectors: object) -> None:
        """Raise ``NotSupportedError`` for vectors, unless unencrypted vectors are allowed."""
        if vectors and self.keys is not None and not self._plain_vectors:
            raise NotSupportedError(
                "sealed",
                "vectors",
                why="a text can be guessed from its vector: set HOLDFAST_SEAL_VECTORS=plain "
                "to store vectors unsealed",
            )


def sealed_box(text: str) -> str | None:
    """Return the encrypted part of an object's JSON text; ``None`` if it is not encrypted.

    >>> sealed_box('{"holdfast.sealed":"AQ==","words":[]}'), sealed_box('{"step":1}')
    ('AQ==', None)
    """
    if text.startswith(_BEGIN):
        return text[len(_BEGIN) : text.index('"', len(_BEGIN))]
    if SEALED not in text:
        return None
    try:
        # An engine that stores JSON writes it in its own order.
        value = decode_json(text)
    except CodecError:
        # A text that only mentions the name.
        return None
    return str(value[SEALED]) if is_sealed(value) else None


def _numbers(values: Iterable[Any]) -> Iterable[int]:
    for value in values:
        if isinstance(value, dict):
            if SEALED in value:
                yield number_of_text(str(value[SEALED]))
        elif isinstance(value, str):
            if value.startswith(SEALED_TEXT):
                yield number_of_text(value[len(SEALED_TEXT) :].partition(" ")[0])
            elif SEALED in value and (box := sealed_box(value)) is not None:
                yield number_of_text(box)
        elif isinstance(value, TypedBytes) and value.kind == SEALED:
            yield Box.of(value.data).number


def _text_box(text: str) -> Box:
    # Blind words may follow.
    return Box.of_text(text[len(SEALED_TEXT) :].partition(" ")[0])
