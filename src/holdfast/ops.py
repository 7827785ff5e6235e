"""For operators: the types of ``state.ops``, API keys and the health of the engines.

::

    from holdfast.ops import Health, KeyScope
"""

from holdfast.contracts.keys import KeyStore
from holdfast.values.backlog import Backlog, PoolUse
from holdfast.values.keys import ApiKey, KeyScope, NewApiKey
from holdfast.wiring.front_door import Opening
from holdfast.wiring.health import EngineHealth, Health
from holdfast.wiring.ops import Ops

__all__ = [
    "ApiKey",
    "Backlog",
    "EngineHealth",
    "Health",
    "KeyScope",
    "KeyStore",
    "NewApiKey",
    "Opening",
    "Ops",
    "PoolUse",
]
