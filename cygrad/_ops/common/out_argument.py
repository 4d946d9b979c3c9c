"""`out=` for composite functions: writing results into `out` without recording a gradient."""

from functools import cache

from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.inplace import check_outputs
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import registry, variant
from cygrad._core.graph.record import write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.base.checks.creation import out_requires_grad


@cache
def unrecorded(name):
    """Return a row without a derivative, for non-differentiable results and for `out=` of composite functions."""
    return variant(registry["tril"], name=name)  # any op whose node needs nothing else


def write_several(op, outs, arrays, inputs, args=None):
    """Write one result into each of the tensors `outs`, or into none of them if any cannot be written."""
    arrays = tuple(arrays)
    if not isinstance(outs, (tuple, list)):
        raise messages.wrong_keyword(op.name.partition(".")[0], "out", "tuple of Tensors", outs)
    if len(outs) != len(arrays):
        raise TypeError(f"expected tuple of {len(arrays)} elements but got {len(outs)}")
    outs = tuple(outs)
    check_outputs(op, outs, arrays, inputs)
    return tuple(write_into(op, out, array, inputs, args) for out, array in zip(outs, arrays))


def given_several(name, arrays, outs, *inputs):
    """Write the results of a composite function into one tensor each."""
    if any(map(is_recorded, inputs)):
        raise out_requires_grad(name)
    return write_several(unrecorded(name), outs, arrays, inputs)


def given(name, result, out, *inputs):
    """Return the result of a composite function, written into `out` if given."""
    if out is None:
        return result
    if not isinstance(out, Tensor):
        raise messages.wrong_keyword(name, "out", "Tensor", out)
    if is_recorded(result):
        raise out_requires_grad(name)
    return write_into(unrecorded(name), out, array_of(result), inputs or (result,), None)
