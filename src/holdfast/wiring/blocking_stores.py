"""The stores of a blocking state. Their types are in ``blocking_stores.pyi``, which is generated.

The methods of ``State`` and of its stores are called through a ``Portal``, so there is no code for
each of them here. ``make docs`` writes the stub from their signatures.
"""

from __future__ import annotations

from holdfast.wiring.portaled import Portaled


class BlockingStores(Portaled):
    """Every attribute and method of a ``State``, as blocking calls without ``await``.

    ::

        state.history.append("planner", ChatMessage.user("hello"), session_id="s1")
    """
