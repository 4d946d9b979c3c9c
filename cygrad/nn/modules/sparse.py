"""Embedding layers: tables of learned rows, looked up by index."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A matrix `weight` of shape (num_embeddings, embedding_dim), with an optional padding row."""

    weight: Tensor
    # The name of the padding in PyTorch's messages.
    padding_name = "padding_idx"

    def _set_up(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, **options: Any) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        for name, value in options.items():
            setattr(self, name, value)
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"{self.padding_name} must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx

    def _make_weight(self, given: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = Parameter(cygrad.empty(shape, device=device, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
        elif tuple(given.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the rows from the standard normal distribution and set the padding row to 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with cygrad.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _options(self) -> str:
        """Return the options shared by both reprs that differ from the defaults."""
        text = ""
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text


def _rows_and_columns(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(_Table):
    """A table whose rows are looked up by `input`, integers of any shape, as `F.embedding`.

    out[..., j] = weight[input[...], j].

    Rows are initialized standard normal, except row `padding_idx`, which starts at 0 and gets no gradient. Raises
    `AssertionError` for a `padding_idx` out of range and for a weight of the wrong shape.

    >>> import cygrad
    >>> layer = cygrad.nn.Embedding(10, 3, padding_idx=0)
    >>> layer(cygrad.tensor([[1, 2, 0]])).shape
    torch.Size([1, 3, 3])
    >>> layer.weight[0].tolist()
    [0.0, 0.0, 0.0]
    """

    padding_name = "Padding_idx"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._set_up(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )
        self._make_weight(_weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Look up the rows at the indices `input`.

        Indices of the shape (...) give (..., embedding_dim). Raises IndexError for an index out of range.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Embedding(10, 3)(cygrad.tensor([[1, 2], [4, 4]])).shape
        torch.Size([2, 2, 3])
        """
        given = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, *given)

    def extra_repr(self) -> str:
        """Return the sizes and the settings that differ from the defaults.

        >>> from cygrad import nn
        >>> nn.Embedding(10, 3, padding_idx=0).extra_repr()
        '10, 3, padding_idx=0'
        """
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        sparse = ", sparse=True" if self.sparse is not False else ""
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}{self._options()}{sparse}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create a layer from the matrix `embeddings`, which stays fixed unless `freeze` is false.

        >>> import cygrad
        >>> layer = cygrad.nn.Embedding.from_pretrained(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(cygrad.tensor(1))
        tensor([3., 4.])
        """
        return cls(
            *_rows_and_columns(embeddings),
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows, given by indices, as `F.embedding_bag`.

    Rows are initialized as in `Embedding`; indices equal to `padding_idx` are left out of the bags.

    >>> import cygrad
    >>> rows = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> layer = cygrad.nn.EmbeddingBag.from_pretrained(rows, mode="sum")
    >>> layer(cygrad.tensor([0, 1, 1]), cygrad.tensor([0, 2]))
    tensor([[4., 6.],
            [3., 4.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._set_up(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
        )
        self._make_weight(_weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return one row per bag: the rows of a 2-D `input`, or else the slices that start at `offsets`.

        The shape is (number of bags, embedding_dim). Raises ValueError for `offsets` with a 2-D input and for 1-D
        without.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.EmbeddingBag(10, 3, mode="sum")
        >>> m(cygrad.tensor([1, 2, 4]), offsets=cygrad.tensor([0, 2])).shape
        torch.Size([2, 3])
        """
        given = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse)
        last = (per_sample_weights, self.include_last_offset, self.padding_idx)
        return F.embedding_bag(input, self.weight, offsets, *given, *last)

    def extra_repr(self) -> str:
        """Return the sizes and the settings that differ from the defaults.

        >>> from cygrad import nn
        >>> nn.EmbeddingBag(10, 3, mode="sum").extra_repr()
        "10, 3, mode='sum'"
        """
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{self._options()}, mode={self.mode!r}{padding}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create a layer from the matrix `embeddings`, which stays fixed unless `freeze` is false.

        Raises AssertionError unless `embeddings` has two dimensions.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.EmbeddingBag.from_pretrained(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]), mode="sum")
        >>> m(cygrad.tensor([[0, 1]]))
        tensor([[4., 6.]])
        """
        layer = cls(
            *_rows_and_columns(embeddings),
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        layer.weight.requires_grad = not freeze
        return layer
