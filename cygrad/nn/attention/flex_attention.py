"""Attention whose scores a function changes, and whose mask is a function of positions.

    attention(q, k, v) = softmax(score_mod(q k^T scale)) v

A `score_mod(score, batch, head, query, key)` and a `mask_mod(batch, head, query, key)` receive tensors of indices that
broadcast against each other, and are made of elementwise functions and of indexing. All scores are computed: a
`BlockMask` says which blocks of them a kernel could leave out, and holds the mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
FlexKernelOptions = dict  # settings of PyTorch's kernels, which have no effect


_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` returns besides the output.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import AuxRequest, flex_attention
    >>> x = cygrad.ones(1, 1, 2, 4)
    >>> out, aux = flex_attention(x, x, x, return_aux=AuxRequest(lse=True))
    >>> aux.lse.shape
    torch.Size([1, 1, 2])
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logarithms of the sums of the exponentials of the scores, and the largest scores, of each query.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import AuxOutput
    >>> AuxOutput(lse=cygrad.zeros(2)).max_scores is None
    True
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# -- masks as functions --


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return True: every query sees every key.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import noop_mask
    >>> i = cygrad.tensor(3)
    >>> noop_mask(i, i, i, i)
    tensor(True)
    """
    return batch.new_ones((), dtype=cygrad.bool)


def and_masks(*mask_mods: Callable) -> Callable:
    """Return a mask of what all of these masks let through.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import and_masks
    >>> causal = lambda b, h, q, kv: q >= kv
    >>> near = lambda b, h, q, kv: q - kv < 2
    >>> both = and_masks(causal, near)
    >>> i = cygrad.tensor(3)
    >>> both(i, i, i, cygrad.tensor(2)), both(i, i, i, cygrad.tensor(0))
    (tensor(True), tensor(False))
    """
    _check_callable(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=cygrad.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: Callable) -> Callable:
    """Return a mask of what any of these masks lets through.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import or_masks
    >>> either = or_masks(lambda b, h, q, kv: q == kv, lambda b, h, q, kv: kv == 0)
    >>> i = cygrad.tensor(3)
    >>> either(i, i, i, cygrad.tensor(0)), either(i, i, i, cygrad.tensor(1))
    (tensor(True), tensor(False))
    """
    _check_callable(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=cygrad.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _check_callable(functions: tuple) -> None:
    if not all(map(callable, functions)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {functions}")


def _indices(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """Return the indices along each dimension, which broadcast to the shape."""
    count = len(shape)
    return [
        cygrad.arange(n, device=device).view([-1 if i == axis else 1 for i in range(count)])
        for axis, n in enumerate(shape)
    ]


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """Return the mask (B, H, Q_LEN, KV_LEN) of a mask function, or the changes of zero scores by a score function.

    >>> from cygrad.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    import inspect  # slow to import

    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(mod_fn).parameters.values()
    taken = sum(p.kind in positional and p.default is p.empty for p in parameters)
    given = _indices(shape, device)
    if taken == 5:
        return mod_fn(cygrad.zeros(shape, device=device), *given).expand(shape)
    return mod_fn(*given).expand(shape)


# -- block masks --


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many blocks of each row are set, and the places of all blocks, those that are set first."""
    dense = dense.to(cygrad.int32)
    order = cygrad.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(cygrad.int32), order.to(cygrad.int32)


def _dense(counts: Tensor, places: Tensor) -> Tensor:
    """The reverse of `_ordered`, as 0 and 1."""
    is_set = cygrad.arange(places.shape[-1], device=places.device) < counts[..., None]
    blocks = cygrad.zeros(places.shape, dtype=cygrad.int32, device=places.device)
    return blocks.scatter(-1, places.long(), is_set.to(cygrad.int32))


def _of_a_part(*indices: Tensor) -> Tensor:
    """Raise RuntimeError: the function of a whole mask does not know which part was taken."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


class BlockMask:
    """Which blocks of scores are computed: for each row of blocks how many, and their places (`kv_...`).

    The same by columns (`q_...`). Blocks in which every query sees every key are counted apart (`full_...`). Made by
    `create_block_mask`; `mask[b, h]` has the blocks of these samples and heads, and no function: attention needs the
    whole mask.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu")
    >>> mask.shape, mask.kv_num_blocks
    ((1, 1, 256, 256), tensor([[[1, 1]]], dtype=torch.int32))
    """

    seq_lengths: tuple[int, int]
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    BLOCK_SIZE: tuple[int, int]
    mask_mod: Callable

    _TENSORS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    )

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Callable = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Return the mask whose blocks are given by rows.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import BlockMask
        >>> mask = BlockMask.from_kv_blocks(cygrad.tensor([[[1]]]), cygrad.tensor([[[[0]]]]))
        >>> mask.to_dense().shape
        torch.Size([1, 1, 1, 1])
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        columns: list[Any] = [None] * 4
        if compute_q_blocks:
            columns[:2] = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                columns[2:] = _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        rows = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        blocks: dict[str, Any] = dict(zip(cls._TENSORS, (*rows, *columns)))
        return cls(seq_lengths, **blocks, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores: (samples, heads, queries, keys)."""
        return (*self.kv_num_blocks.shape[:-1], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of scores.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu").numel()
        65536
        """
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of scores that lie outside of the blocks.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu").sparsity()
        25.0
        """
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks = blocks + self.full_kv_num_blocks.sum()
        return 100 * (1 - blocks.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Return 1 for each block that is computed and 0 for the others.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu").to_dense()
        tensor([[[[1, 0],
                  [1, 1]]]], dtype=torch.int32)
        """
        partial = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return partial
        return partial | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Return all that the mask consists of; unless `flatten`, with lengths and block sizes as tuples.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu")
        >>> mask.as_tuple()[:2]
        (256, 256)
        """
        ends = [self.seq_lengths], [self.BLOCK_SIZE]
        first, last = (list(pair[0]) if flatten else pair for pair in ends)
        return (*first, *(getattr(self, name) for name in self._TENSORS), *last, self.mask_mod)

    def _mapped(self, function: Callable[[Tensor], Tensor], mask_mod: Callable) -> BlockMask:
        own = {name: getattr(self, name) for name in self._TENSORS}
        changed: dict[str, Any] = {name: None if t is None else function(t) for name, t in own.items()}
        return BlockMask(self.seq_lengths, **changed, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=mask_mod)

    def to(self, device: Any) -> BlockMask:
        """Return the mask on another device.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu")
        >>> mask.to("cpu").kv_indices.device
        device(type='cpu')
        """
        return self._mapped(lambda tensor: tensor.to(device), self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        return self._mapped(lambda tensor: tensor[index], _of_a_part)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return a picture of the blocks of the first `limit` heads: computed, in part, or left out.

        >>> import cygrad
        >>> from cygrad.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu")
        >>> mask.to_string().split()[2:]
        ['██', '████']
        """
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        blocks = self.to_dense()
        pictures = []
        for place in list(cygrad.ones(blocks.shape[:-2]).nonzero().tolist())[:limit]:
            rows = _shrunk(blocks[tuple(place)].float(), most).tolist()
            lines = ["".join("██" if cell == 1 else "░░" if cell else "  " for cell in row) for row in rows]
            pictures.append(f"({', '.join(map(str, place))})\n" + "\n".join(lines) + "\n")
        if math.prod(blocks.shape[:-2]) > limit:
            pictures.append("...\nTo print out more, set BlockMask.to_string(grid_size=N, limit=M)\n")
        return "\n".join(pictures)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"


def _shrunk(blocks: Tensor, most: tuple[int, int]) -> Tensor:
    """Average neighbors until at most `most` rows and columns remain."""
    steps = [-(-n // limit) for n, limit in zip(blocks.shape, most)]
    return F.avg_pool2d(blocks[None, None], tuple(steps), ceil_mode=True, count_include_pad=False)[0, 0]


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return the block mask of a mask function; B and H are None if it is the same for all samples or heads.

    The last two arguments order the work of PyTorch's kernels, and change nothing here.

    >>> from cygrad.nn.attention.flex_attention import create_block_mask
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
    >>> causal.shape, causal.sparsity()
    ((1, 1, 256, 256), 25.0)
    """
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = F.pad(mask.float(), (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    counts = padded.unflatten(-2, (-1, rows)).unflatten(-1, (-1, columns)).sum((-3, -1))
    is_full = (counts == rows * columns) & separate_full_blocks
    partial = _ordered((counts > 0) & ~is_full)
    full: Any = _ordered(is_full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        partial[0], partial[1], full[0], full[1], (rows, columns), mask_mod, (Q_LEN, KV_LEN)
    )


# -- attention --


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return attention (batch, heads, queries, width) with changed scores and a mask.

    query: (batch, heads, queries, width); key and value: (batch, heads, keys, width), with `enable_gqa` of fewer heads,
    each for several of `query`. Scores are computed in float32, or float64. A query that sees no key gives 0.
    With `return_lse` or `return_aux`, also what these ask for. Raises ValueError for shapes that do not fit.

    >>> import cygrad
    >>> from cygrad.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> x = cygrad.randn(1, 2, 5, 8)
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 5, 5)
    >>> own = cygrad.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    >>> cygrad.allclose(flex_attention(x, x, x, block_mask=causal), own, atol=1e-5)
    True
    """
    _check(query, key, value, block_mask, enable_gqa)
    if key.shape[1] != query.shape[1]:
        key, value = (each.repeat_interleave(query.shape[1] // each.shape[1], 1) for each in (key, value))
    wide = cygrad.float64 if query.dtype == cygrad.float64 else cygrad.float32
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).to(wide) * factor
    indices = _indices(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *indices).to(wide)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*indices), -math.inf)
    sees_none = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(sees_none, 0.0).softmax(-1).masked_fill(sees_none, 0.0)
    out = weights.to(query.dtype) @ value
    if return_aux is not None:
        lse = scores.logsumexp(-1) if return_aux.lse else None
        return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (out, scores.logsumexp(-1)) if return_lse else out


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    """Raise NotImplementedError or ValueError for operands that do not fit each other."""
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if query.shape[0] != key.shape[0] and (block_mask is None or key.shape[0] != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but got "
            f"block_mask={block_mask}, Bq={query.shape[0]}, and Bkv={key.shape[0]}."
        )
    own, theirs = query.shape[1], key.shape[1]
    if own != theirs and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={own} and Hkv={theirs}. "
            "Try setting enable_gqa=True for GQA."
        )
    if own % theirs:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={own} and Hkv={theirs}."
        )
    if block_mask is not None and block_mask.shape[-2:] != (query.shape[-2], key.shape[-2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[-2]} and "
            f"kv_len={key.shape[-2]}.\n  make one by `create_block_mask` for these lengths"
        )
