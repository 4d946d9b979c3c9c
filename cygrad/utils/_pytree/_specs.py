"""The structures of trees, and their texts."""

import json
from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Any

from cygrad.utils._pytree._nodes import (
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    Context,
    PyTree,
    _get_node_type,
)

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class TreeSpec:
    """The structure of a tree: the kind of its outermost container, what else that kind needs, and its children.

    A leaf has the type None.
    """

    __slots__ = ("_children", "context", "num_leaves", "num_nodes", "type")
    num_leaves: int
    num_nodes: int

    def __init__(self, type: Any, context: Context, children_specs: list["TreeSpec"]) -> None:
        self.type, self.context, self._children = type, context, list(children_specs)
        is_leaf = type is None
        self.num_nodes: int = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves: int = 1 if is_leaf else sum(child.num_leaves for child in self._children)

    @property
    def num_children(self) -> int:
        """The number of children."""
        return len(self._children)

    @property
    def children_specs(self) -> list["TreeSpec"]:
        """The structures of the children."""
        return self._children

    def children(self) -> list["TreeSpec"]:
        """Return the structures of the children."""
        return self._children.copy()

    def child(self, index: int) -> "TreeSpec":
        """Return the structure of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Return the tree with these leaves, in order. Raises ValueError for another number of them."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._built(iter(leaves))

    def _built(self, leaves: Any) -> PyTree:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._built(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return what `tree` has at each leaf of this structure; it may be a tree itself.

        Raises ValueError if the structure of `tree` differs above.
        """
        found: list[PyTree] = []
        self._take(tree, found)
        return found

    def _take(self, tree: PyTree, found: list[PyTree]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind is not self.type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != len(self._children):
            raise ValueError(f"Node arity mismatch; expected {len(self._children)}, but got {len(children)}.")
        if both_dicts:
            keys = self.context if self.type.__name__ != "defaultdict" else self.context[1]
            if tree.keys() != set(keys):
                raise ValueError(f"Node keys mismatch; expected key(s) {keys}, but got key(s) {list(tree)}.")
            children = [tree[key] for key in keys]
        elif self.type is not deque and context != self.context:
            raise ValueError(f"Node context mismatch for {self.type}; expected {self.context}, but got {context}.")
        for spec, child in zip(self._children, children):
            spec._take(child, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self.context == other.context and self._children == other._children

    def __hash__(self) -> int:
        return hash((self.type, str(self.context), tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        inner = indent + 2
        children = (",\n" + " " * inner).join(child.__repr__(inner) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def __reduce__(self) -> Any:
        return (LeafSpec, ()) if self.type is None else (TreeSpec, (self.type, self.context, self._children))


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """Return the structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple with children of these structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """Return the structure of a dictionary with values of these structures."""
    found = dict(mapping, **kwargs)
    return TreeSpec(dict, list(found), list(found.values()))


def require_spec(treespec: Any) -> TreeSpec:
    """Raise TypeError unless this is a structure."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the text of a tree of this structure whose leaves are stars."""
    return repr(require_spec(treespec).unflatten([_Star()] * treespec.num_leaves))


# -- JSON --


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations by their names."""

    def default(self, o: Any) -> Any:
        """Return what stands for an object."""
        if isinstance(o, Enum):
            return {"__enum__": True, "fqn": f"{type(o).__module__}:{type(o).__qualname__}", "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """Return the member of an enumeration that a dictionary stands for."""
    if "__enum__" not in obj:
        return obj
    from importlib import import_module  # rarely needed

    module, _, qualname = obj["fqn"].partition(":")
    found: Any = import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found[obj["name"]]


def _written(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call "
            "with a `serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                "using _register_pytree_node."
            ) from error
    children = [_written(child) for child in spec.children()]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def _read(found: dict[str, Any]) -> TreeSpec:
    name = found["type"]
    if name is None and found["context"] is None and not found["children_spec"]:
        return _LEAF_SPEC
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    convert = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    if convert is not None:
        context = convert(found["context"])
    else:
        context = json.loads(found["context"], object_hook=enum_object_hook)
    return TreeSpec(kind, context, [_read(child) for child in found["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a structure as JSON. Raises NotImplementedError for a class registered without `serialized_type_name`.

    >>> from cygrad.utils._pytree import tree_structure, treespec_dumps, treespec_loads
    >>> spec = tree_structure({"a": (1, 2)})
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    require_spec(treespec)
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _written(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that `treespec_dumps` has written."""
    protocol, found = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _read(found)


pytree_to_str, str_to_pytree = treespec_dumps, treespec_loads
