"""The names of overloads in PyTorch's library, of ops that have others than `default`."""

from functools import cache

from cygrad._ops.foreach.table import TABLE as FOREACH

# {names of overloads: names of ops, whose in-place forms have them, too}
_OVERLOADS = {
    "Scalar Tensor": """
        add bucketize copysign fill float_power_ floor_divide_ fmod ge greater greater_equal gt le lerp less
        less_equal lt masked_fill mul multiply not_equal pow_ rsub searchsorted sub subtract true_divide
    """,
    "default n_scalar x_scalar": """
        special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
        special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
        special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
        special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
        special_shifted_chebyshev_polynomial_w
    """,
    "default vec": """
        _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d
        upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
        upsample_trilinear3d
    """,
    "int": "log_softmax select select_copy softmax transpose transpose_copy unbind unbind_copy unflatten",
    "Tensor": "_unsafe_index frexp ldexp slice slice_copy split_copy unsafe_split",
    "Tensor default": "clamp clamp_max clamp_min clip copy_ narrow",
    "default dtype": "addmm baddbmm bmm mm view view_copy",
    "Scalar Scalar_Tensor Tensor": "bitwise_and bitwise_or bitwise_xor remainder result_type",
    "default generator": "rand rand_like randn randn_like randperm",
    "correction default dim": "std std_mean var var_mean",
    "data input": "gru lstm rnn_relu rnn_tanh",
    "default dim dims": "all any squeeze squeeze_copy",
    "default int": "size stride sym_size sym_stride",
    "Sequence default": "atleast_1d atleast_2d atleast_3d",
    "array int": "dsplit hsplit vsplit",
    "default other_scalar self_scalar": "special_xlog1py special_xlogy special_zeta",
    "default padding": "conv1d conv2d conv3d",
    "default periodic": "bartlett_window blackman_window hann_window",
    "dx x": "cumulative_trapezoid trapezoid trapz",
    "Scalar Scalar_mode Tensor Tensor_mode": "div divide",
    "Scalar Tensor Tensor_list": "eq ne",
    "Scalar Tensor_Scalar Tensor_Tensor": "float_power pow",
    "Scalar_Tensor Tensor Tensor_Scalar": "bitwise_left_shift bitwise_right_shift",
    "Scalar_Tensor Tensor_Scalar Tensor_Tensor default": "linspace logspace",
    "default dim": "mean nuclear_norm",
    "default dim dim_values": "median nanmedian",
    "default dim_IntList": "count_nonzero sum",
    "default output": "log_sigmoid_forward nll_loss_forward",
    "input": "conv_transpose2d conv_transpose3d",
    "int intlist": "moveaxis movedim",
    "Dict_Tensor default": "copy",
    "IntList Tensor": "ctc_loss",
    "OutScalar_Other OutScalar_Self OutTensor Scalar_Other Scalar_Self Tensor": "xlogy",
    "Scalar ScalarOpt_dim ScalarOpt_dim_dtype ScalarOpt_dtype": "norm",
    "Scalar ScalarOther ScalarSelf default self": "where",
    "Scalar default": "floor_divide",
    "Scalar_Tensor Tensor_Scalar Tensor_Tensor": "isin",
    "Tensor Tensor_generator default generator low_dtype low_generator_dtype": "randint_like",
    "Tensor default p": "bernoulli",
    "Tensor default sizes": "split",
    "Tensor default stable values_stable": "sort",
    "Tensor list_Tensor": "index",
    "Tensor self_Tensor self_int": "repeat_interleave",
    "TensorList default": "backward",
    "TensorList_bins default int_bins": "histogramdd",
    "Tensor_Tensor Tensor_float float_Tensor float_float": "normal",
    "array scalararray scalarint scalarrayarray scalarrayint tensorarray tensorarrayint": "gradient",
    "atol_rtol_float atol_rtol_tensor default rcond_tensor": "linalg_pinv",
    "atol_rtol_float atol_rtol_tensor default tol_tensor": "linalg_matrix_rank",
    "beta default periodic": "kaiser_window",
    "bin_ct bins_tensor": "histogram",
    "center default": "stft",
    "decimals default": "round",
    "default deprecated": "_convolution",
    "default dim dim_max other": "max",
    "default dim dim_min other": "min",
    "default dim_int": "prod",
    "default eigvals": "linalg_eigh",
    "default from to": "random_",
    "default generator low low_generator": "randint",
    "default indexing": "meshgrid",
    "default m": "eye",
    "default memory_format": "is_contiguous",
    "default msg": "_assert_async",
    "default no_stats": "_native_batch_norm_legit",
    "default ord_str": "linalg_norm",
    "default p_str": "linalg_cond",
    "default padding_idx": "embedding_bag",
    "default periodic periodic_alpha periodic_alpha_beta": "hamming_window",
    "default quantized": "_scaled_dot_product_flash_attention",
    "default source_Storage source_Storage_storage_offset source_Tensor source_Tensor_storage_offset": "set_",
    "default stable": "argsort",
    "default start start_step": "arange",
    "default step": "range",
    "default str_ord": "linalg_matrix_norm",
    "default sublist": "einsum",
    "device dtype other": "to",
    "dim": "frobenius_norm",
    "indices sections tensor_indices_or_sections": "tensor_split",
    "int_Scalar int_Tensor": "index_fill",
    "memory_format": "empty",
    "reduce src value value_reduce": "scatter",
    "two": "scatter_reduce",
    "using_ints": "flatten",
}


@cache
def _by_op() -> dict[str, list[str]]:
    found = {name: overloads.split() for overloads, names in _OVERLOADS.items() for name in names.split()}
    for name, row in FOREACH.items():
        found[f"_foreach_{name}"] = list(row.signatures)
    return found


def overloads_of(name: str) -> list[str]:
    """Return the names of an op's overloads, without those that write to `out`.

    >>> from cygrad.ops._overload_names import overloads_of
    >>> overloads_of("any"), overloads_of("add_"), overloads_of("mm_"), overloads_of("sin")
    (['default', 'dim', 'dims'], ['Scalar', 'Tensor'], ['default'], ['default'])
    """
    known = _by_op()
    return known.get(name) or known.get(name.removesuffix("_")) or ["default"]
