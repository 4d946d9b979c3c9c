"""Types of parameters, by their names.

A name means the same thing in almost all functions, as in PyTorch; `IN` has the exceptions. What no table names has the
type of its default, and is a tensor if that does not tell.
"""

from inspect import Parameter

NUMBER = "Number | complex"
OPERAND = f"Tensor | {NUMBER}"
INTS = "int | Sequence[int]"
INDEX = "SupportsIndex | slice | EllipsisType | Tensor | list[Any] | tuple[Any, ...] | np.ndarray[Any, Any] | None"


def by_name(names_of_types: dict[str, str]) -> dict[str, str]:
    """Return {name: type} for {type: names}."""
    return {name: kind for kind, names in names_of_types.items() for name in names.split()}


NAMED = by_name(
    {
        "Any": (
            "buffer data ext_tensor f obj options pickle_module recipe_a recipe_b scale_recipe_a scale_recipe_b state "
            "swizzle_a swizzle_b tracker"
        ),
        "Callable[..., Any]": "distance_function func",
        "Callable[..., Tensor | None]": "hook",
        "Callable[..., float]": "callable",
        "Device": "device",
        "Generator": "generator",
        "Sequence[Tensor]": "tensors",
        OPERAND: "exponent max min other",
        NUMBER: "alpha beta dx end fill_value lambd maxnorm s start value",
        f"{NUMBER} | None": "correction",
        INTS: "blocksize destination dilation kernel_size output_padding output_size padding shifts stride",
        "Sequence[int]": "dims normalized_shape pad physical_layout shape size sizes split_sizes",
        "bool": (
            "add_zero_attn align_corners align_to_window allow_unused center check_invariants create_graph "
            "cudnn_enabled full is_coalesced keepdims log_input masked_grad onesided recompute_scale_factor reduce "
            "retain_graph retain_variables return_complex size_average stable train training transposed unbiased "
            "use_input_stats"
        ),
        "dtype": "d dtype out_dtype output_dtype type1 type2",
        "float": "eps lower margin max_norm momentum nan neginf norm_type p posinf q scale std",
        "float | Sequence[float]": "output_ratio scale_factor",
        "int": (
            "C HxW M N axis axis0 axis1 bins chunk_size chunks col count dense_dim dim dim0 dim1 dim2 dimension "
            "divisor_override downscale_factor embed_dim_to_check from_ group groups hop_length ignore_index "
            "interpolation_mode k length m n n_fft niter num_groups num_heads num_samples offset padding_idx "
            "reduction repeats row sections seed sparse_dim split_size step steps storage_offset to upscale_factor "
            "win_length window_length"
        ),
        "layout": "layout",
        "memory_format": "memory_format",
        "np.ndarray[Any, Any]": "ndarray",
        "str": "driver norm padding_mode rounding_mode side",
    }
)

# {function.parameter: type}; names of functions without the underscore of those that change a tensor in place.
IN = by_name(
    {
        "Any": "record_stream.s set_default_tensor_type.t",
        "Callable[..., Tensor]": "triplet_margin_with_distance_loss.distance_function",
        "Sequence[Tensor | None] | None": "index_put.indices",
        "Sequence[Tensor]": "lstm_cell.hx",
        "Sequence[float]": "general_cosine.a histogram.range histogramdd.range",
        "Sequence[int]": (
            "as_strided.stride as_strided_scatter.stride convolution.dilation convolution.output_padding "
            "convolution.padding convolution.stride empty_strided.stride fft2.dim fft2.s fftn.dim fftn.s hfft2.dim "
            "hfft2.s hfftn.dim hfftn.s ifft2.dim ifft2.s ifftn.dim ifftn.s ihfft2.dim ihfft2.s ihfftn.dim ihfftn.s "
            "irfft2.dim irfft2.s irfftn.dim irfftn.s matrix_norm.dim new_empty_strided.stride rfft2.dim rfft2.s "
            "rfftn.dim rfftn.s set.stride"
        ),
        "Tensor": (
            "allclose.other arctan2.other atan2.other binomial.count cross.other dist.other dot.other equal.other "
            "expand_as.other fmax.other fmin.other gammainc.other gammaincc.other gcd.other ger.other hypot.other "
            "igamma.other igammac.other inner.other is_same_size.other isclose.other kron.other lcm.other ldexp.other "
            "lerp.end logaddexp.other logaddexp2.other logical_and.other logical_or.other logical_xor.other map.other "
            "matmul.other max.other maximum.other min.other minimum.other multi_head_attention_forward.value "
            "nextafter.other outer.other reshape_as.other scaled_dot_product_attention.value type_as.other vdot.other "
            "vecdot.other view_as.other"
        ),
        "Tensor | None": (
            "batch_norm.bias batch_norm.running_mean batch_norm.running_var batch_norm.weight convolution.bias "
            "instance_norm.bias instance_norm.running_mean instance_norm.running_var instance_norm.weight "
            "multi_head_attention_forward.bias_k multi_head_attention_forward.bias_v "
            "multi_head_attention_forward.in_proj_bias multi_head_attention_forward.in_proj_weight "
            "multi_head_attention_forward.out_proj_bias native_batch_norm.bias native_batch_norm.running_mean "
            "native_batch_norm.running_var native_batch_norm.weight native_group_norm.bias native_group_norm.weight "
            "native_layer_norm.bias native_layer_norm.weight"
        ),
        "Tensor | Sequence[Tensor | None]": "backward.grad_tensors backward.grad_variables grad.grad_outputs",
        "Tensor | GradientEdge | Sequence[Tensor | GradientEdge]": (
            "backward.inputs backward.tensors grad.inputs grad.outputs"
        ),
        "Tensor | Sequence[int]": "ctc_loss.input_lengths ctc_loss.target_lengths",
        "Tensor | UntypedStorage | TypedStorage": "set.source",
        "Tensor | float": (
            "bernoulli.p gaussian_nll_loss.var matrix_rank.atol matrix_rank.rtol matrix_rank.tol nanquantile.q "
            "pinv.atol pinv.rcond pinv.rtol quantile.q"
        ),
        "Tensor | int": "narrow.start repeat_interleave.repeats",
        "Tensor | int | Sequence[Tensor]": "histogram.bins",
        "Tensor | int | Sequence[int]": "tensor_split.indices tensor_split.indices_or_sections",
        OPERAND: (
            "add.input bitwise_and.input bitwise_left_shift.input bitwise_or.input bitwise_right_shift.input "
            "bitwise_xor.input bucketize.input div.input divide.input fill.value float_power.input floor_divide.input "
            "index_fill.value isin.elements isin.test_elements lerp.weight linspace.end linspace.start logspace.end "
            "logspace.start masked_fill.value mul.input multiply.input pow.input remainder.input result_type.tensor "
            "scatter.src searchsorted.input sub.input subtract.input true_divide.input where.input xlog1py.input "
            "xlogy.input zeta.input"
        ),
        NUMBER: (
            "dist.p hardshrink.lambd histc.max histc.min renorm.p rrelu.lower rrelu.upper softshrink.lambd "
            "threshold.threshold"
        ),
        f"{NUMBER} | Sequence[Number | complex] | Sequence[Tensor]": "gradient.spacing",
        INTS: (
            "all.axis all.dim amax.axis amax.dim amin.axis amin.dim any.axis any.dim count_nonzero.dim dsplit.indices "
            "dsplit.indices_or_sections fftshift.dim frobenius_norm.dim gradient.dim hash_tensor.dim hsplit.indices "
            "hsplit.indices_or_sections ifftshift.dim logsumexp.dim mean.axis moveaxis.source movedim.source "
            "nanmean.dim nansum.dim norm.dim nuclear_norm.dim roll.dims split.split_size split.split_size_or_sections "
            "squeeze.axis squeeze.dim std.axis std.dim std_mean.dim sum.axis tensordot.dims upsample_bilinear.size "
            "upsample_nearest.size var.axis var.dim var_mean.dim vector_norm.dim vsplit.indices "
            "vsplit.indices_or_sections"
        ),
        f"{INTS} | None": "interpolate.size mean.dim sum.dim upsample.size",
        f"{INTS} | Sequence[Tensor]": "histogramdd.bins",
        f"{INTS} | str": "conv1d.padding conv2d.padding conv3d.padding",
        "bool": "lobpcg.largest requires_grad.mode solve_triangular.upper",
        "dict[str, Any]": "lobpcg.ortho_bparams lobpcg.ortho_fparams lobpcg.ortho_iparams",
        "dtype": "can_cast.from_ can_cast.to",
        "float": (
            "cauchy.median cauchy.sigma exponential.lambd gumbel_softmax.tau lobpcg.tol log_normal.mean "
            "log_normal.std lstsq.rcond multi_head_attention_forward.dropout_p normal.mean normal.std uniform.from_ "
            "uniform.to"
        ),
        "float | str": "cond.p matrix_norm.ord norm.ord norm.p vector_norm.ord",
        "int": (
            "grid_sampler.padding_mode grid_sampler_2d.padding_mode grid_sampler_3d.padding_mode "
            "local_response_norm.size multi_margin_loss.p mvlgamma.p nonzero_static.fill_value nonzero_static.size "
            "select.index select_scatter.index slice_scatter.end slice_scatter.start unfold.size"
        ),
        "list[Any] | Tensor": (
            "sparse_bsc_tensor.ccol_indices sparse_bsc_tensor.row_indices sparse_bsc_tensor.values "
            "sparse_bsr_tensor.col_indices sparse_bsr_tensor.crow_indices sparse_bsr_tensor.values "
            "sparse_compressed_tensor.compressed_indices sparse_compressed_tensor.plain_indices "
            "sparse_compressed_tensor.values sparse_csc_tensor.ccol_indices sparse_csc_tensor.row_indices "
            "sparse_csc_tensor.values sparse_csr_tensor.col_indices sparse_csr_tensor.crow_indices "
            "sparse_csr_tensor.values"
        ),
        "list[Any] | Tensor | None": "sparse_coo_tensor.values",
        "Tensor | list[Tensor]": "scaled_mm.scale_a scaled_mm.scale_b",
        "int | None": "random.to",
        "dtype | None": "scaled_mm.output_dtype",
        f"{NUMBER} | None": "segment_reduce.initial",
        "str": "index_reduce.reduce lobpcg.method pad.mode scatter.reduce scatter_reduce.reduce segment_reduce.reduce",
    }
)


def type_of(function: str, parameter: Parameter, unknown: str) -> str:
    """Return the type of a parameter of the function of this name; `unknown` is that of those that nothing tells."""
    name, default = parameter.name, parameter.default
    kind = IN.get(f"{function.removesuffix('_').removeprefix('linalg_')}.{name}")
    if kind is None and type(default) not in (float, str) and unknown != "Any":
        kind = NAMED.get(name)
    if kind is None:
        of_default = {bool: "bool", int: "int", float: "float", str: "str", tuple: "Sequence[int]"}
        kind = of_default.get(type(default), unknown)
    if default is None and "None" not in kind.split(" | ") and kind not in ("Any", "Device"):
        kind += " | None"
    return kind
