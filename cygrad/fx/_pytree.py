"""Graphs whose inputs are the leaves of nested arguments: dictionaries, lists and tuples of tensors."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cygrad.fx._codegen import CodeGen
from cygrad.fx.immutable_collections import immutable_dict, immutable_list
from cygrad.fx.proxy import Proxy
from cygrad.utils import _pytree as pytree

# The arguments of nodes are trees.
pytree.register_pytree_node(immutable_list, lambda items: (list(items), None), lambda items, _: immutable_list(items))
pytree.register_pytree_node(
    immutable_dict,
    lambda entries: (list(entries.values()), list(entries)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
)

_flatten_fns: dict[type, Callable[[Any, pytree.TreeSpec], list[Any]]] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable[[Any, pytree.TreeSpec], list[Any]],
    flatten_fn_exact_match_spec: Callable[[Any, pytree.TreeSpec], bool] | None = None,
) -> None:
    """Tell how to take an object of a class apart, or a proxy of one: `flatten_fn_spec(tree, spec)` lists its children.

    >>> from types import SimpleNamespace
    >>> from cygrad.fx._pytree import register_pytree_flatten_spec
    >>> register_pytree_flatten_spec(SimpleNamespace, lambda tree, spec: [tree.first, tree.second])
    """
    _flatten_fns[cls] = flatten_fn_spec


def tree_flatten_spec(tree: Any, spec: pytree.TreeSpec) -> list[Any]:
    """Return the leaves that `spec` has in `tree`, in which proxies may stand for containers.

    Raises ValueError if its containers are others.

    >>> from cygrad.fx._pytree import tree_flatten_spec
    >>> from cygrad.utils._pytree import tree_structure
    >>> tree_flatten_spec([{"a": 1, "b": (2, 3)}], tree_structure([{"a": 0, "b": (0, 0)}]))
    [1, 2, 3]
    """
    if spec.is_leaf():
        return [tree]
    if not isinstance(tree, Proxy) and pytree._get_node_type(tree) is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    return [leaf for part, child in _parts(tree, spec) for leaf in tree_flatten_spec(part, child)]


def _parts(tree: Any, spec: pytree.TreeSpec) -> Iterator[tuple[Any, pytree.TreeSpec]]:
    """Yield the children of a container, or of a proxy of one, each with its structure."""
    if spec.type in _flatten_fns:
        yield from zip(_flatten_fns[spec.type](tree, spec), spec.children(), strict=True)
        return
    if not isinstance(tree, (Proxy, dict, list, tuple)):
        yield from zip(pytree.SUPPORTED_NODES[spec.type].flatten_fn(tree)[0], spec.children(), strict=True)
        return
    if not isinstance(tree, Proxy) and len(tree) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(tree)}.")
    context: Any = spec.context
    keys = range(spec.num_children)
    if isinstance(spec.type, type) and issubclass(spec.type, dict):  # named tuples have no type of their own there
        keys = context if spec.type is not defaultdict else context[1]
    container: Any = tree
    for key, child in zip(keys, spec.children(), strict=True):
        yield container[key], child


class _PyTreeInfo(NamedTuple):
    """The names of a function's arguments, and what its arguments and its result are made of."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec


class _PyTreeCodeGen(CodeGen):
    """Writes functions that take nested arguments apart, and put a nested result together."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *args: Any) -> Any:
        """Return the leaves of the arguments of a call."""
        return tree_flatten_spec(list(args), self.pytree_info.in_spec)

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result of a call, from its leaves."""
        return pytree.tree_unflatten(list(outputs), self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the line `def forward(self, ...):`, and the statement that takes the arguments apart."""
        given = self.pytree_info.orig_args
        leaves = [text.split("=")[0].split(":")[0].strip() for text in free_vars]
        full = dict(zip(leaves, free_vars, strict=True))
        shown = list(given)
        for place in reversed(range(len(given))):  # the last ones may have defaults
            if "=" not in full.get(given[place], ""):
                break
            shown[place] = full[given[place]]
        head = super().gen_fn_def(shown, maybe_return_annotation, expanded_def=expanded_def)
        if not leaves:
            return head
        return f"{head}\n    {', '.join(leaves)}, = fx_pytree.tree_flatten_spec([{', '.join(given)}], self._in_spec)"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """Return the statement that returns the result."""
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return the modules that these statements need."""
        from cygrad.fx import _pytree  # this module, which is needed by its name

        return [("fx_pytree", _pytree), ("pytree", pytree)]
