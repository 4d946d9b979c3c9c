"""flip, roll and rot90: reorders the elements of a tensor. The results are copies; all ops are linear."""

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import IMAGE, IMAGE_GRADIENT, LINEAR, declare, publish
from cygrad._core.graph.record import apply1_args
from cygrad._kernels.cpu.shape import rearranging as kernels
from cygrad._ops.base.arguments import integer, integers, is_integer, require, variadic, wrap_dim, wrap_dims
from cygrad._ops.base.batching.rules import rule, shifting
from cygrad._ops.base.checks.tuples import of_tuple

# -- flip --


def flip_rule(n, g):
    return flip(g, n.args[0])


FLIP = declare("flip", flip_rule, flags=LINEAR, kernel=kernels.flip, attributes="dims", batching=shifting("D"))


def flip(input, *dims, **named):
    """Reverse the order of the elements along the dimensions `dims`; a copy. Saves nothing. Gradient: g, flipped back.

    Raises IndexError for a dimension out of range, RuntimeError for a repeated one.

    >>> import cygrad
    >>> cygrad.flip(cygrad.tensor([[1, 2], [3, 4]]), (0, 1))
    tensor([[4, 3],
            [2, 1]])
    """
    t = require(input, "flip")
    dims = wrap_dims(variadic(dims, named, "flip", "dims"), t.ndim)
    return apply1_args(FLIP, t, (dims if t.ndim else (),), None)


def fliplr(input):
    """Reverse the order of the elements along the second dimension. Raises RuntimeError for less than 2 dimensions.

    >>> import cygrad
    >>> cygrad.fliplr(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if require(input, "fliplr").ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input):
    """Reverse the order of the elements along the first dimension. Raises RuntimeError for a 0-dim tensor.

    >>> import cygrad
    >>> cygrad.flipud(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if require(input, "flipud").ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


# -- roll --


def roll_rule(n, g):
    shifts, dims = n.args
    return roll(g, [-shift for shift in shifts], dims)


ROLL = declare("roll", roll_rule, flags=LINEAR | IMAGE | IMAGE_GRADIENT, kernel=kernels.roll, attributes="shifts dims")


def roll(input, shifts, dims=()):
    """Shift elements by `shifts` positions along `dims`; elements shifted out at one end reenter at the other.

    Without `dims`, the flattened tensor is rolled. Saves nothing. Gradient: g, rolled back. Raises RuntimeError if the
    numbers of shifts and dimensions differ.

    >>> import cygrad
    >>> cygrad.roll(cygrad.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    t = require(input, "roll")
    shifts = integers((shifts,) if is_integer(shifts) else shifts, "roll", "shifts", 1)
    dims = () if dims is None else integers((dims,) if is_integer(dims) else dims, "roll", "dims", 2)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if dims and t.ndim == 0:
        raise messages.no_dimensions(dims[0])
    return apply1_args(ROLL, t, (shifts, tuple([wrap_dim(dim, t.ndim) for dim in dims])), None)


@rule("roll")
def _roll(call):
    shifts, dims = call.args
    if dims:
        return _along_dims(call)
    return call.shaped(call.shaped(call.full(call.inputs[0]), (-1,)).roll(shifts, 1), call.out.shape)


_along_dims = shifting(".D")


# -- rot90 --


def rot90_rule(n, g):
    k, dims = n.args
    return rot90(g, -k, dims)


ROT90 = declare("rot90", rot90_rule, flags=LINEAR, kernel=kernels.rot90, attributes="k dims", batching=shifting(".D"))


def rot90(input, k=1, dims=(0, 1)):
    """Rotate by `k` right angles in the plane of two dimensions, from the first towards the second; a copy.

    Gradient: g, rotated back. Raises RuntimeError unless `dims` names two different dimensions. Saves nothing.

    >>> import cygrad
    >>> cygrad.rot90(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    t = require(input, "rot90")
    count, plane = integer(k, "rot90", "k", 1), integers(dims, "rot90", "dims", 2)
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if t.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {t.ndim}")
    turned = tuple([wrap_dim(dim, t.ndim) for dim in plane])
    if turned[0] == turned[1]:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    return apply1_args(ROT90, t, (count, turned), None)


def reversed_(self):
    """Implement `reversed(tensor)`: flip along the first dimension; a 0-dim tensor is returned as it is."""
    return flip(self, 0) if self.ndim else self


composite = {"fliplr": 0, "flipud": 0}
methods = {"__reversed__": reversed_}
functions = publish(globals(), {"flip": of_tuple(flip, "dims")})
