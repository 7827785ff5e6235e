"""Messages, the blocks that they are made of, and large results of tasks.

::

    from holdfast.content import ChatMessage, ImageBlock, TextBlock
"""

from holdfast.runtime.results import load_result
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
    "load_result",
]
