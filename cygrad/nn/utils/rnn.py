"""Padding and packing of sequences of different lengths for recurrent layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cygrad
from cygrad import Tensor
from cygrad.nn.modules._packed_sequence import PackedSequence, invert_permutation

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def _rows_in_use(batch_sizes: Tensor, batch: int) -> Tensor:
    """Return the indices of the rows of (steps * batch) that hold sequence elements."""
    return (cygrad.arange(batch) < batch_sizes.unsqueeze(1)).flatten().nonzero().squeeze(1)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack the first `lengths[i]` steps of each sequence i of `input`, (T, N, *) or with `batch_first` (N, T, *).

    Lengths must be sorted in decreasing order, unless `enforce_sorted` is false: then the sequences are sorted here,
    and restored to their order by recurrent layers and `pad_packed_sequence`. Gradients flow to the rows that are kept.
    Raises RuntimeError for lengths that are unsorted, not positive, too long, or not one per sequence.

    >>> import cygrad
    >>> from cygrad.nn.utils.rnn import pack_padded_sequence
    >>> packed = pack_padded_sequence(cygrad.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    sizes: Tensor = cygrad.as_tensor(lengths, dtype=cygrad.int64)
    if sizes.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {sizes.ndim}D cpu Long tensor")
    order = None
    if not enforce_sorted:
        sizes, order = sizes.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    padded = input.transpose(0, 1) if batch_first else input
    steps, batch = padded.shape[0], padded.size(1)
    _check_lengths(sizes, steps, batch)
    batch_sizes = (sizes > cygrad.arange(int(sizes[0])).unsqueeze(1)).sum(1)
    rows = padded.flatten(0, 1).index_select(0, _rows_in_use(batch_sizes, batch).to(padded.device))
    return PackedSequence(rows, batch_sizes, order)


def _check_lengths(lengths: Tensor, steps: int, batch: int) -> None:
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    values = lengths.tolist()
    if min(values) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if sorted(values, reverse=True) != values:
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if values[0] > steps:
        raise RuntimeError(f"Expected lengths of at most {steps}, the number of steps, but got {values[0]}")


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return (padded, lengths): the packed sequences as a tensor (T, N, *), or with `batch_first` (N, T, *).

    T is the largest length, or `total_length`. Raises ValueError for a `total_length` that is too short.

    >>> import cygrad
    >>> from cygrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> pad_packed_sequence(pack_sequence([cygrad.tensor([1, 2]), cygrad.tensor([3])]), batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    data, batch_sizes, _, order = sequence.data, sequence.batch_sizes, *sequence[2:]
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    total = steps if total_length is None else total_length
    padded = cygrad.full((total * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    in_use = _rows_in_use(batch_sizes, batch).to(data.device)
    padded = padded.index_copy(0, in_use, data).unflatten(0, (total, batch))
    lengths = (batch_sizes.unsqueeze(1) > cygrad.arange(batch)).sum(0)
    if order is not None:
        padded, lengths = padded.index_select(1, order), lengths.index_select(0, order.cpu())
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences (L_i, *) of different lengths into one tensor (T, N, *), or with `batch_first` (N, T, *).

    `padding_value` is added at the end or, with `padding_side="left"`, at the start.

    >>> import cygrad
    >>> cygrad.nn.utils.rnn.pad_sequence([cygrad.tensor([1, 2]), cygrad.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    parts = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    for i, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(part).__name__}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = parts[0]
    longest = max(len(part) for part in parts)
    at_start = padding_side == "left"
    padded = []
    for part in parts:
        for dim in range(min(part.ndim, first.ndim) - 1, 0, -1):
            if part.shape[dim] not in (1, first.shape[dim]):
                raise RuntimeError(
                    f"The size of tensor a ({first.shape[dim]}) must match the size of tensor b ({part.shape[dim]}) at "
                    f"non-singleton dimension {dim}\n  sequences may differ only in length, their first dimension"
                )
        part = part.to(first.dtype).expand(len(part), *first.shape[1:])
        if len(part) < longest:
            filling = part.new_full((longest - len(part), *part.shape[1:]), padding_value)
            part = cygrad.cat([filling, part] if at_start else [part, filling])
        padded.append(part)
    return cygrad.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded tensor (T, N, *), or with `batch_first` (N, T, *), without their padding.

    >>> import cygrad
    >>> cygrad.nn.utils.rnn.unpad_sequence(cygrad.tensor([[1, 2], [3, 0]]), cygrad.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    padded = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(padded, lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, *), sorted by decreasing length unless `enforce_sorted` is false.

    >>> import cygrad
    >>> from cygrad.nn.utils.rnn import pack_sequence
    >>> pack_sequence([cygrad.tensor([3]), cygrad.tensor([1, 2])], enforce_sorted=False).data
    tensor([1, 3, 2])
    """
    lengths = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the packed sequences, in their original order.

    >>> import cygrad
    >>> from cygrad.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([cygrad.tensor([1, 2]), cygrad.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
