"""Ops that need more memory than their results, what they save and a block: how much, and why.

Sizes are in arrays as large as the largest of the operands and the results, with the Python and NumPy that take most.
Comments say what PyTorch 2.13 needs of the same operands beside what it returns, by the peak of its process's memory.
"""


def _table(*groups):
    """{name of a row: (size, reason)}."""
    return {name: (size, why) for why, by_size in groups for size, names in by_size.items() for name in names.split()}


FORWARDS = _table(
    (
        "by LAPACK through NumPy, in double precision, or with copies of what it overwrites",
        {
            2.25: "norm",  # of few large matrices; from NumPy 2.5 on, which copies what LAPACK overwrites; PyTorch 1.0
        },
    ),
    (
        "found by NumPy's orders: indices of 8 bytes, and a dense copy, of each of few columns",
        {
            0.75: "msort",  # PyTorch 2.3, with the indices
        },
    ),
)

# The same of gradients
BACKWARDS = _table(
    (
        "of the padded signal, from which that of the signal is cut",
        {
            0.5: "stft",  # PyTorch 3.0: all sections, too
        },
    ),
    (
        "of projected keys and values of all heads, and of one of these in the order of the projection",
        {
            2.0: "multi_head_attention_forward",  # PyTorch 2.0
        },
    ),
)
