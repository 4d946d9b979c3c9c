"""Which ops synchronize with the GPU, and how programs are told where; on a GPU or the stand-in."""

import warnings

import cupy_standin
import pytest
from ops.calls import SAMPLES, Call, Cygrad

import cygrad as torch
from cygrad._core.graph.internals import tensor_of

# Ops that must know the values or the number of elements, or that must check for failure.
WAITING = set(
    """
    _grouped_mm _grouped_mm.ends allclose argwhere bincount cholesky cholesky_inverse cpu equal gaussian_nll_loss
    histc histogram histogramdd index index_backward inverse istft linalg_cholesky linalg_cond linalg_eig
    linalg_eigvals linalg_inv linalg_ldl_factor linalg_lstsq linalg_lu_factor linalg_lu_solve
    linalg_matrix_exp linalg_matrix_norm linalg_matrix_rank linalg_norm linalg_pinv linalg_solve linalg_svd
    linalg_svdvals linalg_tensorinv linalg_tensorsolve lobpcg lu_solve lu_unpack masked_select matrix_exp
    matrix_power multinomial nonzero nonzero_static norm nuclear_norm one_hot pinverse pow.Tensor_Tensor
    repeat_interleave segment_reduce svd unique unique_consecutive where.indices
    """.split()
)


@pytest.fixture(autouse=True)
def gpu(cupy):
    yield cupy
    torch.cuda.set_sync_debug_mode(0)


def calls_of(name, cupy):
    class OnGpu(Cygrad):
        @staticmethod
        def tensor(array):
            return tensor_of(cupy.array(array))

    return [Call(name, sample, on=OnGpu) for sample in SAMPLES[name]]


def waits_by_itself(call):
    """Whether the call synchronizes according to CuPy and our own debug mode."""
    import cupyx

    call.run()  # compiles kernels and fills caches
    torch.cuda.set_sync_debug_mode("error")
    try:
        with warnings.catch_warnings(action="ignore"), cupyx.allow_synchronize(False):  # deprecated in CuPy
            call.run()
    except RuntimeError as error:
        assert "synchroniz" in str(error)
        return True
    finally:
        torch.cuda.set_sync_debug_mode(0)
    return False


@pytest.mark.parametrize("name", SAMPLES)
def test_which_ops_wait(name, cupy):
    calls, waits = calls_of(name, cupy), []
    if not cupy_standin.is_installed():
        # CuPy does not report every synchronization in its linear algebra
        assert name in WAITING or not any(waits_by_itself(call) for call in calls)
        return
    with cupy_standin.watch() as seen:
        for call in calls:
            call.run()
            waits.append(bool(seen.synchronizations))
            seen.synchronizations.clear()
    assert any(waits) == (name in WAITING)
    torch.cuda.set_sync_debug_mode("error")
    for call, has_waited in zip(calls_of(name, cupy), waits, strict=True):
        if has_waited:
            with pytest.raises(RuntimeError, match="^called a synchronizing CUDA operation\n.*calls.py"):
                call.run()
        else:
            call.run()


READS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "bool": lambda x: bool(x.sum() > 0),
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "mask": lambda x: x[x > 0],
    "print": lambda x: repr(x),
}


@pytest.mark.parametrize("name", READS)
def test_a_wait_names_its_line(name):
    x = torch.ones(3, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="^called a synchronizing CUDA operation\n.*test_waits.py:.*lambda x"):
        READS[name](x)
    torch.cuda.set_sync_debug_mode(2)
    with pytest.raises(RuntimeError, match="^called a synchronizing CUDA operation\n.*test_waits.py:.*lambda x"):
        READS[name](x)
    torch.cuda.set_sync_debug_mode("default")
    READS[name](x)


def test_modes():
    torch.cuda.set_sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
    torch.cuda.synchronize()  # explicit synchronization is fine
    (torch.ones(3, device="cuda") * 2).sum()
    torch.cuda.set_sync_debug_mode(1)
    assert torch.cuda.get_sync_debug_mode() == 1
    torch.cuda.set_sync_debug_mode(0)
    with pytest.raises(RuntimeError, match="^invalid value of debug_mode, expected one of `default`, `warn`, `error`"):
        torch.cuda.set_sync_debug_mode("loud")
    with pytest.raises(RuntimeError, match="^invalid value of debug_mode, expected 0, 1, or 2, but got 3"):
        torch.cuda.set_sync_debug_mode(3)


def test_all_is_put_back(cupy):
    torch.cuda.set_sync_debug_mode(1)
    torch.cuda.set_sync_debug_mode(0)  # the indexing wrapper stays installed and checks the mode
    before = dict(vars(cupy.ndarray)), cupy.nonzero, cupy.linalg.eig if hasattr(cupy.linalg, "eig") else None
    torch.cuda.set_sync_debug_mode(1)
    assert cupy.nonzero is not before[1]
    torch.cuda.set_sync_debug_mode(2)
    torch.cuda.set_sync_debug_mode(0)
    assert dict(vars(cupy.ndarray)) == before[0]
    assert cupy.nonzero is before[1]
    x = torch.arange(4.0, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[x > 1].tolist() == [2.0, 3.0]
