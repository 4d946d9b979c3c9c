"""Ops that need more memory than their results, what they save and a block: how much, and why.

Sizes are in arrays as large as the largest of the operands and the results, with the Python and NumPy that take most.
"""


def _table(*groups):
    """{name of a row: (size, reason)}."""
    return {name: (size, why) for why, by_size in groups for size, names in by_size.items() for name in names.split()}


FORWARDS = _table(
    (
        "by LAPACK through NumPy, in double precision, or with copies of what it overwrites",
        {
            0.75: "linalg_lstsq",
            1.5: "norm",
            2.0: "orgqr linalg_lu_solve",
            7.0: "qr",
        },
    ),
    (
        "found by NumPy's orders, whose indices have 8 bytes and which copy what they sort",
        {
            0.75: "argsort median.dim nanmedian.dim",
            1.0: "median searchsorted bucketize",
            1.25: "unique mode",
            2.0: "nanmedian",
            3.25: "msort",
        },
    ),
    (
        "drawn by NumPy in double precision, or from tables",
        {
            5.0: "poisson",
            8.75: "multinomial",
            9.25: "binomial",
        },
    ),
    (
        "NumPy's indices, of which each dimension gets its own",
        {
            0.25: "one_hot",
            1.0: "unravel_index argwhere",
            2.0: "where.indices",
            4.0: "nonzero_static",
        },
    ),
    (
        "one compiled pass for each bound",
        {
            1.0: "clamp.Tensor",
        },
    ),
    (
        "a copy in the order, of the length or in the type in which the loops read",
        {
            0.25: "max_unpool2d pad.reflect2 pad.replicate2 pad.circular",
            0.5: "conv_transpose3d interpolate repeat max_unpool1d max_unpool3d pad.reflect3 pad.replicate3",
            0.75: ("conv3d cross_entropy.smoothed instance_norm avg_pool3d adaptive_avg_pool3d lp_pool2d istft pdist"),
            1.0: "conv1d ifft ihfft ihfftn ihfft2 cross_entropy.soft logsumexp max.dim min.dim nonzero stft",
            1.25: "prelu irfftn hfftn irfft2 hfft2 avg_pool1d adaptive_avg_pool1d",
            1.5: (
                "irfft hfft adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d "
                "adaptive_max_pool3d_with_indices lp_pool3d"
            ),
            1.75: "fractional_max_pool3d_with_indices",
            2.0: "adaptive_max_pool1d adaptive_max_pool1d_with_indices",
            3.25: "fractional_max_pool2d_with_indices",
        },
    ),
    (
        "made of other ops, whose results are kept where gradients are wanted",
        {
            0.5: "glu margin_ranking_loss",
            0.75: "soft_margin_loss baddbmm pairwise_distance",
            1.0: (
                "softmin gradient poisson_nll_loss hinge_embedding_loss linalg_vander addr l1_loss "
                "smooth_l1_loss.l1 local_response_norm frobenius_norm trapezoid trapz cartesian_prod "
                "cosine_similarity cosine_embedding_loss mvlgamma nansum nanmean isreal vander"
            ),
            1.5: "multilabel_soft_margin_loss cummax cummin cumulative_trapezoid quantile nanquantile",
            2.0: "ndtr",
            2.5: "multi_margin_loss multilabel_margin_loss",
            3.0: "gaussian_nll_loss",
            13.75: "combinations",
        },
    ),
)

# The same of gradients
BACKWARDS = _table(
    (
        "each gradient has the shape of the result before it is summed to that of its operand",
        {
            1.25: "masked_fill.Tensor",
        },
    ),
    (
        "of factors and solutions: products of whole matrices",
        {
            0.75: "norm linalg_eigvals linalg_matrix_exp",
            1.0: "linalg_norm",
            1.25: "linalg_matrix_norm",
            2.75: "ormqr",
            3.0: "qr orgqr linalg_lu_solve matrix_power",
        },
    ),
    (
        "sums by NumPy, where an image has too few elements for loops of our own",
        {
            2.25: "batch_norm group_norm",
            2.5: "instance_norm",
        },
    ),
    (
        "the rule is made of ops, and each has a result",
        {
            0.25: "repeat max_unpool3d expand_copy",
            0.5: ("conv_transpose3d interpolate margin_ranking_loss scaled_dot_product_attention masked_scatter"),
            0.75: (
                "conv3d linalg_vander avg_pool2d avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d pairwise_distance"
            ),
            1.0: (
                "tanhshrink softmin fft rfft fftn ifftn fft2 ifft2 index_select poisson_nll_loss gaussian_nll_loss "
                "hinge_embedding_loss trace cross_entropy.soft frobenius_norm diff avg_pool1d adaptive_avg_pool1d "
                "lp_pool2d lp_pool3d matmul.matrix_stack hsplit vsplit dsplit combinations prod prod.dim_int "
                "logsumexp var std linalg_vector_norm as_strided_scatter var_mean std_mean quantile nanquantile "
                "cov corrcoef take masked_select tensor_split"
            ),
            1.25: "cumprod trapezoid trapz amax amin frexp",
            1.5: "glu float_power bilinear ifft cross_entropy.smoothed lp_pool1d",
            1.75: "cumulative_trapezoid pad.reflect1 pad.replicate1 stft",
            2.0: (
                "softsign ihfft rfftn irfftn hfftn rfft2 irfft2 hfft2 cross_entropy.2d cross_entropy.deep "
                "cross_entropy.deep_none outer ger rnn_tanh rnn_relu pad.reflect2 pad.reflect3 pad.replicate2 "
                "pad.replicate3 pad.circular istft triplet_margin_loss triplet_margin_with_distance_loss "
                "multi_head_attention_forward"
            ),
            2.25: "prelu conv1d irfft hfft scatter_reduce index_reduce aminmax",
            2.5: "kron cosine_embedding_loss",
            3.0: "gradient ihfftn ihfft2 local_response_norm normalize cosine_similarity",
            3.25: "cummax cummin",
            4.0: "renorm multi_margin_loss",
            5.25: "pdist",
            5.75: "logcumsumexp",
            6.0: "vander",
            11.25: "cdist",
        },
    ),
)
