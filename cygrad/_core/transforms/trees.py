"""Trees: nested tuples, lists, dictionaries and deques of values, and objects of registered classes."""

from collections import defaultdict, deque
from typing import Any

from cygrad._core.types.size import Size

_BUILT_IN = frozenset({dict, list, tuple, deque})
nodes: dict[Any, Any] = {}  # kinds of containers, by class: filled by `utils._pytree`, which users register them with


def flatten(tree):
    """Return (the leaves in order, the structure); the structure is a string, equal for trees of the same structure.

    >>> import cygrad
    >>> from cygrad._core.transforms.trees import flatten
    >>> flatten({"a": 1, "b": [2, 3]})[0]
    [1, 2, 3]
    """
    leaves: list = []
    return leaves, _visit(tree, leaves.append)


def _visit(tree, take):
    node = _registered(tree)
    if node is not None:
        return f"{type(tree).__name__}({', '.join(_visit(value, take) for value in node.flatten_fn(tree)[0])})"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_visit(value, take)}" for key, value in tree.items()) + "}"
    if isinstance(tree, (list, deque)):
        return "[" + ", ".join(_visit(value, take) for value in tree) + "]"
    if isinstance(tree, tuple):
        return "(" + ", ".join(_visit(value, take) for value in tree) + ("," if len(tree) == 1 else "") + ")"
    take(tree)
    return "*"


def _registered(tree):
    """Return how objects of a class that users have registered are taken apart and made, or None."""
    kind = type(tree)
    return nodes.get(kind) if nodes and kind not in _BUILT_IN else None


def rebuild(tree, leaves):
    """Return a tree of the same structure with other leaves, in order.

    >>> import cygrad
    >>> from cygrad._core.transforms.trees import rebuild
    >>> rebuild({"a": 1, "b": [2, 3]}, [10, 20, 30])
    {'a': 10, 'b': [20, 30]}
    """
    return _rebuilt(tree, iter(leaves))


def _rebuilt(tree, leaves):
    node = _registered(tree)
    if node is not None:
        children, context = node.flatten_fn(tree)
        return node.unflatten_fn([_rebuilt(value, leaves) for value in children], context)
    if isinstance(tree, dict):
        pairs = ((key, _rebuilt(value, leaves)) for key, value in tree.items())
        return defaultdict(tree.default_factory, pairs) if isinstance(tree, defaultdict) else type(tree)(pairs)
    if isinstance(tree, deque):
        return type(tree)((_rebuilt(value, leaves) for value in tree), tree.maxlen)
    if isinstance(tree, (list, tuple)):
        values = [_rebuilt(value, leaves) for value in tree]
        if isinstance(tree, Size) and not all(isinstance(value, int) for value in values):
            return tuple(values)
        return type(tree)._make(values) if hasattr(tree, "_make") else type(tree)(values)
    return next(leaves)


def mapped(function, tree):
    """Return a tree of the same structure with `function` applied to each leaf.

    >>> import cygrad
    >>> from cygrad._core.transforms.trees import mapped
    >>> mapped(lambda leaf: 2 * leaf, {"a": 1, "b": [2, 3]})
    {'a': 2, 'b': [4, 6]}
    """
    return rebuild(tree, map(function, flatten(tree)[0]))


def spread(prefix, tree):
    """Return one entry of `prefix` for each leaf of `tree`: an entry applies to all leaves below its position.

    Return None if the structures do not fit.

    >>> import cygrad
    >>> from cygrad._core.transforms.trees import spread
    >>> spread({"a": 0, "b": None}, {"a": 1, "b": [2, 3]})
    [0, None, None]
    """
    if isinstance(prefix, (tuple, list)):
        if type(prefix) is not type(tree) or len(prefix) != len(tree):
            return None
        parts = [spread(p, t) for p, t in zip(prefix, tree, strict=True)]
    elif isinstance(prefix, dict):
        if not isinstance(tree, dict) or prefix.keys() != tree.keys():
            return None
        parts = [spread(prefix[key], tree[key]) for key in tree]
    else:
        return [prefix] * len(flatten(tree)[0])
    return None if None in parts else [entry for part in parts for entry in part]
