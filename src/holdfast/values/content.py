"""Content blocks, and the messages made of them.

A block is one piece of content. Media blocks hold exactly one of ``url``, ``data`` (bytes) and
``blob_ref`` (a ref of the ``Blobs``). A block that this version does not know is kept whole as
an ``UnknownBlock``, so that an older reader never loses what a newer writer stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, Unpack, get_args

from holdfast.values.checks import check_id, check_text, check_time
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Plain text.

    >>> TextBlock("hello").type
    'text'
    """

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class _MediaBlock:
    url: str | None = None
    data: bytes | None = None
    blob_ref: str | None = None
    media_type: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        given = [at for at in ("url", "data", "blob_ref") if getattr(self, at) is not None]
        if len(given) != 1:
            raise InvalidInputError(
                type(self).__name__,
                f"needs exactly one of url, data and blob_ref, and has {given or 'none'}",
            )
        if self.data is not None and not isinstance(self.data, bytes):
            raise InvalidInputError(
                f"{type(self).__name__}.data", f"must be bytes, not {type(self.data).__name__}"
            )


@dataclass(frozen=True, slots=True)
class ImageBlock(_MediaBlock):
    """A picture, by URL, by its bytes or by blob ref.

    >>> ImageBlock(url="https://example.org/cat.png").type
    'image'
    """

    type: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True)
class AudioBlock(_MediaBlock):
    """Sound, by URL, by its bytes or by blob ref.

    >>> AudioBlock(data=b"RIFF", media_type="audio/wav").type
    'audio'
    """

    type: ClassVar[str] = "audio"


@dataclass(frozen=True, slots=True)
class VideoBlock(_MediaBlock):
    """A film, by URL, by its bytes or by blob ref.

    >>> VideoBlock(blob_ref="b_1").type
    'video'
    """

    type: ClassVar[str] = "video"


@dataclass(frozen=True, slots=True)
class DocumentBlock(_MediaBlock):
    """A file for the model to read; not the ``Document`` of a ``VectorStore``.

    >>> DocumentBlock(blob_ref="b_1", name="report.pdf").type
    'document'
    """

    type: ClassVar[str] = "document"


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    """A model's call of a tool.

    >>> ToolUseBlock(id="c1", name="search", input={"q": "tides"}).type
    'tool_use'
    """

    type: ClassVar[str] = "tool_use"
    id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The result of the tool call ``tool_use_id``.

    >>> ToolResultBlock(tool_use_id="c1", content=[TextBlock("3 hits")]).is_error
    False
    """

    type: ClassVar[str] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock] = field(default_factory=list)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """A model's thinking, with the signature that some providers need back.

    >>> ReasoningBlock("first, the tides").signature
    ''
    """

    type: ClassVar[str] = "reasoning"
    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class DataBlock:
    """Structured data: any JSON value.

    >>> DataBlock({"rows": [1, 2]}).type
    'data'
    """

    type: ClassVar[str] = "data"
    data: Any


@dataclass(frozen=True, slots=True)
class ErrorBlock:
    """An error message, as content.

    >>> ErrorBlock("rate limited", code="429").code
    '429'
    """

    type: ClassVar[str] = "error"
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class UnknownBlock:
    """A block of another version, kept as it was written: ``raw`` is its whole JSON object.

    >>> UnknownBlock({"type": "hologram", "frames": 3}).type
    'hologram'
    """

    raw: dict[str, Any]

    def __post_init__(self) -> None:
        raw: object = self.raw
        if not (isinstance(raw, dict) and isinstance(raw.get("type"), str)):
            raise InvalidInputError("UnknownBlock.raw", "must be a JSON object with a text `type`")

    @property
    def type(self) -> str:
        """The ``type`` in the stored JSON object."""
        return str(self.raw["type"])


ContentBlock: TypeAlias = (
    TextBlock
    | ImageBlock
    | AudioBlock
    | VideoBlock
    | DocumentBlock
    | ToolUseBlock
    | ToolResultBlock
    | ReasoningBlock
    | DataBlock
    | ErrorBlock
    | UnknownBlock
)

KNOWN_BLOCKS: dict[str, type[Any]] = {
    block.type: block for block in get_args(ContentBlock) if block is not UnknownBlock
}


def _utc_now() -> datetime:
    return datetime.now(UTC)


Content: TypeAlias = str | Sequence[ContentBlock]


class MessageFields(TypedDict, total=False):
    """The optional fields of a message."""

    name: str
    metadata: dict[str, Any]
    id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation.

    ``id`` is created here, before the first attempt to store it, so that a retry has the same id.
    ``seq`` is its position in the session's log, set by stores; equality ignores it.

    >>> ChatMessage.user("hello").text
    'hello'
    """

    role: Role
    content: list[ContentBlock]
    name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=_utc_now)
    seq: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidInputError("role", f"must be one of {', '.join(ROLES)}, not {self.role!r}")
        content: object = self.content
        if not isinstance(content, list):
            raise InvalidInputError(
                "content", "must be a list of blocks; ChatMessage.user(text) takes plain text"
            )
        check_text("name", self.name)
        check_id("id", self.id)
        check_time("created_at", self.created_at)

    @classmethod
    def system(cls, content: Content, **fields: Unpack[MessageFields]) -> ChatMessage:
        """Return a system message: an instruction for the conversation.

        >>> ChatMessage.system("be brief").role
        'system'
        """
        return cls("system", _blocks(content), **fields)

    @classmethod
    def user(cls, content: Content, **fields: Unpack[MessageFields]) -> ChatMessage:
        """Return a message of the user.

        >>> ChatMessage.user("hello", name="ana").name
        'ana'
        """
        return cls("user", _blocks(content), **fields)

    @classmethod
    def assistant(cls, content: Content, **fields: Unpack[MessageFields]) -> ChatMessage:
        """Return a message of the model.

        >>> ChatMessage.assistant([TextBlock("a"), TextBlock("b")]).text
        'ab'
        """
        return cls("assistant", _blocks(content), **fields)

    @classmethod
    def tool(
        cls,
        tool_use_id: str,
        content: Content,
        *,
        is_error: bool = False,
        **fields: Unpack[MessageFields],
    ) -> ChatMessage:
        """Return a tool message: the result of the tool call ``tool_use_id``.

        >>> ChatMessage.tool("c1", "3 hits").text
        '3 hits'
        """
        result = ToolResultBlock(tool_use_id, _blocks(content), is_error=is_error)
        return cls("tool", [result], **fields)

    @property
    def text(self) -> str:
        """The text of the message, that of tool results included, joined.

        >>> ChatMessage.user("hello").text
        'hello'
        """
        return "".join(_texts(self.content))

    @property
    def tool_uses(self) -> list[ToolUseBlock]:
        """The tool calls in the message.

        >>> call = ToolUseBlock(id="c1", name="search")
        >>> ChatMessage.assistant([call]).tool_uses == [call]
        True
        """
        return [block for block in self.content if isinstance(block, ToolUseBlock)]

    @property
    def tool_results(self) -> list[ToolResultBlock]:
        """The tool results in the message.

        >>> ChatMessage.tool("c1", "3 hits").tool_results[0].tool_use_id
        'c1'
        """
        return [block for block in self.content if isinstance(block, ToolResultBlock)]


@dataclass(slots=True)
class _Draft:
    """The slots of ``ChatMessage``, without its checks; not frozen, so setting them is fast."""

    role: Role
    content: list[ContentBlock]
    name: str
    metadata: dict[str, Any]
    id: str
    created_at: datetime
    seq: int | None


_make = object.__new__


def stored_message(  # noqa: PLR0917 - the order of its fields, and keywords would cost
    role: Role,
    content: list[ContentBlock],
    name: str,
    metadata: dict[str, Any],
    id: str,
    created_at: datetime,
    seq: int | None,
) -> ChatMessage:
    """Return a message from values that were checked when they were stored.

    It is filled as a draft and then becomes a ``ChatMessage``, which has the same slots: a page of
    500 messages is made of them, and a frozen dataclass takes three times as long to fill.

    >>> from datetime import UTC
    >>> stored_message("user", [TextBlock("hi")], "", {}, "m1", datetime.now(UTC), 7).seq
    7
    """
    draft: Any = _make(_Draft)
    draft.role = role
    draft.content = content
    draft.name = name
    draft.metadata = metadata
    draft.id = id
    draft.created_at = created_at
    draft.seq = seq
    draft.__class__ = ChatMessage
    message: ChatMessage = draft
    return message


def _blocks(content: str | Sequence[ContentBlock]) -> list[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(content)]
    given: object = content
    if not isinstance(given, Iterable) or isinstance(given, (bytes, bytearray, Mapping)):
        kind = type(given).__name__
        hint = ": wrap data in [holdfast.content.DataBlock(…)]" if kind == "dict" else ""
        raise InvalidInputError("content", f"must be text or a list of blocks, not {kind}{hint}")
    return list(content)


def _texts(blocks: Sequence[ContentBlock]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            found.append(block.text)
        elif isinstance(block, ToolResultBlock):
            found.extend(_texts(block.content))
    return found


def text_of(blocks: Sequence[ContentBlock]) -> str:
    """Return the joined text of blocks, which embedders and indexes read.

    >>> text_of([TextBlock("low "), TextBlock("tide")])
    'low tide'
    """
    return "".join(_texts(blocks))
