"""The steps of graphs: ``state.checkpoints``.

::

    from holdfast.checkpoints import Checkpoint, TypedBytes
"""

from holdfast.contracts.checkpoints import CheckpointStore
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write

__all__ = ["Checkpoint", "CheckpointStore", "TypedBytes", "Write"]
