"""The types of ``state.schedules``, which submits tasks at the times of a cron expression.

::

    from holdfast.schedules import Missed
"""

from holdfast.contracts.schedules import ScheduleStore
from holdfast.values.schedules import Missed, ScheduleRecord

__all__ = ["Missed", "ScheduleRecord", "ScheduleStore"]
