"""Checks that operands share a device, for ops whose kernels would otherwise fail with a less helpful message.

Most ops check devices when their kernel runs (`gpu.run`). The ops listed here prepare arrays before that, or read
indices; their wrapper `autocast.guarded` checks the devices once CuPy is loaded.
"""

from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.device import gpu_forms

# All tensors among the arguments must be on one device.
TOGETHER = frozenset(
    """
    addbmm addmm addmv addr as_strided_scatter attention_by_blocks baddbmm batch_norm binary_cross_entropy
    binary_cross_entropy_with_logits bincount binomial block_diag bucketize cholesky_solve cosine_embedding_loss
    cross_entropy cross_entropy_of_softmax ctc_loss diagonal_scatter embedding embedding_bag equal gather
    gaussian_nll_loss group_norm gru hinge_embedding_loss histogram huber_loss index_add index_copy index_reduce
    index_select instance_norm isin l1_loss layer_norm linalg_householder_product linalg_lstsq linalg_lu_solve
    linalg_solve linalg_solve_ex linalg_solve_triangular linalg_tensorsolve linear_cross_entropy lobpcg lstm
    lu_solve lu_unpack margin_ranking_loss masked_scatter masked_select max_unpool1d max_unpool2d max_unpool3d
    meshgrid mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nanquantile nll_loss
    orgqr poisson_nll_loss prelu put quantile recurrent_layer repeat_interleave rms_norm rnn_relu rnn_tanh scatter
    scatter_add scatter_reduce searchsorted select_scatter slice_scatter smooth_l1_loss soft_margin_loss take
    take_along_dim triangular_solve
    """.split()
)

# These arguments, by position and by name, may be 0-dim tensors on the CPU, which count as numbers.
WITH_NUMBERS = {
    "clamp": (1, 2, "min", "max"),
    "clamp_max": (1, "max"),
    "clamp_min": (1, "min"),
    "index_fill": (3, "value"),
    "linalg_matrix_rank": (1, "tol", "atol", "rtol"),
    "linalg_pinv": (1, "rcond", "atol", "rtol"),
    "masked_fill": (2, "value"),
    "where": (1, 2, "input", "other"),
}

# Arguments that belong on the CPU, by position and by name.
_ON_CPU = {"ctc_loss": (2, 3, "input_lengths", "target_lengths")}
_RECURRENT = ("gru", "lstm", "rnn_relu", "rnn_tanh")  # their batch sizes are integers on the CPU


def check(name, args, kwargs):
    """Return the arguments of an op, with numbers moved from the CPU to the device of the others.

    Raises RuntimeError if the tensors are on different devices.
    """
    values = [value for i, value in enumerate(args) if i not in _ON_CPU.get(name, ())]
    values += [value for key, value in kwargs.items() if key != "out" and key not in _ON_CPU.get(name, ())]
    tensors = [value for value in _tensors(values) if name not in _RECURRENT or value.is_floating_point()]
    if len(tensors) < 2:
        return args, kwargs
    first = tensors[0].device
    if all(value.device == first for value in tensors):
        return args, kwargs
    if name in WITH_NUMBERS:
        numbers, place = WITH_NUMBERS[name], next(value.device for value in tensors if value.is_cuda)
        args = tuple(_number(value, place) if i in numbers else value for i, value in enumerate(args))
        kwargs = {key: _number(value, place) if key in numbers else value for key, value in kwargs.items()}
        tensors = list(_tensors((*args, *(value for key, value in kwargs.items() if key != "out"))))
        if all(value.device == tensors[0].device for value in tensors):
            return args, kwargs
    if name in _RECURRENT:
        found = next(value for value in tensors if value.device != first)
        what = "hidden" if any(found is value for value in _tensors(args[1:2])) else "parameter"
        raise RuntimeError(
            f"Input and {what} tensors are not at the same device, found input tensor at {first} and {what} tensor at "
            f"{found.device}"
        )
    other = next(value.device for value in tensors if value.device != first)
    raise gpu_forms.different_devices(str(first), str(other))


def _tensors(values):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from _tensors(value)


def _number(value, place):
    return value.to(place) if isinstance(value, Tensor) and value.ndim == 0 and not value.is_cuda else value
