"""Which of PyTorch's public names cygrad lacks; needs PyTorch.

    python tools/missing_names.py             print the counts
    python tools/missing_names.py --names     print the names too

Names that are out of scope are counted separately; OUT_OF_SCOPE gives the reasons.
"""

import argparse
import importlib
import re
from types import ModuleType

import cygrad

NAMESPACES = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")

# {reason: names}, as regular expressions that match a whole name, prefixed with its namespace if only one has it.
OUT_OF_SCOPE = {
    "nested layouts, copies of sparse indices, and products by half of a sparse matrix": r"""
        .*sparse.* .*_(csr|csc|bsr|bsc|coo) (hs|ds|s|sp|h|ss|sa).?(mm|pmm|paddmm|addmm)
        (c?col|c?row|crow)_indices(_copy)? indices(_copy)? values(_copy)? coalesce is_coalesced dense_dim
        nested is_nested to_padded_tensor strided_to_.* torch\.sparse.*
    """,
    "quantized dtypes": r"""
        .*quanti[sz].* q_.* .*qparams.* qscheme q?u?int_repr per_(tensor|channel)_.* (quint|qint)\d.* Q.*Storage
        fake_.* fused_moving_avg_obs_fake_quant fbgemm_.* dequantize bits\d.* bit u?int[1-7] float[48]_.* .*gauge.*
        int_repr
    """,
    "TorchScript, tracing and compilers": r"""
        .*Script.* .*Type .*JIT.* jit compile compiler export fx library ops classes package onnx .*Schema.* Graph.*
        Argument.* Block Call.* Code Node Use Value Gradient Execution.* CompilationUnit CompleteArgumentSpec
        ConcreteModuleType.* Deserialization.* Serialization.* DeepCopyMemoTable ErrorReport FileCheck IODescriptor
        InferredType ListType .*LockingLogger LoggerBase NoopLogger OperatorInfo PyTorchFile.* StaticModule Tag
        TracingState Type parse_.* import_ir_.* merge_type_from_type_comment unify_type_list sym_.* Sym.* AliasDb
        AggregationType AVG SUM Benchmark.* ThroughputBenchmark Capsule DispatchKey.* .*DispatchKeyGuard Future
        futures fork wait cond while_loop DisableTorchFunction.* LiteScriptModule TYPE_CHECKING BufferDict
        ParameterDict ModuleDict reinforce module_load AnyType PRIVATE_OPS boolean_dispatch handle_torch_function
        has_torch_function.* get_enum ExecutionTraceObserver
    """,
    "other devices, their streams and libraries": r"""
        cuda.* cudnn.* miopen.* mkldnn.* .*mkldnn.* mps mtia xpu ipu maia vulkan is_(ipu|maia|mtia|vulkan.*|xla|xpu)
        accelerator Accelerator.* Event Stream.* DeviceObjType OutOfMemoryError cpp compiled_with.*
        get_device_module has_(lapack|mkl|openmp|spectral) torch\.cpu xla .*cudagraph.* backends
        USE_(GLOBAL_DEPS|RTLD.*) init_num_threads (get|set)_num_interop_threads set_flush_denormal
        (get|set)_float32_matmul_precision get_file_path torch\.cpu
        scaled_(grouped_)?mm grouped_mm .*flash_attention_impls?
    """,
    "storage objects: memory is NumPy's": r"""
        Storage is_set_to
        const_data_ptr
    """,
    "half-precision complex numbers": "complex32 chalf",
    "services around training": "hub monitor ao FatalError torch_version quasirandom profile_hook_step",
    "data pipes, which PyTorch has abandoned": r"""
        .*DataPipe DataChunk functional_datapipe runtime_validation.* argument_validation .*non_deterministic
        guaranteed_datapipes_determinism
    """,
    "names for annotations and internal use": r"""
        T_destination OptimizerP(re|ost)Hook dump_patches call_super_init factory_kwargs Container
        swap_in_optimizer_params_and_state
    """,
    "named dimensions": r"Tensor\.index align_.* name rename.* names refine_names",
    "removed: they only raise an error": r"symeig eig lstsq solve solve_ torch\.matrix_rank Tensor\.lstsq",
    "mixed precision on other devices": r".*autocast_(ipu|xla).*",
    "internals of PyTorch's own functions": r"""
        native_.* .*_backward.* batch_norm_(stats|elemt|gather.*|update_stats|backward.*) grid_sampler.* convolution
        affine_grid_generator conv_tbc slice_inverse segment_reduce norm_except_dim embedding_renorm_
        choose_qparams.* assert_int_or_pair .*with_indices max_pool\dd_with_indices (prepare|thread|sym)_.*
        thread_safe_generator classproperty profiler_.* jagged compute_.* feature_dropout_? broadcast_shapes_
        sym_constrain.* nonzero_static vitals_enabled set_vital read_vitals cudnn_is_acceptable
        legacy_contiguous_format KinetoStepTracker MemRecordsAcc kineto_available debug_unwrap
        NestedIOFunction
    """,
    "imported modules and helpers": r"""
        builtins ctypes functools glob importlib inspect math os platform sys textwrap dataclasses fft\.Tensor
        special\.Tensor functional\.Tensor torch\.windows multi_dim_common threading types warnings torch
        multiprocessing Callable
        Optional Union Any List Tuple Dict NamedTuple overload TypeVar np reduce DType GRID_SAMPLE_.*
        BroadcastingList\d common_args utils sparse_support_notes tf32_notes rocm_fp16_notes reproducibility_notes
        factory_common_args parse_kwargs merge_dicts .*_notes
    """,
}


def out_of_scope(namespace, name):
    """The reason why cygrad does not have a name, or None if it should."""
    full = f"{namespace}.{name}"
    for reason, patterns in OUT_OF_SCOPE.items():
        if any(re.fullmatch(pattern, name) or re.fullmatch(rf"(.*\.)?{pattern}", full) for pattern in patterns.split()):
            return reason
    return None


def namespace_of(library, path):
    """Return the object at `path` ('torch.nn.functional') in this library, or None."""
    found = library
    for part in path.split(".")[1:]:
        if isinstance(found, ModuleType) and not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return None
        found = getattr(found, part, None)
    return found


def missing():
    """Return {namespace: (count of PyTorch's names in scope, missing names, count of those out of scope)}."""
    import torch

    found = {}
    for path in NAMESPACES:
        theirs, ours = namespace_of(torch, path), namespace_of(cygrad, path)
        names = [name for name in dir(theirs) if not name.startswith("_")]
        wanted = [name for name in names if hasattr(ours, name) or out_of_scope(path, name) is None]
        found[path] = len(wanted), [name for name in wanted if not hasattr(ours, name)], len(names) - len(wanted)
    return found


def header(found):
    """Format all counts in one line."""
    counts = ", ".join(f"{path} {len(lacking)} of {total}" for path, (total, lacking, _) in found.items())
    return f"names of PyTorch that cygrad lacks: {counts}; {sum(other for _, _, other in found.values())} out of scope"


def main():
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", action="store_true", help="print the names too")
    names = parser.parse_args().names
    found = missing()
    print(header(found))
    if names:
        for path, (_, lacking, _) in found.items():
            print(f"\n{path}: {' '.join(lacking)}")


if __name__ == "__main__":
    main()
