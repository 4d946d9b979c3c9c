"""cygrad: automatic differentiation with PyTorch's semantics on NumPy arrays.

`import cygrad as torch` runs training scripts written for PyTorch.
"""

import sys as _sys
from importlib import import_module as _import_module
from math import e, inf, nan, pi

from cygrad import _library  # before any compiled module, since it installs their finder
from cygrad.version import __version__

_FAMILIES = (
    "arithmetic",
    "comparisons",
    "copying",
    "creation",
    "indexing",
    "slicing",
    "pointwise",
    "products",
    "reductions",
    "views",
)

with _library.uncollected():
    from cygrad._core.graph.tensor import Tensor  # first, since others import it in turn
    from cygrad._core.graph.opdef import registry as _registry  # isort: skip
    from cygrad._core.registry.publish import published as _published
    from cygrad._core.tensor import convert as _convert
    from cygrad._core.tensor import shared_memory as _shared_memory
    from cygrad._core.tensor import tensor_hooks as _tensor_hooks
    from cygrad._core.tensor.predicates import functions as _inquiries
    from cygrad._core.types import dtypes as _dtypes
    from cygrad._core.types.device import device
    from cygrad._core.types.dtypes import can_cast, dtype, get_default_dtype, set_default_dtype
    from cygrad._core.types.dtypes import promote_types_py as promote_types
    from cygrad._core.types.size import Size
    from cygrad._ops.lazy_families import families as _families_on_first_use

    globals().update(_dtypes.by_name())
    for _family in _FAMILIES:
        globals().update(_import_module(f"cygrad._ops.base.{_family}").functions)

_published(
    {"__name__": __name__}, _import_module("cygrad._ops.base.creation").functions
)  # enables the checks of failing calls for them
globals().update(_inquiries)
_registry.names_of_ops = lambda: _import_module("cygrad.ops._dispatch")  # for `__torch_dispatch__`
newaxis = None  # in an index: adds a dimension

# Imported on first use: not every program needs them, and they would take as long to import as all of the above.
_MODULES = (
    "_C",
    "_custom_ops",
    "_VF",
    "__config__",
    "_dynamo",
    "_functorch",
    "_guards",
    "_higher_order_ops",
    "_inductor",
    "_jit_internal",
    "_prims_common",
    "_subclasses",
    "_tensor",
    "_tensor_str",
    "_utils",
    "_vmap_internals",
    "_weights_only_unpickler",
    "accelerator",
    "amp",
    "ao",
    "as_torch",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "errors",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "numa",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "quantization",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "torch_version",
    "types",
    "utils",
    "viz",
    "xpu",
)
_ON_FIRST_USE = {name: f"cygrad.{name}" for name in _MODULES}
_ON_FIRST_USE |= _families_on_first_use()
_ON_FIRST_USE |= dict.fromkeys(
    (
        *_dtypes.beyond_numpy(),
        "bit",
        "chalf",
        "per_channel_affine",
        "per_channel_affine_float_qparams",
        "per_channel_symmetric",
        "per_tensor_affine",
        "per_tensor_symmetric",
        "qscheme",
    ),
    "cygrad._core.types.beyond_numpy",
)
_ON_FIRST_USE["why_no_grad"] = "cygrad._core.diagnostics.missing_grad"
_ON_FIRST_USE["compile"] = "cygrad.compiler"
_ON_FIRST_USE["typename"] = "cygrad.utils"
_ON_FIRST_USE["debug"] = "cygrad.utils.debugging"
_ON_FIRST_USE["vmap"] = "cygrad.func"
_ON_FIRST_USE |= dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter", "load", "save"), "cygrad.serialization")
_ON_FIRST_USE |= dict.fromkeys(
    (
        "are_deterministic_algorithms_enabled",
        "get_deterministic_debug_mode",
        "get_float32_matmul_precision",
        "is_deterministic_algorithms_warn_only_enabled",
        "is_warn_always_enabled",
        "set_deterministic_debug_mode",
        "set_float32_matmul_precision",
        "set_flush_denormal",
        "set_warn_always",
        "use_deterministic_algorithms",
    ),
    "cygrad._core.runtime.settings",
)
_ON_FIRST_USE |= dict.fromkeys(("get_default_device", "set_default_device"), "cygrad._core.types.device")
_ON_FIRST_USE |= dict.fromkeys(
    ("get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"),
    "cygrad._core.runtime.threads",
)
_ON_FIRST_USE |= dict.fromkeys(
    (
        "empty_cache",
        "get_memory_limit",
        "memory_stats",
        "memory_summary",
        "reset_peak_memory_stats",
        "set_memory_limit",
    ),
    "cygrad._core.runtime.memory_stats",
)
_ON_FIRST_USE |= dict.fromkeys(("Event", "Stream"), "cygrad.cpu._streams")
_ON_FIRST_USE |= dict.fromkeys(("eig", "lstsq", "matrix_rank", "solve", "symeig"), "cygrad._VF")
_ON_FIRST_USE |= dict.fromkeys(("DeviceObjType", "ScriptModule", "Tag"), "cygrad._C")
_ON_FIRST_USE["get_device_module"] = "cygrad.accelerator"
_ON_FIRST_USE |= dict.fromkeys(("finfo", "iinfo"), "cygrad._core.types.type_info")
_ON_FIRST_USE["OutOfMemoryError"] = "cygrad._core.errors.classes"
_ON_FIRST_USE |= dict.fromkeys(
    ("is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"), "cygrad.autograd.anomaly_mode"
)
_ON_FIRST_USE |= dict.fromkeys(
    ("get_printoptions", "printoptions", "set_printoptions"), "cygrad._core.tensor.tensor_str"
)
_ON_FIRST_USE |= dict.fromkeys(
    (
        "enable_grad",
        "inference_mode",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "no_grad",
        "set_grad_enabled",
    ),
    "cygrad.autograd.grad_mode",
)
_ON_FIRST_USE |= dict.fromkeys(
    (
        "autocast",
        "autocast_decrement_nesting",
        "autocast_increment_nesting",
        "clear_autocast_cache",
        "get_autocast_cpu_dtype",
        "get_autocast_dtype",
        "get_autocast_gpu_dtype",
        "is_autocast_cache_enabled",
        "is_autocast_cpu_enabled",
        "is_autocast_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled",
        "set_autocast_dtype",
        "set_autocast_enabled",
        "set_autocast_gpu_dtype",
    ),
    "cygrad.amp.autocast_mode",
)
_ON_FIRST_USE |= dict.fromkeys(
    (
        "_assert",
        "_assert_async",
        "_check",
        "_check_index",
        "_check_is_size",
        "_check_not_implemented",
        "_check_tensor_all",
        "_check_tensor_all_with",
        "_check_type",
        "_check_value",
        "_check_with",
    ),
    "cygrad._checks",
)
_ON_FIRST_USE |= dict.fromkeys(
    (
        "SymBool",
        "SymFloat",
        "SymInt",
        *[f"_sym_{name}" for name in "acos asin atan cos cosh log2 sin sinh sqrt tan tanh".split()],
        *[f"sym_{name}" for name in "float fresh_size int ite max min not sqrt sum".split()],
        "sym_constrain_range",
        "sym_constrain_range_for_size",
    ),
    "cygrad._symbolic",
)


_ON_FIRST_USE |= dict.fromkeys(
    """
        _adaptive_avg_pool2d _adaptive_avg_pool3d _addmm_activation _amp_foreach_non_finite_check_and_unscale_
        _amp_update_scale_ _assert_scalar _assert_tensor_metadata
        _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _conj
        _conj_physical _convolution _convolution_mode _ctc_loss _dim_arange _embedding_bag
        _embedding_bag_forward_only _euclidean_dist _fft_c2c _fft_c2r _fft_r2c _histogramdd_bin_edges
        _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _int_mm _is_all_true _is_any_true _linalg_check_errors
        _linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd _log_softmax
        _native_batch_norm_legit _native_batch_norm_legit_no_training _prelu_kernel _reshape_from_tensor
        _resize_output_ _safe_softmax _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
        _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
        _scaled_dot_product_flash_attention_for_cpu _shape_as_tensor _softmax _trilinear _unique _unique2
        _unsafe_index _unsafe_index_put _weight_norm native_dropout norm_except_dim
    """.split(),
    "cygrad.ops._aten",
)
_ON_FIRST_USE |= dict.fromkeys(
    (
        "_convert_indices_from_coo_to_csr",
        "_convert_indices_from_csr_to_coo",
        "_log_softmax_backward_data",
        "_make_per_channel_quantized_tensor",
        "_make_per_tensor_quantized_tensor",
        "_nested_view_from_buffer",
        "_pin_memory",
        "_softmax_backward_data",
    ),
    "cygrad.ops._aten",
)
_ON_FIRST_USE |= dict.fromkeys(
    """
        AnyType AwaitType BoolType ComplexType DictType FloatType FutureType InferredType IntType ListType NoneType
        NumberType OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType TensorType
        TupleType Type UnionType
    """.split(),
    "cygrad._C._types",
)
_ON_FIRST_USE |= dict.fromkeys(("cond", "while_loop"), "cygrad._higher_order_ops")
_ON_FIRST_USE |= dict.fromkeys(("_sample_dirichlet", "_standard_gamma"), "cygrad.distributions._implicit")
_ON_FIRST_USE["Future"] = "cygrad.futures"
_ON_FIRST_USE["AcceleratorError"] = "cygrad._core.errors.classes"
_ON_FIRST_USE |= dict.fromkeys(("DisableTorchFunction", "DisableTorchFunctionSubclass"), "cygrad._C")
_KINDS_OF_STORAGE = "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short".split()
_ON_FIRST_USE |= {f"{kind}Storage": "cygrad.storage" for kind in _KINDS_OF_STORAGE}
_ON_FIRST_USE["GradScaler"] = "cygrad.amp.grad_scaler"


def __getattr__(name):
    if name not in _ON_FIRST_USE:
        from cygrad._core.errors.spelling import suggestion  # needed only here
        from cygrad._core.runtime import deprecated  # which only old programs need

        if name in deprecated.NAMES:
            return deprecated.read(name)
        text = f"module 'cygrad' has no attribute {name!r}{suggestion(name, globals() | _ON_FIRST_USE)}"
        raise AttributeError(text, name=name, obj=_sys.modules[__name__])
    module = _import_module(_ON_FIRST_USE[name])
    if module.__name__ == f"{__name__}.{name}":
        return module  # bound in this namespace by the import
    globals()[name] = value = getattr(module, "functions", {}).get(name) or getattr(module, name)
    return value


def __dir__():
    return sorted({*globals(), *_ON_FIRST_USE})
