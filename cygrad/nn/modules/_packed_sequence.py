"""PackedSequence: sequences of different lengths packed step by step, as input of recurrent layers."""

from __future__ import annotations

from typing import Any, NamedTuple

import cygrad
from cygrad import Tensor


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation.

    >>> import cygrad
    >>> cygrad.nn.utils.rnn.invert_permutation(cygrad.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences of different lengths without padding: the rows of all sequences at step 0, then at step 1, and so on.

    `data` holds the rows, `batch_sizes` the number of sequences that reach each step. Sequences are sorted by
    decreasing length; `sorted_indices` is the permutation that sorts them, `unsorted_indices` its inverse. Created by
    `pack_padded_sequence` and `pack_sequence`. Conversions (`to`, `double`, `cpu`, ...) convert `data`.

    >>> import cygrad
    >>> from cygrad.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([cygrad.tensor([1.0, 2.0]), cygrad.tensor([3.0])])
    >>> packed.data, packed.batch_sizes
    (tensor([1., 3., 2.]), tensor([2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:  # the legacy form: both as one pair
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with `data` moved and converted as by `Tensor.to`.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> packed = pack_sequence([cygrad.ones(2)])
        >>> packed.to(cygrad.float64).data.dtype, packed.to(cygrad.float32) is packed
        (torch.float64, True)
        """
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def double(self) -> PackedSequence:
        """Return the sequences with `data` in float64.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).double().data.dtype
        torch.float64
        """
        return self.to(cygrad.float64)

    def float(self) -> PackedSequence:
        """Return the sequences with `data` in float32.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.tensor([1, 2])]).float().data
        tensor([1., 2.])
        """
        return self.to(cygrad.float32)

    def half(self) -> PackedSequence:
        """Return the sequences with `data` in float16.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).half().data.dtype
        torch.float16
        """
        return self.to(cygrad.float16)

    def long(self) -> PackedSequence:
        """Return the sequences with `data` in int64.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).long().data.dtype
        torch.int64
        """
        return self.to(cygrad.int64)

    def int(self) -> PackedSequence:
        """Return the sequences with `data` in int32.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).int().data.dtype
        torch.int32
        """
        return self.to(cygrad.int32)

    def short(self) -> PackedSequence:
        """Return the sequences with `data` in int16.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).short().data.dtype
        torch.int16
        """
        return self.to(cygrad.int16)

    def char(self) -> PackedSequence:
        """Return the sequences with `data` in int8.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.tensor([1, 2])]).char().data
        tensor([1, 2], dtype=torch.int8)
        """
        return self.to(cygrad.int8)

    def byte(self) -> PackedSequence:
        """Return the sequences with `data` in uint8.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.tensor([1, 2])]).byte().data
        tensor([1, 2], dtype=torch.uint8)
        """
        return self.to(cygrad.uint8)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with `data` on the CPU.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).cpu().data.device
        device(type='cpu')
        """
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with `data` on the GPU.

        Raises RuntimeError if there is no GPU.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> packed = pack_sequence([cygrad.ones(2)])
        >>> if cygrad.cuda.is_available():
        ...     assert packed.cuda().is_cuda
        """
        return self.to(*(args or ("cuda",)), **kwargs)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a GPU."""
        is_cuda: bool = self.data.is_cuda
        return is_cuda

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory.

        >>> import cygrad
        >>> from cygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([cygrad.ones(2)]).is_pinned()
        False
        """
        is_pinned: bool = self.data.is_pinned()
        return is_pinned
