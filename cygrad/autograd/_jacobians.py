"""Jacobians as arrays, for `gradcheck`: by differences, by backward and by forward mode.

A Jacobian has a row for each element of the output and a column for each element of the input; entries are real, or
complex for a complex input. `part` is "" for a real output, else "real" or "imaginary": the part to differentiate.
"""

import numpy as np

from cygrad._core.engine.backward import grad
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.device.cupy_library import beside
from cygrad._library import later
from cygrad.autograd import forward_ad
from cygrad.autograd.function import Function

arrays = later("cygrad._kernels.gpu.base.arrays")  # which knows arrays on any device


class Stop(Function):
    """Passes a tensor through, but no gradient."""

    @staticmethod
    def forward(ctx, x):
        """Return a copy."""
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        """Return no gradient."""
        return None


def values_of(tensor):
    """Return the elements of a tensor as an array in main memory, which may be the tensor's own."""
    return arrays.in_memory(array_of(tensor))


def _part_of(array, part):
    return array.imag if part == "imaginary" else array.real


class Case:
    """A function, its inputs, and the step of differences."""

    def __init__(self, func, inputs, eps):
        self.func = func
        self.inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        self.eps = eps
        self.variables = [x for x in self.inputs if isinstance(x, Tensor) and x.requires_grad]
        self.positions = [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]

    def all_outputs(self):
        """Return the function's outputs as a tuple."""
        outputs = self.func(*self.inputs)
        return (outputs,) if not isinstance(outputs, (tuple, list)) else tuple(outputs)

    def outputs(self):
        """Return the outputs that require grad."""
        return tuple(out for out in self.all_outputs() if out.requires_grad)

    def parts(self, outputs):
        """Yield (part, index of the output) for everything to compare."""
        for i, out in enumerate(outputs):
            if array_of(out).dtype.kind == "c":
                yield "imaginary", i
                yield "real", i
            else:
                yield "", i

    def values(self):
        """Return the outputs that require grad, or all if there are none, as separate arrays."""
        outputs = self.all_outputs()
        return [np.array(values_of(out)) for out in outputs if out.requires_grad] or [
            np.array(values_of(out)) for out in outputs
        ]

    def moved(self, i, index, step):
        """Return the outputs after moving one element of variable `i` by `step`; the element is restored."""
        array = array_of(self.variables[i])
        former = array[index].copy()  # on a GPU, indexing gives a view
        array[index] = former + step
        try:
            return self.values()
        finally:
            array[index] = former

    def difference(self, i, index, step):
        """Return the derivatives of the outputs along one element, by a central difference."""
        after, before = self.moved(i, index, step), self.moved(i, index, -step)
        with np.errstate(all="ignore"):
            return [(a - b) / np.float64(2 * abs(step)) for a, b in zip(after, before, strict=True)]

    def numeric(self, outputs):
        """Return Jacobians by differences: for each part of an output a list with one per variable."""
        parts = list(self.parts(outputs))
        found = [[self._empty(outputs[o], x) for x in self.variables] for _, o in parts]
        for i, x in enumerate(self.variables):
            is_complex = array_of(x).dtype.kind == "c"
            for column, index in enumerate(np.ndindex(array_of(x).shape)):
                along = self.difference(i, index, self.eps)
                across = self.difference(i, index, 1j * self.eps) if is_complex else None
                for (part, o), row in zip(parts, found, strict=True):
                    row[i][:, column] = _part_of(along[o], part).reshape(-1)
                    if across is not None:
                        row[i][:, column] += 1j * _part_of(across[o], part).reshape(-1)
        return found

    def _empty(self, out, x):
        kind = np.complex128 if array_of(x).dtype.kind == "c" else np.float64
        return np.zeros((array_of(out).size, array_of(x).size), kind)

    # -- along a random direction ------------------------------------------------------------------------------

    def direction(self, i, rng):
        """Return random steps for the elements of variable `i`."""
        array = array_of(self.variables[i])
        steps = rng.random(array.shape)
        return steps + 1j * rng.random(array.shape) if array.dtype.kind == "c" else steps

    def along(self, o, part, i, direction):
        """Return the derivative of a part of an output along `direction`, a step for all elements of variable `i`."""
        array = array_of(self.variables[i])
        former = array.copy()
        values = []
        try:
            for step in (self.eps, -self.eps):
                array[...] = former + beside(step * direction, array)
                values.append(_part_of(self.values()[o], part).reshape(-1))
        finally:
            array[...] = former
        return (values[0] - values[1]) / (2 * self.eps)


def backward(case, o, part, rows=None):
    """Return the Jacobians of a part of output `o` by backward, one per variable; or their combination by `rows`."""
    out = case.outputs()[o]
    array = array_of(out)
    found = [case._empty(out, x) for x in case.variables]
    weights = np.eye(array.size) if rows is None else [rows]
    for k, weight in enumerate(weights):
        incoming = weight.reshape(array.shape).astype(array.dtype)
        if part == "imaginary":
            incoming = incoming * array.dtype.type(1j)
        grads = grad(out, case.variables, tensor_of(beside(incoming, array)), retain_graph=True, allow_unused=True)
        flat = [
            np.zeros(array_of(x).size) if g is None else values_of(g).reshape(-1)
            for g, x in zip(grads, case.variables, strict=True)
        ]
        if rows is not None:
            return flat
        for jacobian, row in zip(found, flat, strict=True):
            jacobian[k] = row
    return found


def forward(case, o, part, rows=None):
    """Return the Jacobians of a part of output `o` by forward mode, one per variable; or combine them by `rows`."""
    out = case.outputs()[o]
    found = [case._empty(out, x) for x in case.variables]
    for jacobian, x, position in zip(found, case.variables, case.positions, strict=True):
        array = array_of(x)
        for column, index in enumerate(np.ndindex(array.shape)):
            for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                tangent = np.zeros(array.shape, array.dtype)
                tangent[index] = unit
                pushed = _pushed(case, position, tensor_of(beside(tangent, array)), o)
                if pushed is not None:
                    jacobian[:, column] += unit * _part_of(pushed, part).reshape(-1)
    return found if rows is None else [rows @ jacobian for jacobian in found]


def _pushed(case, position, tangent, o):
    """Return the tangent of output `o`, as an array or None, for a tangent of the input at `position`."""
    with forward_ad.dual_level():
        inputs = list(case.inputs)
        inputs[position] = forward_ad.make_dual(inputs[position], tangent)
        found = forward_ad.unpack_dual(Case(case.func, inputs, case.eps).outputs()[o]).tangent
        return None if found is None else np.array(values_of(found))
