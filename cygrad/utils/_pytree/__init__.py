"""Trees: nested tuples, lists, dictionaries and other containers of values, under PyTorch's module path.

Containers are tuples, lists, dictionaries, `OrderedDict`, `defaultdict`, `deque`, named tuples, results of ops with
several parts, and what `register_pytree_node` adds, by their exact types; everything else, None included, is a leaf.
"""

import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cygrad.utils._pytree import _nodes, _specs
from cygrad.utils._pytree._nodes import (
    BUILTIN_TYPES,
    CONSTANT_NODES,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    FlattenFunc,
    FlattenWithKeysFunc,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    UnflattenFunc,
    _get_node_type,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from cygrad.utils._pytree._specs import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    EnumEncoder,
    LeafSpec,
    PyTreeSpec,
    TreeSpec,
    enum_object_hook,
    pytree_to_str,
    require_spec,
    str_to_pytree,
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)

# The functions of each container, and of registration: libraries look for these private names here.
globals().update({name: value for name, value in vars(_nodes).items() if name.startswith("_") and callable(value)})
_LEAF_SPEC = _specs._LEAF_SPEC

__all__ = [
    "BUILTIN_TYPES",
    "CONSTANT_NODES",
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
    "SERIALIZED_TYPE_TO_PYTHON_TYPE",
    "STANDARD_DICT_TYPES",
    "SUPPORTED_NODES",
    "SUPPORTED_SERIALIZED_TYPES",
    "ConstantNode",
    "Context",
    "EnumEncoder",
    "FlattenFunc",
    "FlattenWithKeysFunc",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "UnflattenFunc",
    "arg_tree_leaves",
    "enum_object_hook",
    "is_constant_class",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "pytree_to_str",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "str_to_pytree",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

IsLeaf = Callable[[PyTree], bool] | None


# -- leaves and structures --


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether this is no container, or `is_leaf(tree)` is True."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Return an iterator over the leaves."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves, in order."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of all arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves, and the structure from which `tree_unflatten` rebuilds the tree.

    >>> from cygrad.utils._pytree import tree_flatten
    >>> tree_flatten((1, {"a": 2}))
    ([1, 2], TreeSpec(tuple, None, [*,
      TreeSpec(dict, ['a'], [*])]))
    """
    leaves: list[Any] = []
    return leaves, _structure(tree, is_leaf, leaves)


def _structure(tree: PyTree, is_leaf: IsLeaf, leaves: list[Any]) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_structure(child, is_leaf, leaves) for child in children])


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Return the tree of this structure with these leaves. Raises ValueError for another number of them."""
    return require_spec(treespec).unflatten(leaves)


# -- paths --


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return pairs of each leaf's path and the leaf, and the structure.

    >>> from cygrad.utils._pytree import keystr, tree_flatten_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return pairs of each leaf's path and the leaf."""
    return list(_generate_key_paths((), tree, is_leaf))


def _generate_key_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument "
            "to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _generate_key_paths((*path, key), child, is_leaf)


def keystr(kp: KeyPath) -> str:
    """Return the text of a path."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return what lies at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# -- maps --


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply `func` to each leaf, along with what other trees have in its place.

    >>> from cygrad.utils._pytree import tree_map
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *map(spec.flatten_up_to, rests)))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` for each leaf, as `tree_map` does, and return `tree`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply `func(path, leaf, ...)` to each leaf."""
    paths = [path for path, _ in tree_leaves_with_path(tree, is_leaf)]
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, paths, leaves, *map(spec.flatten_up_to, rests)))


def _predicate(type_or_types_or_pred: Any) -> Callable[[Any], bool]:
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):
        return lambda leaf: isinstance(leaf, type_or_types_or_pred)
    if callable(type_or_types_or_pred):
        return type_or_types_or_pred
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator that restricts a function to leaves of some types, or for which a predicate holds; returns others."""
    is_meant = _predicate(type_or_types_or_pred)

    def restrict(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda leaf: func(leaf) if is_meant(leaf) else leaf

    return restrict


def tree_map_only(type_or_types_or_pred: Any, /, func: Any, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply `func` to the leaves of some types, or for which a predicate holds.

    >>> from cygrad.utils._pytree import tree_map_only
    >>> tree_map_only(int, lambda x: x + 1, [1, "a"])
    [2, 'a']
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Any, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` for the leaves of some types, or for which a predicate holds, and return `tree`."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Any, tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for all leaves of some types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Any, tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for any leaf of some types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return one leaf of `tree` for each leaf of a structure below it; None if the structures do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if kind is not treespec.type or context != treespec.context or len(children) != treespec.num_children:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children()):
        own = _broadcast_to_and_flatten(child, spec, is_leaf)
        if own is None:
            return None
        found += own
    return found
