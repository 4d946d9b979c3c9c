"""The kinds of containers that trees consist of: how each is taken apart into its children and put together again."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import Any, NamedTuple

from cygrad import Size, return_types
from cygrad.func import trees
from cygrad.utils.warning import warn

Context = Any
PyTree = Any
FlattenFunc = Callable[[Any], tuple[list[Any], Context]]
UnflattenFunc = Callable[[Iterable[Any], Context], Any]
FlattenWithKeysFunc = Callable[[Any], tuple[list[tuple[Any, Any]], Context]]


# -- paths --


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The place of a child in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[Any]) -> Any:
        """Return the child."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The key of a child in a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[Any, Any]) -> Any:
        """Return the child."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of the attribute that a child is."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the child."""
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


# -- registration --


class NodeDef(NamedTuple):
    """A kind of container."""

    type: Any  # a class, or the function `namedtuple`
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: FlattenWithKeysFunc | None


class SerializeNodeDef(NamedTuple):
    """The name of a kind of container in files, and the conversion of its context."""

    typ: Any
    serialized_type_name: str | None
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


SUPPORTED_NODES: dict[Any, NodeDef] = trees.nodes  # which `vmap`, `grad` and their kind read
SUPPORTED_SERIALIZED_TYPES: dict[Any, SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()
_lock = RLock()


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
) -> None:
    """Let instances of a class be containers of trees.

    `flatten_fn(object)` returns the list of children, and a context; `unflatten_fn(children, context)` the object.
    `flatten_with_keys_fn` returns pairs (key, child) in place of children, for paths; the others are for
    `treespec_dumps`. Raises ValueError if the class is registered already.
    """
    with _lock:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        _put(
            NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn),
            SerializeNodeDef(cls, serialized_type_name, to_dumpable_context, from_dumpable_context),
        )


def _put(node: NodeDef, serialized: SerializeNodeDef) -> None:
    if (serialized.to_dumpable_context is None) != (serialized.from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {node.type} must be None or registered."
        )
    SUPPORTED_NODES[node.type] = node
    SUPPORTED_SERIALIZED_TYPES[node.type] = serialized
    if serialized.serialized_type_name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized.serialized_type_name] = node.type


def _register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
) -> None:
    """Do `register_pytree_node`, but replace an earlier registration, with a warning; two arguments are obsolete."""
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
            "`from_dumpable_context` instead.",
            FutureWarning,
        )
    with _lock:
        if cls in SUPPORTED_NODES:
            warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.")
        _put(
            NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn),
            SerializeNodeDef(cls, serialized_type_name, to_dumpable_context, from_dumpable_context),
        )


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Make instances of a class leaves again."""
    with _lock:
        del SUPPORTED_NODES[cls]
        name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
        SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name or "", None)
        CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let instances of a dataclass be containers whose children are its fields; fields that are None are left out.

    Other classes need `field_names`, the arguments of the constructor; `drop_field_names` are not children. Raises
    ValueError if both together are not the fields of a dataclass.
    """
    is_dataclass = dataclasses.is_dataclass(cls)
    if field_names is None:
        if not is_dataclass:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    elif is_dataclass:
        dropped = set(drop_field_names or ())
        fields = {field.name for field in dataclasses.fields(cls) if field.init} - dropped
        if missing := fields - set(field_names):
            raise ValueError(
                "field_names does not include all dataclass fields.\nMissing fields in `field_names`: "
                f"{missing}. If you want to include these fields in the pytree, please add them to `field_names`, "
                "otherwise please add them to `drop_field_names`.\n"
            )
        if extra := set(field_names) - fields:
            raise ValueError(f"field_names includes extra fields not in the dataclass.\nExtra fields: {extra}\n")
    if cls in SUPPORTED_NODES:
        return
    names = list(field_names)

    def flatten(value):
        given = [name for name in names if getattr(value, name) is not None]
        return [getattr(value, name) for name in given], [given, [name for name in names if name not in given]]

    def flatten_with_keys(value):
        children, context = flatten(value)
        return [(GetAttrKey(name), child) for name, child in zip(context[0], children)], context

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: its value."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Let instances of a class be part of the structure, without children.

    Raises TypeError if the class has no `__eq__` or `__hash__` of its own.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda children, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether a class was given to `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# -- named tuples and structure sequences --

_COUNTS = ("fields", "sequence_fields", "unnamed_fields")
_RESULTS = frozenset(kind for kind in vars(return_types).values() if isinstance(kind, type))  # of ops


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class was made by `namedtuple`, or derives from such a class."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and type(fields) is tuple
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object | type) -> bool:
    """Whether an object is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is one of Python's structure sequences, like `time.struct_time`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and (cls in _RESULTS or all(isinstance(getattr(cls, f"n_{name}", None), int) for name in _COUNTS))
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is one of Python's structure sequences."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """Whether an object is one of Python's structure sequences, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


# -- Python's containers --


def _with_places(children: Iterable[Any]) -> list[tuple[Any, Any]]:
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _list_flatten(d: list) -> tuple[list, Context]:
    return d, None


def _list_flatten_with_keys(d: list) -> tuple[list, Context]:
    return _with_places(d), None


def _list_unflatten(values: Iterable, context: Context) -> list:
    return list(values)


def _tuple_flatten(d: tuple) -> tuple[list, Context]:
    return list(d), None


def _tuple_flatten_with_keys(d: tuple) -> tuple[list, Context]:
    return _with_places(d), None


def _tuple_unflatten(values: Iterable, context: Context) -> tuple:
    return tuple(values)


def _dict_flatten(d: dict) -> tuple[list, Context]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple[list, Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    return dict(zip(context, values))


_ordereddict_flatten = _odict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _ordereddict_unflatten(values: Iterable, context: Context) -> OrderedDict:
    return OrderedDict(zip(context, values))


_odict_unflatten = _ordereddict_unflatten


def _defaultdict_flatten(d: defaultdict) -> tuple[list, Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: defaultdict) -> tuple[list, Context]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable, context: Context) -> defaultdict:
    return defaultdict(context[0], zip(context[1], values))


def _defaultdict_serialize(context: Context) -> dict[str, Any]:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_deserialize(found: dict[str, Any]) -> Context:
    from importlib import import_module  # rarely needed

    module = import_module(found["default_factory_module"])
    return [getattr(module, found["default_factory_name"]), found["dict_context"]]


def _deque_flatten(d: deque) -> tuple[list, Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque) -> tuple[list, Context]:
    return _with_places(d), d.maxlen


def _deque_unflatten(values: Iterable, context: Context) -> deque:
    return deque(values, maxlen=context)


def _namedtuple_flatten(d: Any) -> tuple[list, Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list, Context]:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d)], type(d)


def _namedtuple_unflatten(values: Iterable, context: Context) -> Any:
    return context(*values)


def _namedtuple_serialize(context: Context) -> str:
    known = SUPPORTED_SERIALIZED_TYPES.get(context)
    if known is None or known.serialized_type_name is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return known.serialized_type_name


def _namedtuple_deserialize(name: str) -> Context:
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Give a class of named tuples a name in files."""
    SUPPORTED_SERIALIZED_TYPES[cls] = SerializeNodeDef(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


for _node, _name in (
    (NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys), "builtins.tuple"),
    (NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys), "builtins.list"),
    (NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys), "builtins.dict"),
    (
        NodeDef(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys),
        "collections.OrderedDict",
    ),
    (NodeDef(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys), "collections.deque"),
    (NodeDef(Size, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys), "torch.Size"),
):
    _put(_node, SerializeNodeDef(_node.type, _name, None, None))
_put(
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys),
    SerializeNodeDef(defaultdict, "collections.defaultdict", _defaultdict_serialize, _defaultdict_deserialize),
)
_put(
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    SerializeNodeDef(namedtuple, "collections.namedtuple", _namedtuple_serialize, _namedtuple_deserialize),
)


def _result_unflatten(kind: Any) -> UnflattenFunc:
    return lambda values, context: kind(list(values))


for _kind in _RESULTS:
    _put(
        NodeDef(_kind, _tuple_flatten, _result_unflatten(_kind), _tuple_flatten_with_keys),
        SerializeNodeDef(_kind, None, None, None),
    )
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def _get_node_type(tree: PyTree) -> Any:
    """Return the kind of a container, `namedtuple` for all named tuples; of a leaf its type."""
    kind = type(tree)
    return namedtuple if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind
