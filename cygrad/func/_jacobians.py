"""Jacobians and Hessians of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cygrad._core.engine.backward import grad as gradients
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import call_inside
from cygrad._ops.base.slicing import cat
from cygrad._ops.creation.ranges import eye
from cygrad.autograd.grad_mode import enable_grad, is_grad_enabled
from cygrad.func._batching import vmap
from cygrad.func.transforms import (
    checked_argnums,
    cut,
    cut_all,
    is_followed,
    linearized,
    outputs_of,
    reaches_outside,
    split_aux,
    started,
)
from cygrad.func.trees import flatten, rebuild


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func`, by one backward pass for all elements of the output.

    J[i, j] is the derivative of element i of the output with respect to element j of the input.

    `chunk_size`: how many elements to process at once. `_preallocate_and_copy` has no effect: chunks are always joined
    at the end.

    The result has the structure of the output. Each leaf is replaced by a tree like the argument at `argnums`, or a
    tuple of those, with tensors of shape `output.shape + input.shape`. With `has_aux`, `func` returns (output, aux),
    and the result is (Jacobian, aux).

    >>> import cygrad
    >>> cygrad.func.jacrev(lambda x: x**2)(cygrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        recorded = is_grad_enabled()
        with enable_grad():
            own, args = started(args, argnums)
            leaves = flatten(own)[0]
            _check_real(leaves, "jacrev", "inputs")
            output, aux = split_aux(call_inside(func, *args, **kwargs), has_aux, "vjp(f, *primals)")
            outputs = outputs_of(output)
            _check_real(outputs, "jacrev", "outputs")
            outside = recorded and reaches_outside(outputs, leaves)
            blocks = [_rows(out, leaves, is_followed(outside, recorded), chunk_size) for out in outputs]
        for leaf in leaves:
            if leaf.is_leaf:
                leaf.requires_grad_(False)
        if not outside:
            blocks, aux = [[cut(block, leaves) for block in row] for row in blocks], cut_all(aux, leaves)
        found = rebuild(output, [rebuild(own, row) for row in blocks])
        return (found, aux) if has_aux else found

    return wrapper


def _check_real(tensors, name, word):
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {word} to be real but received complex tensor at flattened input idx: {i}"
            )


def _rows(output, inputs, followed, chunk_size):
    """Return the Jacobian of one output with respect to each input, `chunk_size` output elements at a time."""
    if not output.requires_grad or not output.numel():
        return [x.new_zeros(output.shape + x.shape) for x in inputs]
    keep = {"retain_graph": True, "create_graph": followed, "allow_unused": True, "is_grads_batched": True}
    identity = eye(output.numel(), dtype=output.dtype, device=output.device)
    units = identity.view(-1, *output.shape).split(chunk_size or output.numel())
    parts = list(zip(*[gradients(output, inputs, part, **keep) for part in units], strict=True))
    shapes = [output.shape + x.shape for x in inputs]
    return [
        x.new_zeros(shape) if part[0] is None else cat(part).reshape(shape)
        for x, shape, part in zip(inputs, shapes, parts, strict=True)
    ]


def jacfwd(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` as `jacrev` does, by a pass for all elements of an input.

    >>> import cygrad
    >>> cygrad.func.jacfwd(lambda x: x.prod())(cygrad.tensor([2.0, 3.0]))
    tensor([3., 2.])
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        places = checked_argnums(argnums, len(args))
        chosen = tuple(args[place] for place in places)
        kept = []

        def of_chosen(*values):
            filled = list(args)
            for place, value in zip(places, values, strict=True):
                filled[place] = value
            output, aux = split_aux(call_inside(func, *filled, **kwargs), has_aux, "jvp(f, primals, tangents)")
            kept.append((aux, flatten(values)[0]))
            return output

        inputs = flatten(chosen)[0]
        _check_real(inputs, "jacfwd", "inputs")
        output, product = linearized(of_chosen, chosen, "jvp(f, primals, tangents)")
        _check_real(flatten(output)[0], "jacfwd", "outputs")
        blocks = [_columns(product, chosen, inputs, i, output, randomness) for i in range(len(inputs))]
        trees = [rebuild(chosen, row) for row in zip(*blocks, strict=True)]
        found = rebuild(output, trees if isinstance(argnums, tuple) else [tree[0] for tree in trees])
        return (found, cut_all(*kept[0])) if has_aux else found

    return wrapper


def _columns(product, primals, inputs, i, output, randomness):
    """Return the Jacobian of each output with respect to input `i`, by its products with all unit vectors at once."""
    zeros = [x.new_zeros(x.shape) for x in inputs]
    x, outputs = inputs[i], flatten(output)[0]
    if not x.numel():
        return [out.new_zeros(out.shape + x.shape) for out in outputs]

    def column(v):
        return flatten(product(*rebuild(primals, [*zeros[:i], v, *zeros[i + 1 :]])))[0]

    found = vmap(column, randomness=randomness)(eye(x.numel(), dtype=x.dtype, device=x.device).view(-1, *x.shape))
    return [f.movedim(0, -1).reshape(out.shape + x.shape) for f, out in zip(found, outputs, strict=True)]


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `func`: `jacfwd` of `jacrev`.

    H[i, j] is the derivative of the output with respect to elements i and j of the input.

    >>> import cygrad
    >>> cygrad.func.hessian(lambda x: (x**3).sum())(cygrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
