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
            2.25: "norm",  # from NumPy 2.5 on, which copies what LAPACK overwrites
        },
    ),
    (
        "found by NumPy's orders, whose indices have 8 bytes and which copy what they sort",
        {
            0.75: "msort",
        },
    ),
    (
        "a copy in the order, of the length or in the type in which the loops read",
        {
            0.75: "instance_norm",
        },
    ),
)

# The same of gradients
BACKWARDS = _table(
    (
        "of factors and solutions: products of whole matrices",
        {
            1.25: "linalg_lu_solve",
        },
    ),
    (
        "sums by NumPy, where an image has too few elements for loops of our own",
        {
            0.75: "instance_norm",
        },
    ),
    (
        "of both operands in double precision: what is saved are copies, so that a part can not be cast by itself",
        {
            1.5: "float_power",
        },
    ),
    (
        "weights of all keys, as many as there may be before attention is done by blocks",
        {
            0.5: "scaled_dot_product_attention",
        },
    ),
    (
        "of all steps, or of all heads, or of all sections, at once",
        {
            0.5: "stft",  # that of the signal with what stands beside it
            2.0: "multi_head_attention_forward",
        },
    ),
)
