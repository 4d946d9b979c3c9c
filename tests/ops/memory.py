"""Ops that need more memory than their results, their saved tensors and one chunk: how much, and why.

Sizes are multiples of the largest operand or result, for the Python and NumPy versions that need the most. Comments
state what PyTorch 2.13 needs for the same operands beyond its results, measured as the peak memory of its process.
"""


def _table(*groups):
    """Return {row name: (size, reason)}."""
    return {name: (size, why) for why, by_size in groups for size, names in by_size.items() for name in names.split()}


FORWARDS = _table(
    (
        "an int64 for each element, the segment it belongs to, and one for its place",
        {
            2.85: "segment_reduce",
        },
    ),
    (
        "a product for each group, all of which are then joined",
        {
            3.75: "_grouped_mm.ends",
        },
    ),
    (
        "numbers of 8 bytes for the elements of 4, and halves of them",
        {
            2.75: "hash_tensor",
        },
    ),
    (
        "by LAPACK through NumPy, in double precision, or with copies of what it overwrites",
        {
            2.25: "norm",  # for few large matrices; NumPy 2.5 and later copies what LAPACK overwrites; PyTorch 1.0
        },
    ),
    (
        "found by NumPy's orders: indices of 8 bytes, and a dense copy, of each of few columns",
        {
            0.75: "msort",  # PyTorch 2.3, including the indices
        },
    ),
)

# The same for gradients
BACKWARDS = _table(
    (
        "the segment of each element is found again, rather than kept by the graph",
        {
            1.92: "segment_reduce",
        },
    ),
    (
        "of the padded signal, from which that of the signal is cut",
        {
            0.5: "stft",  # PyTorch 3.0, including all frames
        },
    ),
    (
        "of projected keys and values of all heads, and of one of these in the order of the projection",
        {
            2.0: "multi_head_attention_forward",  # PyTorch 2.0
        },
    ),
    (
        "of a conjugate view, whose elements are written out before they are transformed",
        {
            1.3: "ifft ihfft",
        },
    ),
)
