"""Derivatives of functions: Jacobian and Hessian products, and whole Jacobians and Hessians.

`func` takes tensors and returns a tensor or a tuple of tensors; `inputs` is likewise a tensor or a tuple. With
`create_graph` the results can be differentiated again. In `strict` mode an output that does not depend on an input is
an error; otherwise its derivative is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad._core.engine.backward import grad
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import check_no_transform
from cygrad._ops.creation.ranges import eye
from cygrad._ops.shape.stacking import stack
from cygrad.autograd._functional_checks import (
    check_not_vectorized,
    check_strategy,
    checked_vector,
    one_element,
    require_dependence,
    require_dependence_of_row,
    require_gradients,
    require_real,
)
from cygrad.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


# -- inputs and outputs --


def _tuple_of(value, what, function):
    """Return (whether `value` is a tuple, its tensors)."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for i, each in enumerate(values):
        if not isinstance(each, Tensor):
            place = f"the value at index {i}" if is_tuple else f"the given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {place} has type "
                f"{type(each)}."
            )
    return is_tuple, values


def _starts(inputs, create_graph, need_graph=True):
    """Return the tensors on which the function is evaluated, without earlier history unless a graph is wanted."""
    check_no_transform()
    if not create_graph:
        return tuple(x.detach().requires_grad_(need_graph) for x in inputs)
    return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs)


def _result(tensors, is_tuple, create_graph):
    """Return one tensor or a tuple to the user, without a graph unless it is wanted."""
    if not create_graph:
        tensors = tuple(t.detach() for t in tensors)
    return tensors if is_tuple else tensors[0]


def _call(func, inputs, function, strict):
    """Return (whether `func` returned a tuple, its outputs)."""
    outputs = func(*inputs)
    is_tuple, outputs = _tuple_of(outputs, "outputs of the user-provided function", function)
    if strict:
        require_gradients(outputs, "outputs")
    return is_tuple, outputs


def _single_output(func, inputs, function, strict):
    """Return the one-element output of a function whose Hessian is computed."""
    is_tuple, outputs = _call(func, inputs, function, strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return outputs


def _vector(v, targets, is_tuple, function, create_graph, whose):
    """Return the tensors of `v`, one for each of the targets; ones if `v` is None."""
    if v is None:
        one_element(targets, whose)
        require_real(targets)
        return (targets[0].new_ones(targets[0].shape),)
    v = _starts(_tuple_of(v, "v", function)[1], create_graph, need_graph=False)
    checked_vector(v, targets, is_tuple)
    return v


def _gradients(outputs, inputs, vectors=None, create_graph=False):
    """Return `grad` of the outputs that require grad; None for inputs that none of them depends on."""
    if len(outputs) == 1 and outputs[0] is not None and outputs[0].requires_grad:
        return grad(outputs, inputs, vectors, create_graph=create_graph, allow_unused=True)
    vectors = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(out, v) for out, v in zip(outputs, vectors, strict=True) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, vectors = zip(*pairs, strict=True)
    return grad(roots, inputs, vectors, create_graph=create_graph, allow_unused=True)


def _filled(grads, references, strict, create_graph, stage):
    """Replace None by zeros, or raise in strict mode."""
    found = []
    for i, (gradient, reference) in enumerate(zip(grads, references, strict=True)):
        if strict:
            require_dependence(gradient, i, stage, create_graph)
        found.append(reference.new_zeros(reference.shape) if gradient is None else gradient)
    return tuple(found)


def _dummies(tensors):
    """Return zeros like the tensors that require grad, to transpose functions that are linear in them."""
    return tuple(t.detach().new_zeros(t.shape, requires_grad=True) for t in tensors)


# -- products with the Jacobian --


def vjp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return (outputs, v^T J): the product of a vector and the Jacobian of `func` at `inputs`.

    `v` has the shapes of the outputs; it may be omitted for an output with one element. Runs one backward pass.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> cygrad.autograd.functional.vjp(lambda x: x**2, x, cygrad.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        is_tuple, inputs = _tuple_of(inputs, "inputs", "vjp")
        inputs = _starts(inputs, create_graph)
        is_outputs_tuple, outputs = _call(func, inputs, "vjp", strict)
        v = _vector(v, outputs, is_outputs_tuple, "vjp", create_graph, "the user-provided function returns")
    found = _gradients(outputs, inputs, v, create_graph)
    found = _filled(found, inputs, strict, create_graph, "back")
    return _result(outputs, is_outputs_tuple, create_graph), _result(found, is_tuple, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return (outputs, J v): the product of the Jacobian of `func` at `inputs` and a vector.

    `v` has the shapes of the inputs; it may be omitted for an input with one element. Runs two backward passes.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> cygrad.autograd.functional.jvp(lambda x: x.prod(), x, cygrad.tensor([1.0, 0.0]))
    (tensor(2.), tensor(2.))
    """
    with enable_grad():
        is_tuple, inputs, v = _inputs_and_vector(inputs, v, "jvp", create_graph)
        is_outputs_tuple, outputs = _call(func, inputs, "jvp", strict)
    found = _transposed_twice(outputs, inputs, _dummies(outputs), v, strict, create_graph, "back", "grad_inputs")
    return _result(outputs, is_outputs_tuple, create_graph), _result(found, is_outputs_tuple, create_graph)


def _transposed_twice(outputs, inputs, u, v, strict, create_graph, stage, product):
    """Return `J v`, the product of the Jacobian of `outputs` with respect to `inputs` and a vector.

    `u^T J` is linear in `u`, so its gradient with respect to `u`, for `v`, is `J v`. Errors of strict mode name the
    `stage` of the computation and the `product` `u^T J`.
    """
    with enable_grad():
        transposed = _gradients(outputs, inputs, u, create_graph=True)
        if strict:
            _filled(transposed, inputs, strict, False, stage)
            require_gradients(transposed, product)
    found = _gradients(transposed, u, v, create_graph)
    return _filled(found, u, strict, create_graph, f"{stage}_trick")


def _inputs_and_vector(inputs, v, function, create_graph):
    """Return (whether the inputs are a tuple, the inputs to evaluate at, the vector to multiply by)."""
    is_tuple, inputs = _tuple_of(inputs, "inputs", function)
    inputs = _starts(inputs, create_graph)
    v = _vector(v, inputs, is_tuple, function, create_graph, "the input to the user-provided function is")
    return is_tuple, inputs, v


# -- products with the Hessian --


def vhp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return (output, v^T H): the product of a vector and the Hessian of `func` at `inputs`.

    `func` returns one element; `v` has the shapes of the inputs, and may be omitted for an input with one element.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> cygrad.autograd.functional.vhp(lambda x: (x**3).sum(), x, cygrad.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        is_tuple, inputs, v = _inputs_and_vector(inputs, v, "vhp", create_graph)
        outputs, slopes = _slopes(func, inputs, "vhp", strict)
    found = _gradients(slopes, inputs, v, create_graph)
    found = _filled(found, inputs, strict, create_graph, "double_back")
    return _result(outputs, False, create_graph), _result(found, is_tuple, create_graph)


def hvp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return (output, H v): the product of the Hessian of `func` at `inputs` and a vector.

    Like `vhp`, which is faster and gives the same result if the second derivatives are continuous.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> cygrad.autograd.functional.hvp(lambda x: (x**3).sum(), x, cygrad.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        is_tuple, inputs, v = _inputs_and_vector(inputs, v, "hvp", create_graph)
        outputs, slopes = _slopes(func, inputs, "hvp", strict)
    found = _transposed_twice(slopes, inputs, _dummies(inputs), v, strict, create_graph, "double_back", "hessian")
    return _result(outputs, False, create_graph), _result(found, is_tuple, create_graph)


def _slopes(func, inputs, function, strict):
    """Return the output, and its gradients as differentiable functions of the inputs."""
    outputs = _single_output(func, inputs, function, strict)
    slopes = _gradients(outputs, inputs, create_graph=True)
    if strict:
        _filled(slopes, inputs, strict, False, "back")
        require_gradients(slopes, "jacobian")
    return outputs, slopes


# -- whole matrices --


def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `func` at `inputs`, of shape `output.shape + input.shape`.

    J[i, j] is the derivative of element i of the output with respect to element j of the input.

    For tuples of inputs or outputs, returns a tuple of tensors; for both, a tuple of tuples: `result[i][j]` is the
    Jacobian of output i with respect to input j. "reverse-mode" runs one pass per output element, or with `vectorize` a
    single one for all of them (`is_grads_batched`); "forward-mode", only with `vectorize`, runs a single pass for all
    input elements.

    >>> import cygrad
    >>> cygrad.autograd.functional.jacobian(lambda x: x**2, cygrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_strategy(strategy, vectorize, create_graph, strict)
    if strategy == "forward-mode":
        return _by_columns(func, inputs)
    with enable_grad():
        is_tuple, inputs = _tuple_of(inputs, "inputs", "jacobian")
        inputs = _starts(inputs, create_graph)
        is_outputs_tuple, outputs = _call(func, inputs, "jacobian", strict)
        check_not_vectorized(vectorize, strict)
        if not vectorize:
            require_real(outputs)
        if vectorize:
            rows = [_rows_at_once(out, inputs, create_graph) for out in outputs]
        else:
            rows = [_rows(out, i, inputs, create_graph, strict) for i, out in enumerate(outputs)]
    blocks = tuple(_result(row, is_tuple, create_graph) for row in rows)
    return blocks if is_outputs_tuple else blocks[0]


def gradients_of_elements(output, inputs, create_graph):
    """Return the gradients of each output element for the inputs, in one pass: stacked along dimension 0, or None."""
    if not output.requires_grad or not output.numel():
        return [None] * len(inputs)
    units = eye(output.numel(), dtype=output.dtype, device=output.device).view(output.numel(), *output.shape)
    keep = {"retain_graph": True, "create_graph": create_graph, "allow_unused": True}
    return grad(output, inputs, units, is_grads_batched=True, **keep)


def _rows_at_once(output, inputs, create_graph):
    """Return the Jacobian of one output with respect to each input."""
    pairs = zip(gradients_of_elements(output, inputs, create_graph), inputs, strict=True)
    shapes = [output.shape + x.shape for x in inputs]
    return tuple(
        x.new_zeros(shape) if found is None else found.reshape(shape)
        for (found, x), shape in zip(pairs, shapes, strict=True)
    )


def _rows(output, index, inputs, create_graph, strict):
    """Return the Jacobian of one output with respect to each input, row by row."""
    rows = []
    for v in unit_vectors(output) if output.requires_grad else ():
        found = grad(output, inputs, v, retain_graph=True, create_graph=create_graph, allow_unused=True)
        if strict:
            require_dependence_of_row(found, index, create_graph)
        rows.append(found)
    blocks = []
    for i, x in enumerate(inputs):
        column = [row[i] for row in rows]
        if any(each is not None for each in column):
            column = [x.new_zeros(x.shape) if each is None else each for each in column]
            blocks.append(stack(column).view(output.shape + x.shape))
        else:
            blocks.append(x.new_zeros(output.shape + x.shape))
    return tuple(blocks)


def _construct_standard_basis_for(tensors, tensor_numels):
    """Return the vectors of the standard basis of all tensors together: for each tensor a matrix of its parts.

    `tensor_numels` holds the numbers of elements; the matrix has a row for each element of any of the tensors.
    """
    if len(tensors) != len(tensor_numels) or not tensors:
        raise RuntimeError(f"expected as many numbers as tensors, and at least one; got {len(tensor_numels)}")
    total, start, parts = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        part = tensor.detach().new_zeros((total, count))
        part.diagonal(-start).fill_(1)
        parts.append(part)
        start += count
    return tuple(parts)


def unit_vectors(tensor):
    """Yield all tensors shaped like `tensor` with a single 1, in order."""
    zeros = tensor.detach().new_zeros(tensor.shape)
    for i in range(zeros.numel()):
        unit = zeros.clone()  # by ops, so that a class of tensors without memory of its own can compute it
        unit.view(-1)[i] = 1
        yield unit


def _by_columns(func, inputs):
    """Compute the Jacobian by columns: `u^T J` is computed once, and differentiated for each unit vector."""
    with enable_grad():
        is_tuple, inputs = _tuple_of(inputs, "inputs", "jacobian")
        inputs = _starts(inputs, False)
        is_outputs_tuple, outputs = _call(func, inputs, "jacobian", False)
        u = _dummies(outputs)
        transposed = _gradients(outputs, inputs, u, create_graph=True)
    by_input = [_columns(product, x, u) for product, x in zip(transposed, inputs, strict=True)]
    blocks = tuple(_result(row, is_tuple, False) for row in zip(*by_input, strict=True))
    return blocks if is_outputs_tuple else blocks[0]


def _columns(product, input, u):
    """Return the Jacobian of each output with respect to one input; `product` is `u^T J`."""
    found = [None] * len(u) if product is None else gradients_of_elements(product, u, False)
    shapes = [out.shape + input.shape for out in u]
    return [
        out.new_zeros(shape) if columns is None else columns.movedim(0, -1).reshape(shape)
        for out, shape, columns in zip(u, shapes, found, strict=True)
    ]


def hessian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of `func`, which returns one element, at `inputs`: of shape `input.shape + input.shape`.

    H[i, j] is the second derivative of the output with respect to elements i and j of the input.

    For a tuple of inputs, returns a tuple of tuples: `result[i][j]` has the derivatives with respect to inputs i and j.

    >>> import cygrad
    >>> cygrad.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], cygrad.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    is_tuple, inputs = _tuple_of(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def slopes(*inputs):
        if outer_jacobian_strategy == "forward-mode":  # it does not request gradients itself
            inputs = tuple(x.requires_grad_() if x.is_leaf else x for x in inputs)
        outputs = _single_output(func, inputs, "hessian", strict)
        found = _gradients(outputs, inputs, create_graph=True)
        found = _filled(found, inputs, False, True, "back")
        if strict:
            require_gradients(found, "jacobian")
        return found

    found = jacobian(
        slopes, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )
    return found if is_tuple else found[0][0]
