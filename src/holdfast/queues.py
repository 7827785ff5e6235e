"""Tasks for ``submit_many``, and limits on how many tasks workers run.

::

    from holdfast.queues import Limit, NewTask
"""

from holdfast.contracts.tasks.queues import QueueLedger
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.new_task import NewTask

__all__ = ["Limit", "NewTask", "QueueLedger"]
