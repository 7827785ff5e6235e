"""Messages, and the blocks that they are made of.

::

    from holdfast.content import ChatMessage, ImageBlock, TextBlock
"""

from holdfast.values.content import (
    AudioBlock,
    ChatMessage,
    ContentBlock,
    DataBlock,
    DocumentBlock,
    ErrorBlock,
    ImageBlock,
    ReasoningBlock,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)

__all__ = [
    "AudioBlock",
    "ChatMessage",
    "ContentBlock",
    "DataBlock",
    "DocumentBlock",
    "ErrorBlock",
    "ImageBlock",
    "ReasoningBlock",
    "Role",
    "TextBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
    "VideoBlock",
]
