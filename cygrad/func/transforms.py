"""Gradients of functions, and products with their Jacobians.

A transform evaluates its function on its own tensors, which require grad. Its results have a history only if something
outside requires grad: an input, or another tensor that the function uses. Therefore transforms nest in one another, in
`autograd`, and in forward mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cygrad._core.engine.backward import grad as gradients
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import strided
from cygrad._core.transforms import forward_mode as forward
from cygrad._ops.random.generator import Draws
from cygrad.autograd.grad_mode import enable_grad, is_grad_enabled, switches
from cygrad.autograd.graph import copies_of_saved
from cygrad.errors import ChangedInPlaceError
from cygrad.func.trees import flatten, mapped, rebuild

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]


def start(x):
    """Return a new tensor with the same values that requires grad, connected to the history of `x`."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    own = x.view_as(x) if x.layout is strided else x.clone()  # a sparse tensor has no views
    return own if own.requires_grad else own.requires_grad_()


def zeros_for(found, references):
    """Return the gradients, with zeros in place of None."""
    return [x.new_zeros(x.shape) if g is None else g for g, x in zip(found, references, strict=True)]


def cut(t, own):
    """Remove the history of `t`, but keep its tangents, and their history if they reach tensors other than `own`."""
    if not isinstance(t, Tensor):
        return t
    if not forward.levels():
        return t.detach()
    keeps = None
    if forward.directions_have_history():
        keeps = functools.partial(_reaches_outside, own)
    return forward.without_history(t, keeps)


def cut_all(tree, own):
    """Cut each tensor of a tree."""
    return mapped(lambda t: cut(t, own) if isinstance(t, Tensor) else t, tree)


def _reaches_outside(own, tangent):
    return tangent.requires_grad and reaches_outside([tangent], own)


def is_followed(outside, recorded):
    """Whether a derivative is differentiated further: for tensors outside, or for the directions of tangents."""
    return outside or (recorded and forward.directions_have_history())


def reaches_outside(outputs, own):
    """Whether anything that the outputs depend on requires grad, apart from the tensors `own`."""
    known = {id(t) for t in own if t.is_leaf}
    nodes = [t.grad_fn or t._accumulate_grad for t in outputs if t.requires_grad]
    seen = set()
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in known and leaf.requires_grad:
            return True
        nodes += [target for target, _ in node.next_functions if target is not None]
    return any(not t.is_leaf for t in own)


def derivative(outputs, inputs, vectors, outside):
    """Return `autograd.grad` of the differentiable outputs; the graph is kept."""
    pairs = [(out, v) for out, v in zip(outputs, vectors, strict=True) if out is not None and out.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    outputs, vectors = zip(*pairs, strict=True)
    return gradients(outputs, inputs, vectors, retain_graph=True, create_graph=outside, allow_unused=True)


def split_aux(output, has_aux, name):
    """Split a function's result into (output, aux), which is a tree of tensors; aux is None without `has_aux`."""
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    wrong = [value for value in flatten(output[1])[0] if not isinstance(value, Tensor)]
    if wrong:
        raise RuntimeError(
            f"Expected tensors, got unsupported type {type(wrong[0])}\n"
            "  all of aux has to be tensors: return torch.tensor(value), or keep other values outside the function"
        )
    return output


def tensors_of(tree, name):
    """Return the leaves of a function's output, which must be one or more tensors."""
    leaves = flatten(tree)[0]
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves


def has_derivative(t):
    """Whether the dtype of this tensor is differentiable."""
    return t.is_floating_point() or t.is_complex()


def outputs_of(tree):
    """Return the leaves of a function's output, from which a backward pass will start."""
    leaves = tensors_of(tree, "vjp(f, *primals)")
    for leaf in leaves:
        if not has_derivative(leaf):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{leaf.dtype}"
            )
    return leaves


# -- arguments --


def check_has_derivative(tensors, what="primal"):
    """Raise for integer tensors, which forward mode does not support."""
    for t in tensors:
        if isinstance(t, Tensor) and not has_derivative(t):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")


def checked_argnums(argnums, count):
    """Return `argnums` as a tuple of nonnegative positions."""
    places = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(places, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not places:
        raise RuntimeError("argnums must be non-empty")
    for place in places:
        if not isinstance(place, int):
            raise RuntimeError(f"argnum must be int, got: {type(place)}")
        if not -count <= place < count:
            raise RuntimeError(f"Got argnum={place}, but only {count} positional inputs")
    places = tuple(place % count for place in places)
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return places


def started(args, argnums):
    """Return (the differentiated arguments as new tensors, all arguments with these substituted)."""
    places = checked_argnums(argnums, len(args))
    own = tuple(mapped(start, args[place]) for place in places)
    filled = list(args)
    for place, tree in zip(places, own, strict=True):
        filled[place] = tree
    return (own if isinstance(argnums, tuple) else own[0]), filled


# -- gradients --


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes (gradient, value) of `func`; with has_aux (gradient, (value, aux)).

    The arguments are those of `grad`.

    >>> import cygrad
    >>> cygrad.func.grad_and_value(lambda x: x**3)(cygrad.tensor(2.0))
    (tensor(12.), tensor(8.))
    """
    name = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        recorded = is_grad_enabled()
        with enable_grad():
            own, args = started(args, argnums)
            output, aux = split_aux(forward.call_inside(func, *args, **kwargs), has_aux, name)
            _check_scalar(output, name)
            leaves = flatten(own)[0]
            outside = recorded and reaches_outside([output], leaves)
            followed = is_followed(outside, recorded)
            found = zeros_for(derivative((output,), leaves, (None,), followed), leaves)
        for leaf in leaves:
            if leaf.is_leaf:
                leaf.requires_grad_(False)
        if not outside:
            found, output, aux = [cut(g, leaves) for g in found], cut(output, leaves), cut_all(aux, leaves)
        found = rebuild(own, found)
        return (found, (output, aux)) if has_aux else (found, output)

    return wrapper


def _check_scalar(output, name):
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim():
        raise RuntimeError(
            f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you "
            "wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`, whose result must be a 0-dim tensor.

    `argnums`: the position of the argument to differentiate with respect to, or a tuple of positions, which yields a
    tuple of gradients. With `has_aux`, `func` returns (value, aux), and the result is (gradient, aux). Raises
    RuntimeError for other outputs.

    >>> import cygrad
    >>> cygrad.func.grad(cygrad.func.grad(lambda x: x**3))(cygrad.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


# -- products with the Jacobian --


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return (output, function from v to v^T J[, aux]); `func` is evaluated once.

    >>> import cygrad
    >>> output, product = cygrad.func.vjp(lambda x: x**2, cygrad.tensor([1.0, 2.0]))
    >>> product(cygrad.tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    recorded = is_grad_enabled()
    with enable_grad():
        own = mapped(start, primals)
        output, aux = split_aux(forward.call_inside(func, *own), has_aux, "vjp(f, *primals)")
        outputs = outputs_of(output)
        leaves = flatten(own)[0]
        outside = recorded and reaches_outside(outputs, leaves)

    def product(cotangents, retain_graph=True, create_graph=None):
        vectors, form = flatten(cotangents)
        if form != flatten(output)[1]:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {form}, primal output: {flatten(output)[1]}"
            )
        recorded = is_grad_enabled()
        reaches = recorded and (outside or any(isinstance(v, Tensor) and v.requires_grad for v in vectors))
        followed = is_followed(reaches, recorded) if create_graph is None else create_graph
        found = zeros_for(derivative(outputs, leaves, vectors, followed), leaves)
        return rebuild(primals, found if reaches or not followed else [cut(g, leaves) for g in found])

    shown = (output, aux) if outside else (cut_all(output, leaves), cut_all(aux, leaves))
    return (shown[0], product, shown[1]) if has_aux else (shown[0], product)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return (output, J v[, aux]): `func` and its derivative along `tangents`, in one forward-mode pass.

    `primals` and `tangents` are tuples of the same structure. With `strict`, an output that does not depend on the
    inputs is an error; otherwise its derivative is zero.

    >>> import cygrad
    >>> cygrad.func.jvp(lambda x: x**2, (cygrad.tensor([1.0, 2.0]),), (cygrad.tensor([1.0, 10.0]),))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    (inputs, form), (vectors, other) = flatten(primals), flatten(tangents)
    if form != other:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {form} and tangents with "
            f"structure {other}"
        )
    if not inputs:
        raise RuntimeError(f"{name}: Expected primals to contain at least one Tensor.")
    for word, values in (("primals", inputs), ("tangents", vectors)):
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"{name}: Expected {word} to only contain Tensors, got {type(value)}")
    check_has_derivative(inputs)
    check_has_derivative(vectors, "tangent")
    for x, v in zip(inputs, vectors, strict=True):
        forward.check_size(x, v)
    level = forward.Level()
    try:
        forward.enter(level)
        duals = [forward.dual(x, v, level) for x, v in zip(inputs, vectors, strict=True)]
        output, aux = split_aux(forward.call_inside(func, *rebuild(primals, duals)), has_aux, name)
        outputs = tensors_of(output, name)
        pairs = [forward.unpacked(out, level) for out in outputs]
        aux = mapped(lambda t: forward.unpacked(t, level)[0] if isinstance(t, Tensor) else t, aux)
    finally:
        forward.leave(level)
    if strict and any(tangent is None for _, tangent in pairs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    values = rebuild(output, [primal for primal, _ in pairs])
    found = rebuild(output, zeros_for([tangent for _, tangent in pairs], outputs))
    return (values, found, aux) if has_aux else (values, found)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return (output, function from v to J v): `func` is evaluated once, its derivative any number of times.

    Non-tensors in the output (numbers, strings, None) appear unchanged in the derivative.
    `func` is evaluated twice if it changes tensors in place that backward needs; the second time these are copied.

    >>> import cygrad
    >>> output, derivative = cygrad.func.linearize(lambda x: x**2, cygrad.tensor([1.0, 2.0]))
    >>> derivative(cygrad.tensor([1.0, 10.0]))
    tensor([ 2., 40.])
    """
    return linearized(func, primals)


def linearized(func, primals, name=None):
    """Implements `linearize`; with `name`, for a caller of that name that accepts only tensors as outputs."""
    check_has_derivative(flatten(primals)[0])
    recorded = is_grad_enabled()
    draws = Draws()

    def run():
        own = mapped(start, primals)
        output = func(*own)
        found = flatten(output)[0] if name is None else tensors_of(output, name)
        return output, [t for t in found if isinstance(t, Tensor)], flatten(own)[0]

    def transpose(outputs, leaves):
        smooth = [out for out in outputs if has_derivative(out)]
        u = [out.new_zeros(out.shape).requires_grad_() for out in smooth]
        return u, derivative(smooth, leaves, u, True) if smooth else []

    with enable_grad():
        before = switches.count
        output, outputs, leaves = run()
        is_recorded = switches.count == before  # grad mode was never switched off, which forward mode would ignore
        try:
            u, transposed = transpose(outputs, leaves)
        except ChangedInPlaceError:
            # Forward mode needs no old values, so changing them is not a mistake: run again, with copies of them.
            draws.take_back()
            with copies_of_saved():
                output, outputs, leaves = run()
                u, transposed = transpose(outputs, leaves)
        outside = recorded and reaches_outside(outputs, leaves)

    def product(*tangents):
        vectors, form = flatten(tangents)
        if form != flatten(primals)[1]:
            raise RuntimeError(
                f"Expected the tangents {form} to have the same argspec as the primals {flatten(primals)[1]}"
            )
        for i, (v, x) in enumerate(zip(vectors, leaves, strict=True)):
            if v.shape != x.shape:
                raise RuntimeError(
                    f"tangent:{i} with shape {v.shape} in flattened pytree doesn't match the shape {x.shape} of the "
                    "corresponding primal."
                )
            if v.dtype is not x.dtype:
                raise RuntimeError(
                    f"tangent:{i} with dtype {v.dtype} in flattened pytree doesn't match the dtype {x.dtype} of the "
                    "corresponding primal."
                )
        if not is_recorded:
            return jvp(func, primals, tangents)[1]
        recorded = is_grad_enabled()
        reaches = recorded and (outside or any(v.requires_grad for v in vectors))
        followed = is_followed(reaches, recorded)
        found = iter(zeros_for(derivative(transposed, u, vectors, followed), u) if u else ())
        if followed and not reaches:
            found = (cut(t, [*leaves, *u]) for t in found)

        def tangent(value):
            if not isinstance(value, Tensor):
                return value
            return next(found) if has_derivative(value) else value.new_zeros(value.shape)

        return mapped(tangent, output)

    return (output if outside else cut_all(output, leaves)), product
