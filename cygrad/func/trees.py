"""Trees: nested tuples, lists and dictionaries of values."""


def flatten(tree):
    """Return (the leaves in order, the structure); the structure is a string, equal for trees of the same structure."""
    leaves: list = []
    return leaves, _visit(tree, leaves.append)


def _visit(tree, take):
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {_visit(value, take)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(_visit(value, take) for value in tree) + "]"
    if isinstance(tree, tuple):
        return "(" + ", ".join(_visit(value, take) for value in tree) + ("," if len(tree) == 1 else "") + ")"
    take(tree)
    return "*"


def rebuild(tree, leaves):
    """Return a tree of the same structure with other leaves, in order."""
    return _rebuilt(tree, iter(leaves))


def _rebuilt(tree, leaves):
    if isinstance(tree, dict):
        return type(tree)((key, _rebuilt(value, leaves)) for key, value in tree.items())
    if isinstance(tree, (list, tuple)):
        values = [_rebuilt(value, leaves) for value in tree]
        return type(tree)._make(values) if hasattr(tree, "_make") else type(tree)(values)
    return next(leaves)


def mapped(function, tree):
    """Return a tree of the same structure with `function` applied to each leaf."""
    return rebuild(tree, map(function, flatten(tree)[0]))


def spread(prefix, tree):
    """Return one entry of `prefix` for each leaf of `tree`: an entry applies to all leaves below its position.

    Return None if the structures do not fit.
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
