"""The types of ``state.checkpoints``, which stores the state of a graph after each step.

::

    from holdfast.checkpoints import Checkpoint, TypedBytes
"""

from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write

__all__ = ["Checkpoint", "CheckpointStore", "TypedBytes", "Write"]
