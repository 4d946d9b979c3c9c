"""In-place operations on sparse tensors, and results written into an `out` tensor."""

from cygrad._core.graph.internals import become_result
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.types.dtypes import can_cast
from cygrad._ops.sparse.tensor import array, is_sparse


def delivered(out, result):
    """Return a result, written into `out` if there is one. As in PyTorch, one without elements takes any size."""
    return written(out, result, is_sparse(out) and not array(out).values.size)


def check_castable(result, target, operation):
    """Raise PyTorch's error unless a result of this dtype can be written into a sparse, or with sparse, tensor."""
    if not can_cast(result, target):
        raise RuntimeError(
            f"Can't convert result type {result.type_name} to output {target.type_name} in {operation} operation\n"
            "  use the form that returns a new tensor, or convert the tensor that is written to"
        )


def written(target, result, resizes=False):
    """Give a sparse tensor the elements and the history of another, and return it; without one, return the other."""
    if target is None or target is result:
        return result
    if not is_sparse(target) and not is_sparse(result):
        return target.copy_(result)
    if not is_sparse(target) or not is_sparse(result) or array(target).layout != array(result).layout:
        raise RuntimeError(
            f"Expected out tensor to have layout {result.layout}, but got {target.layout} instead\n"
            "  write into a tensor of the same layout"
        )
    if result.shape != target.shape and not resizes:
        raise RuntimeError(
            f"Expected out tensor to have size {list(result.shape)}, but got {list(target.shape)} instead"
        )
    if not can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"result type {result.dtype.type_name} can't be cast to the desired output type {target.dtype.type_name}"
        )
    recording = not get_modes() & NO_GRAD
    if recording and target.requires_grad and target.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    become_result(target, result.to(target.dtype), "copy_")
    return target
