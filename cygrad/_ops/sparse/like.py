"""Tensors with the pattern of a tensor in compressed rows or columns, and with other values."""

from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import result_type as result_type_of
from cygrad._ops.base.creation import zeros
from cygrad._ops.sparse.entries import entries, with_values
from cygrad._ops.sparse.tensor import array, is_sparse
from cygrad._ops.sparse.writing import written


def is_compressed(input):
    """Whether a tensor has compressed rows or columns."""
    return is_sparse(input) and not input.is_sparse


def _like(step, fill):
    """Return a function of a compressed tensor; PyTorch's error for others names the `step` that they do not take."""

    def like(
        input, *args, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None,
        **options,
    ):  # fmt: skip
        if memory_format is not None and (layout or input.layout)._name != "strided":
            raise RuntimeError("memory format option is only supported by strided tensors")
        kind, place = dtype or input.dtype, input.device if device is None else device
        if layout is not None and layout._name == "strided":
            return fill(zeros(tuple(input.shape), dtype=kind, device=place), *args, **options).requires_grad_(
                requires_grad
            )
        if not is_compressed(input) or layout not in (None, input.layout):
            raise array(input).refused(step)
        values = fill(zeros(tuple(entries(input).shape), dtype=kind, device=place), *args, **options)
        return with_values(input.detach().clone().to(place), values).detach().requires_grad_(requires_grad)

    return like


empty_like = _like("empty_like", lambda values: values)


def fill_(self, value):
    """Set the values at all coordinates to a number, in place."""
    if not is_compressed(self) or isinstance(value, Tensor):
        raise array(self).refused("fill_.Tensor" if isinstance(value, Tensor) else "fill_.Scalar")
    return written(self, with_values(self, entries(self).clone().fill_(value)))


forms = {
    "fill_": fill_,
    "full_like": _like("fill_.Scalar", lambda values, fill_value: values.fill_(fill_value)),
    "ones_like": _like("fill_.Scalar", lambda values: values.fill_(1)),
    "randn_like": _like("normal_", lambda values, generator=None: values.normal_(generator=generator)),
}


def result_type(tensor, other):
    """Return the dtype of the result of an operation: only dtypes and numbers of dimensions count."""
    return result_type_of(
        *(zeros((1,) * each.ndim, dtype=each.dtype) if is_sparse(each) else each for each in (tensor, other))
    )


forms["result_type"] = result_type
