"""Settings of matrix products on GPUs, which are computed by cuBLAS.

`matmul.allow_tf32` (False): round float32 to TF32, with a 10-bit mantissa, which is many times as fast.
Equivalent to `set_float32_matmul_precision("high")`. Recurrent layers are matrix products here and follow it;
convolutions follow `cudnn.allow_tf32`.
`matmul.allow_fp16_reduced_precision_reduction`, `..bf16..` (True): partial sums may be added in half precision.
`matmul.allow_fp16_accumulation` (False): float16 products may be accumulated in float16.

PyTorch's attention backends (`enable_flash_sdp`, `sdp_kernel`, ...) can be set, without effect.

>>> import cygrad
>>> cygrad.backends.cuda.matmul.allow_tf32 = True
>>> cygrad.get_float32_matmul_precision()
'high'
>>> cygrad.backends.cuda.matmul.allow_tf32 = False
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

import cygrad
from cygrad._core.runtime.settings import matmul_settings as matmul

__all__ = [
    "SDPAParams",
    "allow_fp16_bf16_reduction_math_sdp",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "preferred_rocm_fa_library",
    "sdp_kernel",
]

_ways = dict.fromkeys(("flash", "math", "mem_efficient", "cudnn"), True)


_EXAMPLE = """

>>> import cygrad
>>> cygrad.backends.cuda.enable_{0}_sdp(False)
>>> cygrad.backends.cuda.{0}_sdp_enabled()
False
>>> cygrad.backends.cuda.enable_{0}_sdp(True)
"""


def _switch(way):
    def enable(enabled):
        _ways[way] = bool(enabled)

    def is_enabled():
        return _ways[way]

    for function, name in ((enable, f"enable_{way}_sdp"), (is_enabled, f"{way}_sdp_enabled")):
        function.__name__ = function.__qualname__ = name
    shown = _EXAMPLE.format(way)
    enable.__doc__ = f"Allow the attention backend that PyTorch calls {way}; it has no effect here.{shown}"
    is_enabled.__doc__ = f"The value set by `enable_{way}_sdp`, True by default.{shown}"
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Any:
    """A context in which these are set.

    >>> import cygrad
    >>> with cygrad.backends.cuda.sdp_kernel(enable_flash=False):
    ...     cygrad.backends.cuda.flash_sdp_enabled()
    False
    >>> cygrad.backends.cuda.flash_sdp_enabled()
    True
    """
    before = dict(_ways)
    _ways.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _ways.update(before)


# -- the libraries among which PyTorch chooses --


class _LinalgBackend(Enum):
    Default, Cusolver, Magma = range(3)


class _BlasBackend(Enum):
    Default, Cublas, Cublaslt, Ck = range(4)


class _ROCmFABackend(Enum):
    Default, AOTriton, Ck = range(3)


def _choice(name: str, words: Mapping[str, Enum], at_first: Enum, what: str) -> Any:
    kind, chosen = type(at_first), [at_first]

    def choose(backend: Any = None) -> Any:
        if isinstance(backend, str):
            if backend not in words:
                raise RuntimeError(f"Unknown input value. Choose from: {', '.join(words)}.")
            chosen[0] = words[backend]
        elif isinstance(backend, kind):
            chosen[0] = backend
        elif backend is not None:
            raise RuntimeError("Unknown input value type.")
        return chosen[0]

    choose.__name__ = choose.__qualname__ = name
    choose.__doc__ = f"""Choose PyTorch's library for {what}, if one is given; return the choice. It has no effect here.

    Raises RuntimeError for another name than {", ".join(words)}.

    >>> import cygrad
    >>> cygrad.backends.cuda.{name}("default").name
    '{words["default"].name}'
    """
    return choose


_LINALG = {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver, "magma": _LinalgBackend.Magma}
_BLAS = {
    "default": _BlasBackend.Cublas,
    "cublas": _BlasBackend.Cublas,
    "hipblas": _BlasBackend.Cublas,
    "cublaslt": _BlasBackend.Cublaslt,
    "hipblaslt": _BlasBackend.Cublaslt,
    "ck": _BlasBackend.Ck,
}
_ATTENTION = {"default": _ROCmFABackend.Default, "aotriton": _ROCmFABackend.AOTriton, "ck": _ROCmFABackend.Ck}
preferred_linalg_library = _choice(
    "preferred_linalg_library", _LINALG, _LinalgBackend.Default, "linear algebra on GPUs"
)
preferred_blas_library = _choice("preferred_blas_library", _BLAS, _BlasBackend.Cublas, "products of matrices on GPUs")
preferred_rocm_fa_library = _choice(
    "preferred_rocm_fa_library", _ATTENTION, _ROCmFABackend.Default, "attention on AMD's GPUs"
)


def is_built() -> bool:
    """Whether an NVIDIA GPU can be used.

    >>> import cygrad
    >>> cygrad.backends.cuda.is_built() == cygrad.cuda.is_available()
    True
    """
    return cygrad.cuda.is_available()


# -- PyTorch's kernels for attention, of which cygrad has its own --


class SDPAParams(NamedTuple):
    """The arguments of `scaled_dot_product_attention`, about which `can_use_flash_attention` and the like are asked.

    >>> import cygrad
    >>> x = cygrad.ones(1, 2, 4, 8)
    >>> params = cygrad.backends.cuda.SDPAParams(x, x, x, None, 0.0, is_causal=True)
    >>> cygrad.backends.cuda.can_use_flash_attention(params)
    False
    """

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool = False


def is_flash_attention_available():
    """Whether the kernels of FlashAttention are there: always False.

    >>> import cygrad
    >>> cygrad.backends.cuda.is_flash_attention_available()
    False
    """
    return False


def _can_use(name, way):
    def can_use(params, debug=False):
        return False

    can_use.__name__ = can_use.__qualname__ = name
    can_use.__doc__ = f"""Whether PyTorch's attention backend {way} would compute this: always False.

    >>> import cygrad
    >>> x = cygrad.ones(1, 2, 4, 8)
    >>> params = cygrad.backends.cuda.SDPAParams(x, x, x, None, 0.0, False)
    >>> cygrad.backends.cuda.{name}(params)
    False
    """
    return can_use


can_use_flash_attention = _can_use("can_use_flash_attention", "flash")
can_use_efficient_attention = _can_use("can_use_efficient_attention", "mem_efficient")
can_use_cudnn_attention = _can_use("can_use_cudnn_attention", "cudnn")


def allow_fp16_bf16_reduction_math_sdp(enabled):
    """Allow sums of half precision in the attention backend math; stored, without effect.

    >>> import cygrad
    >>> cygrad.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    >>> cygrad.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    True
    >>> cygrad.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)
    """
    _ways["reduces in half"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed():
    """The value set by `allow_fp16_bf16_reduction_math_sdp`, False by default.

    >>> import cygrad
    >>> cygrad.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    False
    """
    return _ways.get("reduces in half", False)
