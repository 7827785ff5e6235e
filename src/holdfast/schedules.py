"""The public names of schedules: tasks at the ticks of a cron expression.

::

    from holdfast.schedules import Missed
"""

from holdfast.contracts.schedules import ScheduleStore
from holdfast.values.schedules import Missed, ScheduleRecord

__all__ = ["Missed", "ScheduleRecord", "ScheduleStore"]
