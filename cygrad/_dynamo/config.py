"""Settings of PyTorch's compiler. They are kept and nothing reads them, since nothing is compiled."""

from cygrad.utils._config_module import install_config_module

verbose = False
verify_correctness = False
minimum_call_count = 1
recompile_limit = cache_size_limit = 8
accumulated_recompile_limit = accumulated_cache_size_limit = 256
fail_on_recompile_limit_hit = False
specialize_int = False
specialize_float = False
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
force_parameter_static_shapes = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
suppress_errors = False
disable = False
error_on_recompile = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
capture_autograd_function = True
capture_func_transforms = True
allow_unspec_int_on_nn_module = False
optimize_ddp = True
skip_fsdp_guards = True
allow_rnn = False
trace_numpy = True
compiled_autograd = False
numpy_default_float = "float64"
numpy_default_complex = "complex128"
numpy_default_int = "int64"
log_compilation_metrics = True
enable_compiler_collectives = False
caching_precompile = False

install_config_module(__name__)
