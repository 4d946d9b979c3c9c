"""Whole Jacobians and Hessians of functions."""

import functools

from cygrad._ops.stacking import stack
from cygrad.autograd.functional import unit_vectors
from cygrad.autograd.grad_mode import enable_grad, is_grad_enabled
from cygrad.func.transforms import (
    checked_argnums,
    cut,
    derivative,
    linearize,
    reaches_outside,
    split_aux,
    started,
    tensors_of,
)
from cygrad.func.trees import flatten, mapped, rebuild


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that gives the Jacobian of `func`, by a backward pass for each element of the output.

    For each leaf of the output, in its place, there is a tree like the argument at `argnums`, or a tuple of those, with
    tensors of shape `output.shape + input.shape`. With `has_aux`, `func` gives (output, aux), and the result is
    (Jacobian, aux).

    >>> import cygrad
    >>> cygrad.func.jacrev(lambda x: x**2)(cygrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        recorded = is_grad_enabled()
        with enable_grad():
            own, args = started(args, argnums)
            output, aux = split_aux(func(*args, **kwargs), has_aux, "vjp(f, *primals)")
            outputs, leaves = tensors_of(output, "vjp(f, *primals)"), flatten(own)[0]
            outside = recorded and reaches_outside(outputs, leaves)
            blocks = [_rows(out, leaves, outside) for out in outputs]
        for leaf in leaves:
            if leaf.is_leaf:
                leaf.requires_grad_(False)
        if not outside:
            blocks, aux = [[cut(block) for block in row] for row in blocks], mapped(cut, aux)
        found = rebuild(output, [rebuild(own, row) for row in blocks])
        return (found, aux) if has_aux else found

    return wrapper


def _rows(output, inputs, outside):
    rows = [derivative((output,), inputs, (v,), outside) for v in unit_vectors(output)]
    return [_block([row[i] for row in rows], x, 0, output.shape + x.shape) for i, x in enumerate(inputs)]


def _block(parts, like, dim, shape):
    """Rows or columns of a Jacobian as one tensor; what is None is zero."""
    if all(part is None for part in parts):
        return like.new_zeros(shape)
    parts = [like.new_zeros(like.shape) if part is None else part for part in parts]
    return stack(parts, dim).view(shape)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of `func` as `jacrev` does, by a pass for each element of the input.

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
            output, aux = split_aux(func(*filled, **kwargs), has_aux, "jacfwd(f)(*args)")
            kept.append(aux)
            return output

        output, product = linearize(of_chosen, *chosen)
        inputs = flatten(chosen)[0]
        blocks = [_columns(product, chosen, inputs, i, output) for i in range(len(inputs))]
        trees = [rebuild(chosen, row) for row in zip(*blocks, strict=True)]
        found = rebuild(output, trees if isinstance(argnums, tuple) else [tree[0] for tree in trees])
        return (found, mapped(cut, kept[0])) if has_aux else found

    return wrapper


def _columns(product, primals, inputs, i, output):
    """The Jacobian of each output with respect to input `i`."""
    zeros = [x.new_zeros(x.shape) for x in inputs]
    found = []
    for v in unit_vectors(inputs[i]):
        found.append(flatten(product(*rebuild(primals, [*zeros[:i], v, *zeros[i + 1 :]])))[0])
    return [
        _block([column[k] for column in found], out, -1, out.shape + inputs[i].shape)
        for k, out in enumerate(flatten(output)[0])
    ]


def hessian(func, argnums=0):
    """A function that gives the Hessian of `func`: `jacfwd` of `jacrev`.

    >>> import cygrad
    >>> cygrad.func.hessian(lambda x: (x**3).sum())(cygrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
