"""Checks the arguments of backward passes (tensors, gradients, inputs), and runs passes over a batch of gradients."""

from collections.abc import Mapping
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

from cygrad._core.engine.run import run_alone
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.node import Node, set_attribute
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.device import device
from cygrad._core.types.dtypes import dtype_by_num
from cygrad._core.types.size import Size
from cygrad._kernels.device.cupy_library import is_elsewhere


def inputs_of(inputs, function):
    """Return the tensors passed as `inputs`: one, a sequence, or a dictionary of them."""
    if isinstance(inputs, Tensor) or is_edge(inputs):
        inputs = (inputs,)
    elif type(inputs) is dict:
        inputs = tuple(inputs.values())
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {messages.type_name(inputs)}. "
            "Other Mapping types are not supported."
        )
    inputs = tuple(inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for value in inputs:
        if not isinstance(value, Tensor) and not is_edge(value):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {messages.type_name(value)}")
    return inputs


def roots_of(tensors):
    """Return the starting points of a pass (a tensor, a GradientEdge, or a sequence of them) as a tuple."""
    return (tensors,) if isinstance(tensors, Tensor) or is_edge(tensors) else tuple(tensors)


# -- gradient edges --


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient arrives: output `output_nr` of `node`.

    It stands for a tensor in `backward` and `grad`, and keeps the graph alive, but not the tensor.

    >>> import cygrad
    >>> from cygrad.autograd.graph import GradientEdge
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> GradientEdge(y.grad_fn, 0).node.name()
    'MulBackward0'
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


GradientEdge.__module__ = "cygrad.autograd.graph"


def is_edge(value):
    """Whether this is a GradientEdge. Raises if it does not refer to an existing output of a node."""
    if not isinstance(value, GradientEdge):
        return False
    if not isinstance(value.node, Node):
        raise TypeError(f"the node of a GradientEdge must be a Node, not {messages.type_name(value.node)}")
    if not isinstance(value.output_nr, int):
        raise TypeError(f"tuple indices must be integers or slices, not {messages.type_name(value.output_nr)}")
    if not 0 <= value.output_nr < len(value.node._metas):
        raise IndexError(
            f"tuple index out of range\n  {value.node.name()} has {len(value.node._metas)} outputs, but no "
            f"output {value.output_nr}"
        )
    return True


def _input_metadata(node):
    """The properties of the incoming gradients: objects with `shape`, `dtype`, `device`, `is_nested_tensor` and
    `is_cpp_nested_tensor`; None for non-tensors."""
    place = device("cpu") if not is_elsewhere() else getattr(getattr(node, "variable", None), "device", None)
    dense = {"device": place, "is_nested_tensor": False, "is_cpp_nested_tensor": False}
    return tuple(
        meta and SimpleNamespace(shape=list(meta[0]), dtype=dtype_by_num(meta[1]), **dense) for meta in node._metas
    )


set_attribute(Node, "_input_metadata", property(_input_metadata))


def _meta_of_edge(edge):
    """Return (shape, dtype) of the output that an edge refers to."""
    meta = edge.node._metas[edge.output_nr]
    if meta is None:
        raise RuntimeError(f"output {edge.output_nr} of {edge.node.name()} is not a tensor")
    return Size(meta[0]), dtype_by_num(meta[1])


def root_of_edge(edge):
    """Return the initial gradient at an edge if none was passed; the edge has been checked to be a scalar."""
    import numpy as np  # needed only for this call

    from cygrad._core.graph.internals import tensor_of  # which imports this module

    shape, dtype = _meta_of_edge(edge)
    return tensor_of(np.ones(shape, dtype.numpy))


def check_no_edges(inputs):
    """Check that inputs that were not reached are tensors, whose shapes `materialize_grads` needs for the zeros."""
    if any(not isinstance(value, Tensor) for value in inputs):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")


def as_subclass(gradients, cls):
    """Convert the gradients that are not None to a class."""
    if getattr(cls, "_results_keep_class", True) is not True:  # it has made its own results
        return gradients
    return tuple(None if gradient is None else gradient.as_subclass(cls) for gradient in gradients)


def is_overridden(tensors):
    """Whether a call with these tensors is for the class of one of them to answer."""
    for tensor in tensors:
        if type(tensor) is not Tensor and getattr(type(tensor), "_results_keep_class", True) is None:
            from cygrad._core.registry.torch_function import is_taken  # needed only for such classes

            return not is_taken()
    return False


def answer_of_class(function, args, options):
    """Let the class of the tensors answer a call."""
    from cygrad._core.registry.torch_function import call  # needed only for such classes

    return call(function, args, options)


# -- roots --


def gradients_for(tensors, gradients):
    """Return one gradient or None for each tensor."""
    if gradients is None:
        return (None,) * len(tensors)
    given = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
    if not is_elsewhere():
        return given
    return tuple(map(_number_beside, given, tensors)) if len(given) == len(tensors) else given


def _number_beside(gradient, tensor):
    """Move a 0-dim gradient to its tensor's device; PyTorch accepts it from any device."""
    is_number = isinstance(gradient, Tensor) and isinstance(tensor, Tensor) and gradient.ndim == 0
    return gradient.to(tensor.device) if is_number else gradient


def check_roots(tensors, gradients, batched=False):
    """Raise unless each gradient fits its tensor and omitted gradients can be created implicitly."""
    for i, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=False)):
        if isinstance(tensor, Tensor):
            shape, dtype = tensor.shape, tensor.dtype
        elif is_edge(tensor):
            shape, dtype = _meta_of_edge(tensor)
        else:
            raise AssertionError("Expected output to be a torch.Tensor")
        if gradient is None:
            if not isinstance(tensor, Tensor) or tensor.requires_grad:
                _check_implicit(shape, dtype)
        else:
            _check_gradient(gradient, shape, dtype, i, batched)
            if is_elsewhere() and isinstance(tensor, Tensor):
                _check_place(gradient, tensor)
    if len(tensors) != len(gradients):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")


def _check_implicit(expected, dtype):
    if prod(expected) != 1:
        hint = messages.non_scalar_hint(expected)
        raise RuntimeError(f"grad can be implicitly created only for scalar outputs{hint}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")


def _check_gradient(gradient, expected, dtype, index, batched):
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    shape = gradient.shape[1:] if batched else gradient.shape
    if shape != expected:
        mismatch = f"grad_output[{index}] has a shape of {shape} and output[{index}] has a shape of {expected}."
        if not batched:
            raise RuntimeError(f"Mismatch in shape: {mismatch}")
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
            "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
            f"mismatch was detected: {mismatch} If you only want some tensors in `grad_output` to be considered "
            "batched, consider using vmap."
        )
    if gradient.dtype.is_complex != dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {gradient.dtype} and output[{index}] has a dtype of {dtype}."
        )


def _check_place(gradient, tensor):
    if gradient.device != tensor.device:
        name = "GraphRoot" if tensor.grad_fn is None else tensor.grad_fn.name()
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index 0 - expected device {tensor.device} but got "
            f"{gradient.device}"
        )


def batched(grad, outputs, inputs, gradients, keep_last, create_graph, allow_unused):
    """Run `grad` for all rows of the gradients at once; each result has an additional first dimension."""
    check_roots(outputs, gradients, batched=True)
    if any(gradient is None for gradient in gradients):
        raise ValueError(
            "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
            "dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0.\n"
            "  with is_grads_batched=True each output needs a gradient with a first dimension for the batch"
        )
    sizes = [len(gradient) for gradient in gradients]
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    from cygrad._core.transforms import forward_mode, vmap_levels  # which few programs need

    try:
        batch = vmap_levels.Batch(sizes[0])
        try:
            forward_mode.open_batch(batch)
            firsts = tuple([batch.first(gradient) for gradient in gradients])
            found = grad(outputs, firsts, inputs, True, create_graph, allow_unused)
            samples = forward_mode.close_batch(batch, found)
        finally:
            forward_mode.leave(batch)
        pairs = zip(found, samples, strict=True)
        results = tuple(t.expand(batch.size, *t.shape) if t is not None and s is None else s for t, s in pairs)
    except vmap_levels.NoBatchingRule as error:
        warn(f"{error}\n  each gradient goes through the graph separately instead")
        rows = zip(*gradients, strict=True)
        found = [grad(outputs, row, inputs, True, create_graph, allow_unused) for row in rows]
        columns = zip(*found, strict=True)
        stack = registry["stack"].entry
        results = tuple(None if column[0] is None else stack(column) for column in columns)
    if not keep_last and sizes[0]:
        grad(outputs, tuple([gradient[0] for gradient in gradients]), inputs, False, False, True)  # frees the graph
    return results


def call_node(node, grads):
    """Return the result of `node(*grads)`: a gradient or None for a single input, else a tuple of them."""
    expected = node._metas
    if len(grads) != len(expected):
        raise TypeError(f"expected {len(expected)} arguments, got {len(grads)} instead")
    given = tuple(_argument_of_node(node, *pair) for pair in enumerate(zip(grads, expected, strict=True)))
    missing = all(grad is None for grad in given)
    results = run_alone(node, None if missing else given if len(given) > 1 else given[0])
    return results[0] if len(results) == 1 else results


def _argument_of_node(node, index, pair):
    grad, meta = pair
    if grad is None or meta is None:  # missing, or the output is not a tensor
        return None
    if not isinstance(grad, Tensor):
        raise TypeError(f"argument {index} is not a Variable")
    shape, num = meta
    if grad.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape of "
            f"{Size(shape)}."
        )
    return grad.to(dtype_by_num(num))
