"""Attributes of nodes for saved values, under PyTorch's names: `_saved_self`, `_raw_saved_self`, `_saved_dim`, ..."""

from functools import reduce
from operator import or_

from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._core.graph.opdef import OUT0, OUT1, OUT2
from cygrad._core.graph.tensor import Tensor
from cygrad._core.saved.derived_attributes import derived
from cygrad._core.saved.saved_tensor_hooks import raw_saved


def _mask(row):
    return reduce(or_, row.saved_masks)


def _saved_inputs(node, row):
    """Return inputs that the row saves, and values its entry point put into an input's slot (an index, a target)."""
    mask = _mask(row)
    kept = [mask & 1 << i or node._place(i)[0] is not None and not (i and mask & OUT0 << i) for i in range(3)]
    return [name for name, is_kept in zip(row.inputs, kept) if is_kept and name != "_"]


def _saved_outputs(row):
    return [name for name, bit in zip(row.outputs, (OUT0, OUT1, OUT2)) if _mask(row) & bit]


def names(node, row):
    """Return the names of this node's saved attributes."""
    tensors = _saved_inputs(node, row) + _saved_outputs(row)
    others = [name for name in (*row.attributes, *_found(node, row)) if name not in tensors]
    return [
        *["_saved_" + name for name in dict.fromkeys([*tensors, *others]) if name != "_"],
        *["_raw_saved_" + name for name in tensors],
    ]


def _found(node, row):
    """Return the derived attributes that are available for this node."""
    found = []
    for name, function in derived(node, row).items():
        try:
            function()
        except (AttributeError, IndexError, TypeError, ValueError):  # the node has not kept what they are derived from
            continue
        found.append(name)
    return found


def read(node, row, name):
    """Return the attribute of that name. Raises AttributeError if there is none, RuntimeError if it was freed."""
    if name.startswith("_raw_saved_"):
        wanted = name.removeprefix("_raw_saved_")
        if wanted in _saved_outputs(row):
            return raw_saved(node, row.outputs.index(wanted) or 3)
        if wanted in _saved_inputs(node, row):
            return raw_saved(node, row.inputs.index(wanted))
    if name.startswith("_saved_"):
        wanted = name.removeprefix("_saved_")
        if wanted in _saved_outputs(row):
            return node.saved_output(row.outputs.index(wanted))
        if wanted in row.inputs[:3]:
            value = node.saved(row.inputs.index(wanted))
            if value is None and node._freed_by is not None:
                raise graph_errors.freed_error(node, node._freed_by)
            if value is not None and not isinstance(value, (Tensor, tuple)):
                return messages.as_tensor(value)
            if value is not None or wanted in _saved_inputs(node, row):
                return value
        if wanted != "_" and wanted in row.attributes and node.args is not None:
            return node.args[row.attributes.index(wanted)]
        if wanted == "alpha" and wanted in row.attributes:
            return 1  # the default, for which sums and differences keep no arguments
        if wanted in _found(node, row):
            return derived(node, row)[wanted]()
    raise AttributeError(f"'{row.node_name}' object has no attribute '{name}'")
