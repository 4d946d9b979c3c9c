"""Functions on nested tuples, lists and dictionaries, under PyTorch's module path."""

from typing import Any, NamedTuple

from cygrad.func.trees import flatten, mapped, rebuild

__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]


class TreeSpec(NamedTuple):
    """The structure of a tree."""

    tree: Any
    num_leaves: int


def tree_leaves(tree):
    """Return all values that are not tuples, lists or dictionaries, in order."""
    return flatten(tree)[0]


def tree_flatten(tree):
    """Return the leaves, and the structure that `tree_unflatten` needs to rebuild the tree."""
    leaves = tree_leaves(tree)
    return leaves, TreeSpec(mapped(lambda leaf: None, tree), len(leaves))


def tree_unflatten(leaves, treespec):
    """Rebuild a tree of the given structure from its leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for a form of {treespec.num_leaves}")
    return rebuild(treespec.tree, leaves)


def tree_map(func, tree, *rests):
    """Apply `func` to each leaf, along with the corresponding leaves of other trees of the same structure.

    >>> from cygrad.utils._pytree import tree_map
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    form = flatten(tree)
    for other in rests:
        if flatten(other)[1] != form[1]:
            raise ValueError(f"tree_map: trees of two forms: {form[1]} and {flatten(other)[1]}")
    return rebuild(tree, [func(*leaves) for leaves in zip(form[0], *map(tree_leaves, rests), strict=True)])
