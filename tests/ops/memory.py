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
            2.25: "norm",  # from NumPy 2.5 on, which copies what LAPACK overwrites
        },
    ),
    (
        "found by NumPy's orders, whose indices have 8 bytes and which copy what they sort",
        {
            0.75: "msort",
            1.25: "unique",
        },
    ),
    (
        "a copy in the order, of the length or in the type in which the loops read",
        {
            0.75: "instance_norm istft",
        },
    ),
    (
        "made of ops that PyTorch makes it of, under its nodes' names: the result of one is the operand of the next",
        {
            1.0: "cartesian_prod",
        },
    ),
)

# The same of gradients
BACKWARDS = _table(
    (
        "of factors and solutions: products of whole matrices",
        {
            0.75: "norm linalg_eigvals linalg_matrix_exp",
            1.0: "cov corrcoef linalg_lu_solve",
            1.25: "orgqr",
        },
    ),
    (
        "sums by NumPy, where an image has too few elements for loops of our own",
        {
            0.75: "instance_norm",
        },
    ),
    (
        "a copy in the order, of the length or in the type in which the loops read",
        {
            0.5: "scaled_dot_product_attention masked_scatter",
        },
    ),
    (
        "of all steps, or of all heads, or of all sections, at once",
        {
            0.5: "stft",  # that of the signal with what stands beside it
            1.0: "istft",
            2.0: "multi_head_attention_forward",
        },
    ),
    (
        "running or whole products, sums and norms along a dimension, right where elements are 0 or infinite",
        {
            1.25: "cumprod",
            1.75: "vander",
            2.0: "renorm",
        },
    ),
)
