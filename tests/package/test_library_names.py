"""Names that libraries ask PyTorch for, public and private: each is there, by the name `torch` and by `cygrad`."""

import subprocess
import sys
from importlib import import_module

import pytest

pytestmark = pytest.mark.interpreter

# {module: names}
NAMES = {
    "": """
        Future SymBool SymFloat SymInt _adaptive_avg_pool2d _assert _assert_async _cast_Long _check _check_index
        _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with _check_type _check_value
        _check_with _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _fft_c2c _foreach_abs
        _foreach_add _foreach_add_ _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_clamp_min_
        _foreach_copy_ _foreach_div _foreach_lerp_ _foreach_maximum_ _foreach_mul _foreach_mul_ _foreach_norm
        _foreach_pow _foreach_sqrt _foreach_sub_ _foreach_zero_ _grouped_mm _log_softmax_backward_data
        _sample_dirichlet _scaled_mm _segment_reduce _shape_as_tensor _softmax _softmax_backward_data
        _standard_gamma _sym_sqrt _unique2 _weight_norm cond native_dropout segment_reduce
        sym_constrain_range_for_size sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum while_loop
    """,
    "_dynamo": """
        OptimizedModule allow_in_graph assume_constant_result config disable disallow_in_graph error_on_graph_break
        eval_frame exc explain export external_utils forbid_in_graph graph_break is_compiling is_dynamo_supported
        is_inductor_supported list_backends lookup_backend mark_dynamic mark_static mark_static_address
        maybe_mark_dynamic nonstrict_trace optimize optimize_assert patch_dynamo_config register_backend reset run
        set_stance substitute_in_graph utils
    """,
    "_dynamo.config": """
        accumulated_cache_size_limit automatic_dynamic_shapes cache_size_limit capture_scalar_outputs
        inline_inbuilt_nn_modules optimize_ddp patch recompile_limit suppress_errors verbose
    """,
    "_dynamo.eval_frame": "OptimizedModule innermost_fn optimize",
    "_dynamo.exc": "BackendCompilerFailed InvalidBackend TorchDynamoException Unsupported UserError",
    "_dynamo.external_utils": "is_compiling wrap_inline",
    "_dynamo.utils": "compile_times counters is_compile_supported",
    "_C._functorch": "_add_batch_dim _remove_batch_dim get_unwrapped is_batchedtensor maybe_get_level",
    "_functorch.apis": "grad grad_and_value vmap",
    "_functorch.eager_transforms": "functionalize hessian jacfwd jacrev jvp vjp",
    "_functorch.vmap": """
        Tensor _add_batch_dim _broadcast_to_and_flatten _get_name _maybe_remove_batch_dim _remove_batch_dim
        is_batchedtensor tree_flatten tree_map_ tree_unflatten
    """,
    "_guards": "CompileContext TracingContext active_fake_mode detect_fake_mode",
    "_higher_order_ops": "associative_scan cond map scan while_loop",
    "_higher_order_ops.associative_scan": "associative_scan",
    "_higher_order_ops.cond": "cond",
    "_higher_order_ops.map": "map",
    "_higher_order_ops.scan": "scan",
    "_higher_order_ops.while_loop": "while_loop",
    "_inductor": "aoti_load_package compile config list_mode_options list_options",
    "_inductor.config": """
        aot_inductor compile_threads coordinate_descent_tuning cpp epilogue_fusion fx_graph_cache max_autotune
        shape_padding trace triton
    """,
    "_jit_internal": """
        BroadcastingList1 BroadcastingList2 BroadcastingList3 Final FunctionModifiers _copy_to_script_wrapper
        _is_exception _overload _overload_method _qualified_name boolean_dispatch export get_torchscript_modifier
        ignore is_dict is_list is_optional is_scripting is_tuple unused
    """,
    "_subclasses": "FakeTensor FakeTensorMode",
    "_subclasses.fake_tensor": "FakeTensor FakeTensorMode",
    "_tensor": "Tensor _convert _rebuild_from_type_v2",
    "_tensor_str": "PRINT_OPTS _str get_printoptions set_printoptions",
    "_utils": """
        ExceptionWrapper KeyErrorMessage _element_size _flatten_dense_tensors _get_all_device_indices
        _get_available_device_type _get_device_index _handle_complex _import_dotted_name _rebuild_parameter
        _rebuild_tensor_v2 _reorder_tensors_as _take_tensors _unflatten_dense_tensors classproperty cpu_count
        is_compiling render_call
    """,
    "accelerator": """
        current_accelerator current_device_idx current_device_index current_stream device_count device_index
        empty_cache empty_host_cache get_device_capability get_memory_info is_available max_memory_allocated
        max_memory_reserved memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats
        reset_peak_memory_stats set_device_idx set_device_index set_stream synchronize
    """,
    "ao.nn.quantized": "Conv2d FloatFunctional Linear dynamic",
    "ao.quantization": "DeQuantStub QConfig QuantStub QuantWrapper convert prepare quantize_dynamic",
    "ao.quantization.observer": "HistogramObserver MinMaxObserver ObserverBase PerChannelMinMaxObserver",
    "ao.quantization.qconfig": "QConfig default_qconfig get_default_qconfig",
    "autograd": "_profiler_enabled",
    "autograd.forward_ad": "_current_level",
    "backends": "disable_global_flags flags_frozen cpu cudnn mha miopen mkldnn mps nnpack opt_einsum quantized",
    "backends.cpu": "get_cpu_capability",
    "backends.cuda": """
        SDPAParams allow_fp16_bf16_reduction_math_sdp can_use_cudnn_attention can_use_efficient_attention
        can_use_flash_attention fp16_bf16_reduction_math_sdp_allowed is_flash_attention_available
    """,
    "backends.mps": "is_available is_built is_macos_or_newer",
    "compiler": """
        allow_in_graph assume_constant_result compile cudagraph_mark_step_begin disable get_default_backend
        is_compiling is_dynamo_compiling is_exporting list_backends load_cache_artifacts load_compiled_function
        nested_compile_region reset save_cache_artifacts set_default_backend set_enable_guard_collectives set_stance
        substitute_in_graph wrap_numpy
    """,
    "cpu": """
        Event Stream StreamContext amp current_device current_stream device_count get_capabilities is_available
        is_initialized set_device stream synchronize
    """,
    "cuda": """
        BoolTensor ByteTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor _initialized cudart
        default_generators get_arch_list get_gencode_flags max_memory_cached memory_cached profiler
        reset_max_memory_allocated reset_max_memory_cached sparse
    """,
    "cuda.amp": "amp_definitely_not_available",
    "cuda.amp.common": "amp_definitely_not_available",
    "cuda.profiler": "profile start stop",
    "cuda.sparse": "DoubleTensor FloatTensor HalfTensor",
    "distributed": """
        Backend DeviceMesh FileStore GradBucket GroupMember HashStore P2POp PrefixStore ProcessGroup ReduceOp Store
        TCPStore Work _all_gather_base _rank_not_in_group _reduce_scatter_base all_gather all_gather_into_tensor
        all_gather_object all_reduce all_to_all all_to_all_single barrier batch_isend_irecv broadcast
        broadcast_object_list constants destroy_process_group device_mesh distributed_c10d gather gather_object
        get_backend get_global_rank get_group_rank get_process_group_ranks get_rank get_world_size group
        init_device_mesh init_process_group irecv is_available is_gloo_available is_initialized is_mpi_available
        is_nccl_available is_torchelastic_launched isend monitored_barrier new_group new_subgroups recv recv_object_list
        reduce reduce_op reduce_scatter reduce_scatter_tensor rendezvous scatter scatter_object_list send
        send_object_list split_group
    """,
    "distributed._composable": "checkpoint contract replicate",
    "distributed._composable.fsdp": "FSDPModule fully_shard",
    "distributed._functional_collectives": """
        AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single all_to_all_single_autograd
        reduce_scatter_tensor wait_tensor
    """,
    "distributed._shard.sharded_tensor": "Shard ShardMetadata ShardedTensor",
    "distributed._shard.sharding_spec": "ChunkShardingSpec EnumerableShardingSpec ShardMetadata ShardingSpec",
    "distributed._tensor": "DTensor DeviceMesh Replicate Shard distribute_tensor",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": """
        CheckpointImpl CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper
    """,
    "distributed.algorithms.ddp_comm_hooks": "DDPCommHookType register_ddp_comm_hook",
    "distributed.algorithms.ddp_comm_hooks.debugging_hooks": "noop_hook",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": """
        allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper
    """,
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "PostLocalSGDState post_localSGD_hook",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState batched_powerSGD_hook powerSGD_hook",
    "distributed.algorithms.join": "Join JoinHook Joinable",
    "distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "distributed.algorithms.model_averaging.utils": "average_parameters get_params_to_average",
    "distributed.checkpoint": """
        CheckpointException DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter LoadPlanner
        SavePlanner StorageReader StorageWriter async_save load load_state_dict save save_state_dict
    """,
    "distributed.checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner _EmptyStateDictLoadPlanner",
    "distributed.checkpoint.format_utils": "dcp_to_torch_save torch_save_to_dcp",
    "distributed.checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "distributed.checkpoint.state_dict": """
        StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict
        set_optimizer_state_dict set_state_dict
    """,
    "distributed.checkpoint.state_dict_loader": "_load_state_dict load load_state_dict",
    "distributed.checkpoint.state_dict_saver": "async_save save save_state_dict",
    "distributed.checkpoint.stateful": "Stateful",
    "distributed.constants": "default_pg_timeout",
    "distributed.device_mesh": "DeviceMesh init_device_mesh",
    "distributed.distributed_c10d": """
        GroupMember ProcessGroup ReduceOp _get_default_group _get_default_store _rank_not_in_group
        _resolve_process_group default_pg_timeout is_nccl_available rendezvous
    """,
    "distributed.elastic.multiprocessing": "DefaultLogsSpecs LogsSpecs Std",
    "distributed.elastic.multiprocessing.errors": "ChildFailedError ErrorHandler ProcessFailure record",
    "distributed.fsdp": """
        BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FlatParameter FullOptimStateDictConfig
        FullStateDictConfig FullyShardedDataParallel LocalStateDictConfig MixedPrecision MixedPrecisionPolicy
        OffloadPolicy OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy
        StateDictConfig StateDictType fully_shard register_fsdp_forward_method
    """,
    "distributed.fsdp._common_utils": "FSDP_PREFIX FSDP_WRAPPED_MODULE clean_tensor_name",
    "distributed.fsdp.api": "BackwardPrefetch CPUOffload MixedPrecision ShardingStrategy StateDictType",
    "distributed.fsdp.fully_sharded_data_parallel": """
        CPUOffload FullStateDictConfig FullyShardedDataParallel MixedPrecision ShardingStrategy StateDictType
    """,
    "distributed.fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "distributed.fsdp.wrap": """
        CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy
        size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
    """,
    "distributed.launcher.api": "LaunchConfig elastic_launch launch_agent",
    "distributed.nn": "all_gather all_reduce broadcast reduce_scatter",
    "distributed.nn.functional": """
        all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter
    """,
    "distributed.optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
    "distributed.pipelining": "PipelineStage Schedule1F1B ScheduleGPipe SplitPoint build_stage pipe_split pipeline",
    "distributed.rpc": "RRef TensorPipeRpcBackendOptions init_rpc is_available remote rpc_async rpc_sync shutdown",
    "distributed.run": "get_args_parser main parse_args run",
    "distributed.tensor": """
        DTensor Partial Placement Replicate Shard distribute_module distribute_tensor init_device_mesh ones zeros
    """,
    "distributed.tensor.experimental": "context_parallel implicit_replication local_map",
    "distributed.tensor.parallel": """
        ColwiseParallel PrepareModuleInput PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel
        parallelize_module
    """,
    "distributed.tensor.placement_types": "Partial Placement Replicate Shard _StridedShard",
    "distributed.utils": """
        _apply_to_tensors _pack_kwargs _recursive_to _replace_by_prefix _sync_module_states _to_kwargs _unpack_kwargs
        _verify_param_shape_across_processes
    """,
    "distributions.constraint_registry": "ConstraintRegistry biject_to transform_to",
    "distributions.constraints": """
        Constraint MixtureSameFamilyConstraint _Boolean _Cat _CorrCholesky _Dependent _DependentProperty _GreaterThan
        _GreaterThanEq _HalfOpenInterval _IndependentConstraint _IntegerGreaterThan _IntegerInterval _IntegerLessThan
        _Interval _LessThan _LowerCholesky _LowerTriangular _Multinomial _OneHot _PositiveDefinite
        _PositiveSemidefinite _Real _Simplex _Square _Stack _Symmetric cat dependent_property is_dependent stack
    """,
    "distributions.distribution": "Distribution",
    "distributions.kl": "kl_divergence register_kl",
    "distributions.multivariate_normal": """
        MultivariateNormal _batch_mahalanobis _batch_mv _precision_to_scale_tril _standard_normal
    """,
    "distributions.relaxed_bernoulli": "LogitRelaxedBernoulli",
    "distributions.relaxed_categorical": "ExpRelaxedCategorical",
    "distributions.transforms": "ComposeTransform Transform _InverseTransform _clipped_sigmoid identity_transform",
    "distributions.utils": """
        _standard_normal _sum_rightmost broadcast_all clamp_probs euler_constant lazy_property logits_to_probs
        probs_to_logits tril_matrix_to_vec vec_to_tril_matrix
    """,
    "export": """
        AdditionalInputs Dim ExportedProgram ShapesCollection UnflattenedModule default_decompositions dims
        draft_export dynamic_shapes export exported_program load register_dataclass save unflatten
    """,
    "export.dynamic_shapes": "AdditionalInputs Dim ShapesCollection dims",
    "export.exported_program": "ExportedProgram",
    "futures": "Future collect_all wait_all",
    "hub": """
        DEFAULT_CACHE_DIR ENV_TORCH_HOME ENV_XDG_CACHE_HOME HASH_REGEX MODULE_HUBCONF READ_DATA_CHUNK VAR_DEPENDENCY
        _get_torch_home download_url_to_file get_dir help list load load_state_dict_from_url set_dir tqdm urlparse
    """,
    "jit": """
        Attribute CompilationUnit Error Final RecursiveScriptModule ScriptFunction ScriptModule TopLevelTracedModule
        TracedModule TracerWarning TracingCheckError _drop _overload _overload_method _recursive _script
        _script_if_tracing _trace annotate annotations enable_onednn_fusion export freeze fuser ignore interface
        is_scripting is_tracing isinstance load onednn_fusion_enabled optimize_for_inference optimized_execution
        run_frozen_optimizations save script script_if_tracing script_method set_fusion_strategy strict_fusion trace
        trace_module unused
    """,
    "jit._recursive": "create_script_module infer_methods_to_compile wrap_cpp_module",
    "jit._script": "RecursiveScriptModule ScriptModule",
    "jit._trace": "TopLevelTracedModule is_tracing",
    "jit.annotations": "BroadcastingList2 Dict List Optional Tuple Union",
    "mps": """
        Event compile_shader current_allocated_memory device_count driver_allocated_memory empty_cache get_rng_state
        is_available manual_seed profiler recommended_max_memory seed set_per_process_memory_fraction set_rng_state
        synchronize
    """,
    "mps.event": "Event",
    "mps.profiler": "is_capturing_metal is_metal_capture_enabled metal_capture profile start stop",
    "mtia": """
        Event Stream current_device current_stream device device_count empty_cache init is_available is_initialized
        manual_seed max_memory_allocated memory_stats set_device synchronize
    """,
    "multiprocessing": "spawn start_processes",
    "nested": "as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor",
    "nn._reduction": "get_enum legacy_get_enum legacy_get_string",
    "nn.attention.flex_attention": """
        AuxOutput AuxRequest BlockMask and_masks create_block_mask create_mask flex_attention noop_mask or_masks
        _mask_mod_signature _score_mod_signature
    """,
    "nn.modules.channelshuffle": "ChannelShuffle",
    "nn.modules.container": "ModuleList ParameterDict ParameterList",
    "nn.modules.conv": "LazyConv2d LazyConvTranspose3d _ConvNd _ConvTransposeNd _LazyConvXdMixin",
    "nn.modules.linear": "LazyLinear",
    "nn.modules.linear_cross_entropy_options": "LinearCrossEntropyOptions",
    "nn.modules.loss": "LinearCrossEntropyLoss MarginRankingLoss TripletMarginLoss TripletMarginWithDistanceLoss",
    "nn.modules.padding": "_CircularPadNd _ConstantPadNd _ReflectionPadNd _ReplicationPadNd",
    "nn.modules.pooling": """
        FractionalMaxPool2d MaxUnpool2d _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _AvgPoolNd _LPPoolNd _MaxUnpoolNd
    """,
    "nn.parallel._functions": "Broadcast Gather ReduceAddCoalesced Scatter _get_stream",
    "nn.parallel.parallel_apply": "parallel_apply",
    "nn.parallel.replicate": "replicate",
    "optim._functional": """
        adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd sparse_adam
    """,
    "optim.adamw": "AdamW adamw",
    "optim.lr_scheduler": "EPOCH_DEPRECATION_WARNING _LRScheduler _enable_get_lr_call _initial_mode",
    "nn.init": "_no_grad_fill_ _no_grad_normal_ _no_grad_trunc_normal_ _no_grad_uniform_ _no_grad_zero_",
    "nn.modules.module": """
        _EXTRA_STATE_KEY_SUFFIX _global_backward_hooks _global_backward_pre_hooks _global_forward_hooks
        _global_forward_pre_hooks
    """,
    "nn.modules.transformer": "_get_activation_fn",
    "nn.quantized": "FloatFunctional Linear dynamic",
    "onnx": """
        ONNXProgram OnnxExporterError OperatorExportTypes TensorProtoDataType TrainingMode errors export
        is_in_onnx_export operators producer_name register_custom_op_symbolic select_model_mode_for_export
        symbolic_helper unregister_custom_op_symbolic utils
    """,
    "onnx.errors": "OnnxExporterError OnnxExporterWarning SymbolicValueError UnsupportedOperatorError",
    "onnx.operators": "reshape_from_tensor_shape shape_as_tensor",
    "onnx.symbolic_helper": "_get_tensor_dim_size _maybe_get_const _unimplemented parse_args quantized_args",
    "onnx.symbolic_opset9": "add relu",
    "onnx.symbolic_opset11": "clamp",
    "onnx.symbolic_opset12": "einsum",
    "onnx.utils": "export register_custom_op_symbolic select_model_mode_for_export",
    "ops": "aten load_library quantized_decomposed torchvision _c10d_functional",
    "quasirandom": "SobolEngine",
    "nn.utils.stateless": "_reparametrize_module functional_call",
    "optim.optimizer": """
        _RequiredParameter _default_to_fused_or_foreach _device_dtype_check_for_fused _disable_dynamo_if_unsupported
        _get_capturable_supported_devices _get_scalar_dtype _get_value _stack_if_compiling _to_scalar
        _use_grad_for_differentiable _view_as_real
    """,
    "profiler": "kineto_available",
    "utils._config_module": "ConfigModule install_config_module",
    "nn.functional": "ScalingType SwizzleType grouped_mm scaled_mm",
    "quantization": "QConfig QuantStub prepare",
    "quantization.observer": "HistogramObserver MinMaxObserver ObserverBase PerChannelMinMaxObserver",
    "quantization.qconfig": "QConfig default_qconfig",
    "utils": "swap_tensors",
    "utils._contextlib": "_DecoratorContextManager _NoParamDecoratorContextManager context_decorator",
    "nn.utils.clip_grad": "_clip_grads_with_norm_ _get_total_norm",
    "utils.checkpoint": "_get_device_module _infer_device_type",
    "utils._device": "DeviceContext device_decorator set_device",
    "utils._traceback": """
        CapturedTraceback format_frame format_traceback_short report_compile_source_on_error shorten_filename
    """,
    "utils.collect_env": "SystemEnv get_env_info get_pretty_env_info main pretty_str",
    "utils._foreach_utils": """
        _device_has_foreach_support _get_foreach_kernels_supported_devices _get_fused_kernels_supported_devices
        _group_tensors_by_device_and_dtype _has_foreach_support
    """,
    "utils.cpp_extension": """
        BuildExtension CUDAExtension CUDA_HOME CppExtension include_paths is_ninja_available library_paths load
        load_inline verify_ninja_availability
    """,
    "utils.data": "IterDataPipe MapDataPipe _DatasetKind datapipes functional_datapipe graph_settings",
    "utils.data._utils.collate": """
        collate collate_float_fn collate_int_fn collate_numpy_array_fn collate_numpy_scalar_fn collate_str_fn
        collate_tensor_fn default_collate default_collate_err_msg_format default_collate_fn_map
        np_str_obj_array_pattern
    """,
    "utils.data._utils.pin_memory": "pin_memory",
    "utils.data._utils.worker": "WorkerInfo _generate_state get_worker_info",
    "utils.data.dataloader": """
        DataLoader _BaseDataLoaderIter _DatasetKind _MultiProcessingDataLoaderIter _SingleProcessDataLoaderIter
        _collate_fn_t _worker_init_fn_t
    """,
    "utils.data.graph_settings": "apply_random_seed apply_sharding apply_shuffle_settings get_all_graph_pipes",
    "utils.benchmark": "Compare Measurement TaskSpec Timer select_unit set_torch_threads timer trim_sigfig",
    "utils.benchmark.utils.common": "Measurement TaskSpec",
    "utils.benchmark.utils.compare": "Compare",
    "utils.benchmark.utils.timer": "Language Timer timer",
    "utils._pytree": """
        BUILTIN_TYPES Context GetAttrKey KeyEntry KeyPath LeafSpec MappingKey NodeDef PyTree SUPPORTED_NODES
        SequenceKey TreeSpec _broadcast_to_and_flatten _defaultdict_flatten _deque_flatten _dict_flatten
        _dict_flatten_with_keys _dict_unflatten _get_node_type _is_leaf _list_flatten _list_flatten_with_keys
        _list_unflatten _namedtuple_flatten _ordereddict_flatten _register_namedtuple _register_pytree_node
        _tuple_flatten arg_tree_leaves is_namedtuple_instance is_structseq_instance key_get keystr map_only
        register_constant register_dataclass register_pytree_node tree_all tree_any tree_flatten
        tree_flatten_with_path tree_is_leaf tree_iter tree_leaves tree_leaves_with_path tree_map tree_map_
        tree_map_only tree_map_only_ tree_map_with_path tree_structure tree_unflatten treespec_dumps treespec_loads
        treespec_pprint
    """,
    "utils.model_zoo": "load_url tqdm",
    "utils.weak": "TensorWeakRef WeakIdKeyDictionary WeakIdRef WeakTensorKeyDictionary",
    "xpu": """
        Event Stream StreamContext current_device device device_count device_of empty_cache get_device_name
        get_device_properties init initial_seed is_available is_bf16_supported is_initialized manual_seed
        manual_seed_all max_memory_allocated mem_get_info memory_allocated memory_stats random seed set_device stream
        streams synchronize
    """,
    "xpu.memory": "empty_cache max_memory_allocated memory_allocated",
    "xpu.random": "get_rng_state manual_seed manual_seed_all",
    "xpu.streams": "Event Stream",
}
METHODS = {
    "optim.Optimizer": "_patch_step_function",
    "distributions.Distribution": "_get_checked_instance _validate_args _validate_sample expand",
    "distributions.Transform": "_inv_call bijective event_dim sign with_cache",
    "distributions.Normal": "_get_checked_instance",
}


def missing(library):
    """The names of the list that a library, by its name, lacks."""
    modules = {name: import_module(f"{library}.{name}".rstrip(".")) for name in NAMES}
    return [f"{name}.{each}" for name in NAMES for each in NAMES[name].split() if not hasattr(modules[name], each)]


def test_names():
    assert missing("cygrad") == []


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    module, _, cls = name.rpartition(".")
    found = getattr(import_module(f"cygrad.{module}"), cls)
    assert [each for each in METHODS[name].split() if each not in dir(found)] == []


def test_names_by_the_name_of_pytorch():
    lines = [
        f"from torch.{module} import {each}"
        if "." in module
        else f"import torch.{module}; torch.{module}.{each}"
        if module
        else f"from torch import {each}"
        for module, names in NAMES.items()
        for each in names.split()
    ]
    command = [sys.executable, "-W", "ignore", "-m", "cygrad", "-"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning", "ignore:.*is deprecated:DeprecationWarning")
def test_names_are_those_of_pytorch():
    assert missing("torch") == []
