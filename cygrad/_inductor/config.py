"""Settings of PyTorch's back end Inductor. They are kept and nothing reads them, since nothing is compiled."""

from cygrad.utils._config_module import install_config_module

debug = False
fx_graph_cache = True
fx_graph_remote_cache = None
autotune_local_cache = True
autotune_remote_cache = None
cpp_wrapper = False
dce = False
size_asserts = True
nan_asserts = False
pick_loop_orders = True
inplace_buffers = True
allow_buffer_reuse = True
memory_planning = False
benchmark_harness = True
epilogue_fusion = True
epilogue_fusion_first = False
prologue_fusion = True
pattern_matcher = True
reorder_for_locality = True
reorder_for_compute_comm_overlap = False
reorder_for_peak_memory = True
use_mixed_mm = True
force_fuse_int_mm_with_mul = False
max_autotune = False
max_autotune_pointwise = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
max_autotune_conv_backends = "ATEN,TRITON"
coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
coordinate_descent_search_radius = 1
layout_optimization = True
keep_output_stride = True
fallback_random = False
implicit_fallbacks = True
aggressive_fusion = False
benchmark_kernel = False
benchmark_fusion = False
loop_ordering_after_fusion = True
unroll_reductions_threshold = 8
conv_1x1_as_mm = False
split_reductions = True
constant_and_index_propagation = True
joint_graph_constant_folding = True
shape_padding = True
comprehensive_padding = True
freezing = False
graph_partition = True
emulate_precision_casts = False
compile_threads = 1
post_grad_custom_pre_pass = None
post_grad_custom_post_pass = None
joint_custom_pre_pass = None
joint_custom_post_pass = None
pre_grad_custom_pass = None
_micro_pipeline_tp = False


class cpp:
    """Settings for code on the CPU."""

    threads = -1
    dynamic_threads = False
    simdlen = None
    min_chunk_size = 512
    enable_kernel_profile = False
    weight_prepack = True


class triton:
    """Settings for code on GPUs."""

    cudagraphs = False
    cudagraph_trees = True
    cudagraph_skip_dynamic_graphs = False
    cudagraph_dynamic_shape_warn_limit = 8
    cudagraph_support_input_mutation = True
    max_tiles = None
    autotune_pointwise = True
    unique_kernel_names = True
    persistent_reductions = True
    multi_kernel = 0
    store_cubin = False
    enable_persistent_tma_matmul = False


class aot_inductor:
    """Settings for programs that are compiled ahead of time."""

    output_path = ""
    debug_compile = False
    package = False


class trace:
    """Settings for what is logged of a compilation."""

    enabled = False
    debug_dir = None
    graph_diagram = False


install_config_module(__name__)
