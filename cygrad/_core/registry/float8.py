"""Refuses numbers of 8 bits where PyTorch's kernel does not take them: they are for storage.

Ops that move elements take them. Ops that compute by NumPy's loops refuse them there; the rows of all others say in
`float8=` which kernel of PyTorch's does not take them.
"""

from functools import cache

from cygrad._core.graph.opdef import facts_of
from cygrad._core.registry.out_dtypes import name_of
from cygrad._kernels.cpu.base.numpy_fallback import refuse_float8

# Rows that compute here by an op that takes such numbers, such as multiplication
_COMPOSED = {
    "bernoulli": "bernoulli_tensor_cpu_self_",
    "index_reduce": "index_reduce_func_exclude_input_init",
    "pow": "pow",
    "square": "pow",
}
# Rows that do not take e8m0fnu, which has neither signs nor zero
_WITHOUT_SIGNS = {
    **dict.fromkeys(("addbmm", "addmm", "linear", "matmul", "mm"), "addmm_impl_cpu_"),
    "abs": "abs_cpu",
    "index_put": "index_put",
}
# Rows that refuse tensors without elements as well; for others PyTorch calls no kernel then
_EMPTY_TOO = frozenset(
    """rrelu rrelu_with_noise leaky_relu prelu mse_loss smooth_l1_loss huber_loss nll_loss poisson addr
    max_pool2d_with_indices max_pool2d dot searchsorted unique unique_consecutive unique2 histc histogram kthvalue
    median.dim nanmedian.dim""".split()
)


@cache
def _kernel_of(op):
    """Return PyTorch's name of the kernel that refuses such operands of an op; None if the op takes them."""
    name = name_of(op)
    return facts_of["float8"].get(name) or _COMPOSED.get(name)


def refuse(op, array):
    """Raise NotImplementedError if the op of a row does not take operands of the type of this array, of 8 bits."""
    kernel = _kernel_of(op)
    if kernel is None and array.dtype.name == "float8_e8m0fnu":
        kernel = _WITHOUT_SIGNS.get(name_of(op))
    if kernel is not None and (array.size or name_of(op) in _EMPTY_TOO):
        refuse_float8(array.dtype, kernel)
