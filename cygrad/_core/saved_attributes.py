"""What a node tells of what it saved, under PyTorch's names: `_saved_self`, `_raw_saved_self`, `_saved_dim`, ..."""

from functools import reduce
from operator import or_

from cygrad._core import faults, messages
from cygrad._core.opdef import OUT0, OUT1, OUT2
from cygrad._core.saved_tensors import raw_saved
from cygrad._core.tensor import Tensor


def _mask(row):
    return reduce(or_, row.saved_masks)


def _saved_inputs(row):
    return [name for i, name in enumerate(row.inputs[:3]) if _mask(row) & 1 << i]


def _saved_outputs(row):
    return [name for name, bit in zip(row.outputs, (OUT0, OUT1, OUT2)) if _mask(row) & bit]


def names(row):
    """The attributes that nodes of this op have."""
    tensors = _saved_inputs(row) + _saved_outputs(row)
    return [
        *["_saved_" + name for name in (*tensors, *row.attributes)],
        *["_raw_saved_" + name for name in tensors],
    ]


def read(node, row, name):
    """The attribute of that name. Raises AttributeError if there is none, RuntimeError if its value was freed."""
    if name.startswith("_raw_saved_"):
        wanted = name.removeprefix("_raw_saved_")
        if wanted in _saved_outputs(row):
            return raw_saved(node, row.outputs.index(wanted) or 3)
        if wanted in _saved_inputs(row):
            return raw_saved(node, row.inputs.index(wanted))
    if name.startswith("_saved_"):
        wanted = name.removeprefix("_saved_")
        if wanted in _saved_outputs(row):
            return node.saved_output(row.outputs.index(wanted))
        if wanted in row.inputs[:3]:
            value = node.saved(row.inputs.index(wanted))
            if value is None and node._freed_by is not None:
                raise faults.freed_error(node, node._freed_by)
            if value is not None and not isinstance(value, (Tensor, tuple)):
                return messages.as_tensor(value)
            if value is not None or wanted in _saved_inputs(row):
                return value
        if wanted in row.attributes and node.args is not None:
            return node.args[row.attributes.index(wanted)]
        if wanted == "alpha" and wanted in row.attributes:
            return 1  # for which sums and differences keep no arguments
    raise AttributeError(f"'{row.node_name}' object has no attribute '{name}'")
