"""Ops that need more memory than their results, what they save and a block: how much, and why.

Sizes are in arrays as large as the largest of the operands and the results, with the Python and NumPy that take most.
"""


def _table(*groups):
    """{name of a row: (size, reason)}."""
    return {name: (size, why) for why, by_size in groups for size, names in by_size.items() for name in names.split()}


FORWARDS = _table(
    (
        "tables of the places of the windows, which differ from plane to plane",
        {
            1.25: "fractional_max_pool2d_with_indices",
        },
    ),
    (
        "by LAPACK through NumPy, in double precision, or with copies of what it overwrites",
        {
            0.75: "linalg_lstsq",
            2.25: "norm",
            2.0: "orgqr linalg_lu_solve",
            7.0: "qr",
        },
    ),
    (
        "found by NumPy's orders, whose indices have 8 bytes and which copy what they sort",
        {
            0.75: "argsort median.dim nanmedian.dim",
            1.0: "median",
            1.25: "unique mode",
            1.5: "nanmedian",
            3.25: "msort",
        },
    ),
    (
        "drawn by NumPy in double precision, or from tables",
        {
            8.75: "multinomial",
            9.25: "binomial",
        },
    ),
    (
        "NumPy's indices, of which each dimension gets its own",
        {
            1.0: "unravel_index",
        },
    ),
    (
        "a copy in the order, of the length or in the type in which the loops read",
        {
            0.25: "pad.reflect2 pad.replicate2 pad.circular",
            0.5: "conv_transpose3d max_unpool1d max_unpool3d pad.reflect3 pad.replicate3",
            0.75: "conv3d cross_entropy.smoothed instance_norm istft pdist lp_pool3d",
            1.0: "conv1d ifft ihfft ihfftn ihfft2 cross_entropy.soft stft",
            1.25: "irfftn hfftn irfft2 hfft2",
            1.5: "irfft hfft",
        },
    ),
    (
        "made of other ops, whose results are kept where gradients are wanted",
        {
            0.5: "multilabel_margin_loss",
            0.75: "soft_margin_loss baddbmm pairwise_distance cummax cummin",
            1.0: (
                "softmin gradient linalg_vander addr "
                "local_response_norm frobenius_norm trapezoid trapz cartesian_prod "
                "cosine_similarity cosine_embedding_loss vander"
            ),
            1.5: "multilabel_soft_margin_loss cumulative_trapezoid quantile nanquantile",
            3.0: "combinations",
        },
    ),
)

# The same of gradients
BACKWARDS = _table(
    (
        "of factors and solutions: products of whole matrices",
        {
            0.75: "norm linalg_eigvals linalg_matrix_exp",
            2.75: "ormqr",
            3.0: "qr orgqr linalg_lu_solve matrix_power",
        },
    ),
    (
        "sums by NumPy, where an image has too few elements for loops of our own",
        {
            1.25: "group_norm",
            1.5: "batch_norm",
            2.0: "instance_norm",
        },
    ),
    (
        "the rule is made of ops, and each has a result",
        {
            0.25: "repeat expand_copy",
            0.5: "conv_transpose3d scaled_dot_product_attention masked_scatter",
            0.75: "conv3d linalg_vander",
            1.0: (
                "softmin fft rfft fftn ifftn fft2 ifft2 "
                "cross_entropy.soft diff lp_pool2d lp_pool3d matmul.matrix_stack hsplit "
                "vsplit dsplit as_strided_scatter var_mean std_mean quantile nanquantile cov corrcoef tensor_split"
            ),
            1.25: (
                "cumprod trapezoid trapz frexp lp_pool1d cross_entropy.2d cross_entropy.deep "
                "cross_entropy.deep_none triplet_margin_loss triplet_margin_with_distance_loss"
            ),
            1.5: "float_power bilinear ifft cross_entropy.smoothed aminmax",
            1.75: "cumulative_trapezoid stft",
            2.0: (
                "ihfft rfftn irfftn hfftn rfft2 irfft2 hfft2 rnn_tanh rnn_relu istft "
                "multi_head_attention_forward normalize cosine_similarity"
            ),
            2.25: "conv1d irfft hfft scatter_reduce index_reduce",
            2.5: "cosine_embedding_loss",
            3.0: "gradient ihfftn ihfft2 local_response_norm",
            4.0: "renorm",
            5.25: "pdist",
            5.75: "logcumsumexp",
            6.0: "vander",
        },
    ),
)
