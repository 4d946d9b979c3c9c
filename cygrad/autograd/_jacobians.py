"""Jacobians as arrays, for `gradcheck`: by differences, by backward and by forward mode.

A Jacobian has a row for each element of the output and a column for each element of the input; entries are real, or
complex for a complex input. `part` is "" for a real output, else "real" or "imaginary": the part to differentiate.
"""

import functools

import numpy as np

from cygrad._core.engine.backward import grad
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.device.cupy_library import beside
from cygrad._library import later
from cygrad.autograd import _movable, forward_ad
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
    return arrays.in_memory(array_of(tensor if _movable.is_dense(tensor) else tensor.detach().to_dense()))


def _part_of(array, part):
    return array.imag if part == "imaginary" else array.real


class Case:
    """A function, its inputs, and the step of differences.

    Differences move the elements of the variables: the inputs that require grad, or `variables` if given. With
    `masked`, only those that sparse tensors store.
    """

    def __init__(self, func, inputs, eps, masked=False, variables=None):
        self.func = func
        self.inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        self.eps = eps
        self.masked = masked
        self.positions = [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]
        self.variables = [self.inputs[i] for i in self.positions] if variables is None else list(variables)

    def all_outputs(self, inputs=None):
        """Return the function's outputs as a tuple."""
        outputs = self.func(*(self.inputs if inputs is None else inputs))
        return (outputs,) if not isinstance(outputs, (tuple, list)) else tuple(outputs)

    def outputs(self):
        """Return the outputs that require grad."""
        return tuple(out for out in self.all_outputs() if out.requires_grad)

    def parts(self, outputs):
        """Yield (part, index of the output) for everything to compare."""
        for i, out in enumerate(outputs):
            if out.dtype.is_complex:
                yield "imaginary", i
                yield "real", i
            else:
                yield "", i

    # -- differences -------------------------------------------------------------------------------------------

    @functools.cached_property
    def moved_inputs(self):
        """The inputs for differences: sparse ones whose every element may move store all of them."""
        if self.masked:
            return self.inputs
        return tuple(
            _movable.filled(x) if any(x is variable for variable in self.variables) else x for x in self.inputs
        )

    @functools.cached_property
    def movables(self):
        """What can be moved of each variable."""
        replaced = {id(x): moved for x, moved in zip(self.inputs, self.moved_inputs, strict=True)}
        return [_movable.Movable(replaced.get(id(x), x)) for x in self.variables]

    def values(self):
        """Return the outputs that require grad, or all if there are none, as separate arrays."""
        outputs = self.all_outputs(self.moved_inputs)
        return [np.array(values_of(out)) for out in outputs if out.requires_grad] or [
            np.array(values_of(out)) for out in outputs
        ]

    def moved(self, i, column, step):
        """Return the outputs after moving one element of variable `i` by `step`; the element is restored."""
        array, index = self.movables[i].values, self.movables[i].index_of(column)
        if index is None:  # an element that a sparse tensor does not store
            return self.values()
        former = array[index].copy()  # on a GPU, indexing gives a view
        array[index] = former + step
        try:
            return self.values()
        finally:
            array[index] = former

    def difference(self, i, column, step):
        """Return the derivatives of the outputs along one element, by a central difference."""
        after, before = self.moved(i, column, step), self.moved(i, column, -step)
        _check_same_kind(before, after, step, f"on index {self.movables[i].place_of(column)} ")
        with np.errstate(all="ignore"):
            return [(a - b) / np.float64(2 * abs(step)) for a, b in zip(after, before, strict=True)]

    def numeric(self, outputs):
        """Return Jacobians by differences: for each part of an output a list with one per variable."""
        parts = list(self.parts(outputs))
        found = [[self.empty(outputs[o], x) for x in self.variables] for _, o in parts]
        for i, x in enumerate(self.variables):
            for column in self.movables[i].columns():
                along = self.difference(i, column, self.eps)
                across = self.difference(i, column, 1j * self.eps) if x.dtype.is_complex else None
                for (part, o), row in zip(parts, found, strict=True):
                    row[i][:, column] = _part_of(along[o], part).reshape(-1)
                    if across is not None:
                        row[i][:, column] += 1j * _part_of(across[o], part).reshape(-1)
        return found

    def empty(self, out, x):
        """Return a Jacobian of zeros."""
        return np.zeros((out.numel(), x.numel()), np.complex128 if x.dtype.is_complex else np.float64)

    # -- along a random direction ------------------------------------------------------------------------------

    def direction(self, i, rng):
        """Return random steps for the elements of variable `i` that can be moved."""
        array = self.movables[i].values
        steps = rng.random(array.shape)
        return steps + 1j * rng.random(array.shape) if array.dtype.kind == "c" else steps

    def along(self, o, part, i, direction):
        """Return the derivative of a part of an output along `direction`, a step for all elements of variable `i`."""
        array = self.movables[i].values
        former = array.copy()
        found = []
        try:
            for step in (self.eps, -self.eps):
                array[...] = former + beside(step * direction, array)
                found.append(self.values())
        finally:
            array[...] = former
        _check_same_kind(found[1], found[0], self.eps)
        after, before = (_part_of(values[o], part).reshape(-1) for values in found)
        return (after - before) / (2 * self.eps)


def _check_same_kind(before, after, step, where=""):
    """Raise AssertionError if the shape or the dtype of an output depends on the values of the inputs."""
    for a, b in zip(before, after, strict=True):
        for name, plural, first, second in (
            ("shape", "shapes", list(a.shape), list(b.shape)),
            ("dtype", "dtypes", f"torch.{a.dtype}", f"torch.{b.dtype}"),
        ):
            if first != second:
                if name == "shape":
                    first, second = f"torch.Size({first})", f"torch.Size({second})"
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {name} when inputs are perturbed {where}by "
                    f"{step}, but got: {plural} {first} and {second}."
                )


# -- by backward -----------------------------------------------------------------------------------------------


def backward(case, o, part, rows=None):
    """Return the Jacobians of a part of output `o` by backward, one per variable; or their combination by `rows`."""
    return rows_of(case, case.outputs()[o], part, rows)


def rows_of(case, out, part, rows=None):
    """Return the same for an output that is computed already."""
    array = array_of(out)
    found = [case.empty(out, x) for x in case.variables] if rows is None else []
    weights = np.eye(array.size) if rows is None else [rows]
    for k, weight in enumerate(weights):
        incoming = weight.reshape(array.shape).astype(array.dtype)
        if part == "imaginary":
            incoming = incoming * array.dtype.type(1j)
        grads = grad(out, case.variables, tensor_of(beside(incoming, array)), retain_graph=True, allow_unused=True)
        flat = [
            np.zeros(x.numel()) if g is None else values_of(g).reshape(-1)
            for g, x in zip(grads, case.variables, strict=True)
        ]
        if rows is not None:
            return flat
        for jacobian, row in zip(found, flat, strict=True):
            jacobian[k] = row
    return found


# -- by forward mode -------------------------------------------------------------------------------------------


class Pushed:
    """Derivatives by forward mode of the outputs of a case that require grad, all from the same calls."""

    def __init__(self, case):
        outputs = case.all_outputs()
        self.case = case
        self.chosen = [k for k, out in enumerate(outputs) if out.requires_grad]
        self.outputs = [outputs[k] for k in self.chosen]
        self.in_directions = None

    def along(self, i, tangent):
        """Return the derivatives of the outputs along a tangent of variable `i`, an array: arrays, or None for zero."""
        case, array = self.case, array_of(self.case.variables[i])
        with forward_ad.dual_level():
            inputs = list(case.inputs)
            for k, position in enumerate(case.positions):
                x = case.inputs[position].detach()
                along = tensor_of(beside(tangent, array)) if k == i else x.new_zeros(x.shape)
                inputs[position] = forward_ad.make_dual(x, along)
            outputs = case.all_outputs(inputs)
            pushed = [forward_ad.unpack_dual(outputs[k]).tangent for k in self.chosen]
            return [None if found is None else np.array(values_of(found)) for found in pushed]

    @functools.cached_property
    def columns(self):
        """The derivatives along every element: for each variable a list of (column, factor, derivatives)."""
        found = []
        for i, x in enumerate(self.case.variables):
            array = array_of(x)
            pushed = []
            for column, index in enumerate(np.ndindex(array.shape)):
                for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                    tangent = np.zeros(array.shape, array.dtype)
                    tangent[index] = unit
                    pushed.append((column, unit, self.along(i, tangent)))
            found.append(pushed)
        return found

    def jacobians(self, o, part):
        """Return the Jacobians of a part of output `o`, one per variable."""
        found = [self.case.empty(self.outputs[o], x) for x in self.case.variables]
        for jacobian, pushed in zip(found, self.columns, strict=True):
            for column, unit, derivatives in pushed:
                if derivatives[o] is not None:
                    jacobian[:, column] += unit * _part_of(derivatives[o], part).reshape(-1)
        return found

    def combined(self, o, part, directions, rows):
        """Return, for each variable, the derivative of a part of output `o` along its direction, combined by `rows`."""
        if self.in_directions is None:
            self.in_directions = [
                self.along(i, direction.astype(array_of(x).dtype))
                for i, (direction, x) in enumerate(zip(directions, self.case.variables, strict=True))
            ]
        derivatives = [of_outputs[o] for of_outputs in self.in_directions]
        return [0.0 if d is None else float(rows @ _part_of(d, part).reshape(-1)) for d in derivatives]
