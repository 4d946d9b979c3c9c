"""The ops that a mode of `__torch_dispatch__` receives from every sample of every function: the same names."""

import importlib

import pytest
from ops.calls import SAMPLES, Call, Cygrad
from oracle.ops.test_ops import SHARED, Torch

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

_BLOCKS = "one row here, with a kernel of its own"
_ORDER = "the same steps in another order, or with further views"
_NUMBERS = "a number becomes a tensor here before the op sees it, or stays one"
_DATA = "made by NumPy: no op here"
_COMPOSED = "composed of other ops in both libraries"

# Functions of which some samples show other ops: {name: reason}.
OTHER_OPS = {
    **dict.fromkeys(
        """all any argsort bitwise_left_shift bitwise_right_shift copysign.Scalar count_nonzero cumprod div div.floor
        div.trunc ldexp logit mvlgamma polygamma scatter sub xlog1py xlogy zeta""".split(),
        _NUMBERS,
    ),
    **dict.fromkeys(
        """bartlett bartlett_window blackman blackman_window block_diag cosine equal exponential fftfreq gaussian
        general_cosine general_hamming hamming hamming_window hann hann_window kaiser kaiser_window nonzero_static
        nuttall ormqr rfftfreq tril_indices triu_indices unbind unravel_index""".split(),
        _DATA,
    ),
    **dict.fromkeys(
        """addbmm addmm fft2 fftn gaussian_nll_loss hfft hfft2 hfftn histogram ifft2 ifftn
        ihfft2 ihfftn irfft irfft2 irfftn kl_div linear.other_shapes linear_cross_entropy linalg_tensorsolve
        matmul matmul.matrix_stack matmul.plain native_batch_norm native_group_norm rfft2 rfftn
        sum_to_size take_along_dim trapezoid trapz cumulative_trapezoid""".split(),
        _ORDER,
    ),
    **dict.fromkeys(
        """allclose aminmax dist isclose isfinite isreal nansum one_hot std_mean var_mean vdot linalg_vecdot
        pairwise_distance triplet_margin_loss triplet_margin_with_distance_loss cosine_similarity
        cosine_embedding_loss repeat_interleave normalize margin_ranking_loss multilabel_soft_margin_loss
        conv1d conv_transpose1d cdist ndtr interpolate""".split(),
        _BLOCKS,
    ),
    **dict.fromkeys(
        """chain_matmul combinations corrcoef cov cross_entropy.smoothed cross_entropy.soft
        ctc_loss.reduced diff einsum ger gradient gru_cell inner istft kron linalg_cond linalg_matrix_norm linalg_norm
        linalg_vander lp_pool1d lp_pool2d lp_pool3d lstm_cell lu multi_head_attention_forward nanmean nanquantile outer
        quantile rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention stft svd tensordot vander""".split(),
        _COMPOSED,
    ),
    "hash_tensor": "composed of XORs here",
    **dict.fromkeys(("nonzero", "where.indices"), "each column of indices is recorded by itself"),
    **dict.fromkeys(
        ("gru", "lobpcg", "local_response_norm", "lstm", "rnn_relu", "rnn_tanh", "linalg_matrix_rank"),
        "`torch.ops.engine`; the rows say what PyTorch has in their place",
    ),
}
# Rows whose names are shown as `torch.ops.engine.<name>`, because PyTorch has no such op.
ENGINE = {"channel_window", "linalg_matrix_rank", "lobpcg", "recurrent_layer", "resample"}


def shown(name, sample, on):
    """The names of the ops that a sample shows, in order; the error of one that fails."""
    said, torch = [], on.library
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

    class Names(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            if func is not torch.ops.aten.detach.default:
                said.append(str(func))
            return found

    call = Call(name, sample, requires_grad=False, on=on)
    try:
        with Names():
            call.run()
    except Exception as error:
        said.append(type(error).__name__)
    return said


@pytest.mark.parametrize("name", SHARED)
def test_same_ops(name):
    different = []
    for sample in SAMPLES[name]:
        found = shown(name, sample, Cygrad)
        own = {op.split(".")[1] for op in found if op.startswith("engine.")}
        assert own <= ENGINE, sample
        if found != (expected := shown(name, sample, Torch)):
            different.append(f"{sample}: {found}\nPyTorch: {expected}")
    assert not different or name in OTHER_OPS, different[0]
    assert different or name not in OTHER_OPS, f"{name} need not be listed"
