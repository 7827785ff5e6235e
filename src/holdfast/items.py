"""The types of ``state.items``: JSON objects, each stored under a namespace and a key.

::

    from holdfast.items import ItemKey, ItemPut
"""

from holdfast.contracts.items import ItemStore
from holdfast.values.items import Item, ItemHit, ItemKey, ItemPut

__all__ = ["Item", "ItemHit", "ItemKey", "ItemPut", "ItemStore"]
