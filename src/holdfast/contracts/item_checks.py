"""Checks of items, namespaces and keys before they are stored or looked for."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.spi.items import ItemWrite
from holdfast.values.checks import (
    check_count,
    check_id,
    check_list,
    check_seconds,
    check_subject,
    check_vector,
)
from holdfast.values.codec import encode_object
from holdfast.values.errors import InvalidInputError
from holdfast.values.items import ItemKey, ItemPut, Namespace
from holdfast.values.limits import (
    ITEM_BYTES_PER_CALL,
    ITEM_NUMBERS_PER_CALL,
    ITEM_VECTORS,
    ITEMS_PER_CALL,
    NAMESPACE_BYTES,
    NAMESPACE_LABELS,
    Limits,
)


def check_namespace(field: str, namespace: object) -> Namespace:
    """Check the path of a namespace: a list or a tuple of one label or more, which are ids.

    >>> check_namespace("namespace", ["users", "ana"])
    ('users', 'ana')
    """
    labels = check_prefix(field, namespace)
    if not labels:
        raise InvalidInputError(field, "must have a label: write ('users',), for example")
    return labels


def check_prefix(field: str, prefix: object) -> Namespace:
    """Check the prefix of a namespace; an empty prefix matches every namespace.

    >>> check_prefix("prefix", ())
    ()
    """
    return tuple(label for label in check_pattern(field, prefix, wildcards=False) if label)


def check_pattern(field: str, labels: object, *, wildcards: bool = True) -> tuple[str | None, ...]:
    """Check the labels of a pattern; ``None`` matches any label.

    >>> check_pattern("suffix", (None, "v1"))
    (None, 'v1')
    """
    listed = check_list(field, labels)
    if len(listed) > NAMESPACE_LABELS:
        raise InvalidInputError(
            field, f"has {len(listed)} labels, and at most {NAMESPACE_LABELS} are allowed"
        )
    checked = tuple(
        None if label is None and wildcards else check_id(f"{field}[{at}]", label)
        for at, label in enumerate(listed)
    )
    size = sum(len(label.encode()) for label in checked if label)
    if size > NAMESPACE_BYTES:
        raise InvalidInputError(
            field,
            f"has {size} bytes in all labels, and at most {NAMESPACE_BYTES} are allowed: "
            "shorten the labels",
        )
    return checked


def check_keys(keys: object) -> list[ItemKey]:
    """Check the keys of items to read: pairs of a namespace and a key.

    >>> check_keys([(("users",), "ana")])
    [ItemKey(namespace=('users',), key='ana')]
    """
    listed = check_list("keys", keys)
    _check_number("keys", listed)
    return [_check_key(f"keys[{at}]", one) for at, one in enumerate(listed)]


def check_puts(puts: object, *, limits: Limits, engine: str, most: int) -> list[ItemWrite]:
    """Check items to store and to delete; ``most`` is the engine's highest vector dimension.

    >>> [write] = check_puts([ItemPut(("a",), "k", {})], limits=Limits(), engine="x", most=9)
    >>> write.value
    '{}'
    """
    listed = check_list("puts", puts)
    _check_number("puts", listed)
    writes: dict[ItemKey, ItemWrite] = {}
    size = numbers = 0
    for at, put in enumerate(listed):
        field = f"puts[{at}]"
        write = _check_put(field, put, limits)
        if write.at in writes:
            raise InvalidInputError(field, "names an item twice in one call: pass its last put")
        for place, vector in enumerate(write.vectors):
            if len(vector) > most:
                raise InvalidInputError(
                    f"{field}.vectors[{place}]",
                    f"has dimension {len(vector)}: {engine} stores up to {most}",
                )
        writes[write.at] = write
        size += len((write.value or "").encode())
        numbers += sum(map(len, write.vectors))
    for has, allowed, what in (
        (size, ITEM_BYTES_PER_CALL, "bytes in all values"),
        (numbers, ITEM_NUMBERS_PER_CALL, "numbers in all vectors"),
    ):
        if has > allowed:
            raise InvalidInputError(
                "puts", f"has {has} {what}, and at most {allowed} are allowed: call several times"
            )
    return list(writes.values())


def _check_number(field: str, listed: Sequence[object]) -> None:
    if len(listed) > ITEMS_PER_CALL:
        raise InvalidInputError(
            field,
            f"has {len(listed)} items, and at most {ITEMS_PER_CALL} are allowed: "
            "call several times",
        )


def _check_key(field: str, key: object) -> ItemKey:
    if not isinstance(key, tuple) or len(key) != 2:
        raise InvalidInputError(field, f"must be an ItemKey, not {type(key).__name__}")
    namespace, own = key
    return ItemKey(check_namespace(f"{field}.namespace", namespace), check_id(f"{field}.key", own))


def _check_put(field: str, put: object, limits: Limits) -> ItemWrite:
    if not isinstance(put, ItemPut):
        raise InvalidInputError(field, f"must be an ItemPut, not {type(put).__name__}")
    at = _check_key(field, (put.namespace, put.key))
    vectors = check_list(f"{field}.vectors", put.vectors)
    if len(vectors) > ITEM_VECTORS:
        raise InvalidInputError(
            f"{field}.vectors",
            f"has {len(vectors)} vectors, and at most {ITEM_VECTORS} are allowed",
        )
    checked = [
        check_vector(f"{field}.vectors[{place}]", list(one) if isinstance(one, tuple) else one)
        for place, one in enumerate(vectors)
    ]
    expected = put.expected_version
    if expected is not None:
        check_count(f"{field}.expected_version", expected)
    if put.ttl_seconds is not None:
        check_seconds(f"{field}.ttl_seconds", put.ttl_seconds)
    if put.value is None:
        if vectors or put.ttl_seconds is not None or put.subject != "":
            what = "ttl_seconds" if put.ttl_seconds is not None else "subject"
            what = "vectors" if vectors else what
            raise InvalidInputError(f"{field}.{what}", "must be left out if the value is None")
        return ItemWrite(at, None, (), None, expected)
    value = encode_object(put.value, field=f"{field}.value")
    limits.check_value(f"{field}.value", value)
    about: object = put.subject
    subject = "" if about == "" else check_subject(about, f"{field}.subject")
    return ItemWrite(at, value, checked, put.ttl_seconds, expected, subject)
