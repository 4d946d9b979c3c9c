"""Attributes of nodes, under PyTorch's names, that are derived from what the node stores.

They are computed on access: from the arguments that the rule needs, from the shapes of incoming and outgoing gradients,
and from saved tensors. Nodes store nothing extra for them. Rows state them in `derived=`, as {name: how}:
    a function          is called with the node
    a tuple             is the path to an argument of the node: (2, 0) is `node.args[2][0]`
    ...                 the name tells: "self_sym_sizes" is the shape of the input "self", likewise `_sym_strides`,
                        `_sym_numel`, `_sym_argsize_0` and `_sym_argsize_minus_1`
    any other value     is the attribute
or as a string of names of the third kind.
"""

import re
from functools import partial
from math import prod

from cygrad._core.graph.opdef import facts_of
from cygrad._core.graph.tensor import Tensor

_OF_INPUT = re.compile(r"(\w+)_sym_(sizes|strides|numel|argsize)(_minus)?_?(\d*)")


def stated(name):
    """Return {name: how} of the attributes that rows state for nodes of this name."""
    found = facts_of["derived"].get(name, {})
    return dict.fromkeys(found.split(), ...) if isinstance(found, str) else found


def derived(node, row):
    """Return {name: function} of the attributes derivable for this node; empty once its values are freed."""
    if node.args is None and node._freed_by is not None:
        return {}
    return {name: partial(_value, node, row, name, how) for name, how in stated(row.node_name).items()}


def _value(node, row, name, how):
    if callable(how):
        return how(node)
    if isinstance(how, tuple):
        value = node.args
        for place in how:
            value = value[place]
        return value
    return _of_input(node, row, name) if how is ... else how


def _of_input(node, row, name):
    """Return what the name of the attribute tells: the shape of an input, ..."""
    match = _OF_INPUT.fullmatch(name)
    if match is None:
        raise NameError(f"the name {name!r} does not tell how to derive the attribute")
    wanted, what, minus, dim = match.groups()
    i = 0 if wanted == "self" else row.inputs.index(wanted)  # losses that end in a mean may have other names
    if what == "strides":
        return _strides(node, i)
    shape = _shape(node, i)
    if what == "argsize":
        return shape[-int(dim) if minus else int(dim)]
    return prod(shape) if what == "numel" else shape


def _shape(node, i):
    """Return the shape of an input, taken from its gradient."""
    target, number = node.next_functions[i]
    if target is None:
        return _saved(node, i).shape
    leaf = getattr(target, "variable", None)
    return tuple(target._input_metadata[number].shape if leaf is None else leaf.shape)


def _strides(node, i):
    """Return the strides of a saved input; they are meaningless if it is empty."""
    value = _saved(node, i)
    if not value.numel():
        raise AttributeError(f"'{node.name()}' object saved no elements of its input {i}")
    return value.stride()


def _saved(node, i):
    value = node.saved(i)
    if not isinstance(value, Tensor):
        raise AttributeError(f"'{node.name()}' object saved nothing of its input {i}")
    return value
