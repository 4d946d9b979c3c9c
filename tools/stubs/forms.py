"""Calls with several forms, or whose signature does not tell the names: parameters and, after an arrow, the result.

A parameter without an annotation has the type that `parameters.py` gives it, and a form without an arrow the result
that `results.py` gives.
"""

from stubs.parameters import INDEX, NUMBER, OPERAND

_LIKE = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
_NEW = f"out=None, {_LIKE}"
_DRAWN = f"generator=None, {_NEW}"
_SECTIONS = ("input, indices_or_sections", "input, *, indices", "input, *, sections")
_UNIQUE = "return_inverse: {0}, return_counts: {0}"
_NOT = "Literal[False] = False"

_WEIGHTS = (
    "params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool"
)

FORMS = {
    "_canonical_mask": ("mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any -> Any",),
    "arange": (f"end, *, {_NEW}", f"start, end, step: {NUMBER} = 1, *, {_NEW}"),
    "asarray": ("obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool = False",),
    **{
        f"atleast_{n}d": (
            "input, / -> Tensor",
            "*tensors: Tensor -> tuple[Tensor, ...]",
            "tensors, / -> tuple[Tensor, ...]",
        )
        for n in (1, 2, 3)
    },
    **dict.fromkeys(("block_diag", "cartesian_prod", "broadcast_tensors"), ("*tensors: Tensor",)),
    "broadcast_shapes": ("*shapes: int | Sequence[int]",),
    "chain_matmul": ("*matrices: Tensor, out=None",),
    "einsum": ("*args: Any",),
    "flip": ("input, dims: int | Sequence[int]", "input, *dims: int"),
    "meshgrid": ("*tensors: Tensor | Sequence[Tensor], indexing: str | None = None",),
    "nonzero": (
        f"input, *, as_tuple: {_NOT}, out=None -> Tensor",
        "input, *, as_tuple: Literal[True] -> tuple[Tensor, ...]",
    ),
    "normal": (
        "mean: Tensor, std: Tensor | float = 1.0, *, generator=None, out=None",
        "mean: float, std: Tensor, *, generator=None, out=None",
        f"mean: float, std: float, size, *, {_DRAWN}",
    ),
    **dict.fromkeys(
        ("gru", "lstm", "rnn_relu", "rnn_tanh"),
        (
            f"input, hx: Tensor | Sequence[Tensor], {_WEIGHTS}, batch_first: bool",
            f"data: Tensor, batch_sizes: Tensor, hx: Tensor | Sequence[Tensor], {_WEIGHTS}",
        ),
    ),
    "randint": (f"high: int, size, *, {_DRAWN}", f"low: int, high: int, size, *, {_DRAWN}"),
    "range": (f"start, end, step: {NUMBER} = 1, *, {_NEW}", f"*, start=0, end, step: {NUMBER} = 1, {_NEW}"),
    "randint_like": (
        f"input, high: int | Tensor, *, generator=None, {_LIKE}, memory_format=None",
        f"input, low: int | Tensor, high: int | Tensor, *, generator=None, {_LIKE}, memory_format=None",
    ),
    "from_file": (
        "filename: str, shared: bool | None = None, size: int | None = 0, *, dtype=None, layout=None, device=None, "
        "pin_memory=False, requires_grad=False",
    ),
    "repeat_interleave": (
        "repeats: Tensor, *, output_size: int | None = None",
        "input, repeats, dim=None, *, output_size: int | None = None",
    ),
    "Tensor.repeat_interleave": ("self, repeats, dim=None, *, output_size: int | None = None",),
    "split": (
        "tensor, split_size_or_sections, dim=0",
        "tensor, split_size_or_sections, *, axis",
        "tensor, *, split_size, dim=0",
    ),
    "tensor_split": ("input, indices_or_sections, dim=0", "input, *, indices, dim=0", "input, *, sections, dim=0"),
    **dict.fromkeys(("dsplit", "hsplit", "vsplit"), _SECTIONS),
    "unique": (
        f"input, sorted=True, {_UNIQUE.format(_NOT)}, dim=None -> Tensor",
        "input, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim=None -> Any",
    ),
    "unique_consecutive": (
        f"input, {_UNIQUE.format(_NOT)}, dim=None -> Tensor",
        "input, return_inverse: bool = False, return_counts: bool = False, dim=None -> Any",
    ),
    "where": (
        "condition: Tensor -> tuple[Tensor, ...]",
        f"condition: Tensor, input: {OPERAND}, other, *, out=None -> Tensor",
    ),
    "Tensor.where": (f"self, condition: Tensor, other: {OPERAND}",),
    # -- tensors --
    "Tensor.__array_function__": ("self, func: Any, types: Any, args: Any, kwargs: Any",),
    "Tensor.__array_ufunc__": ("self, ufunc: Any, method: str, *inputs: Any, **options: Any",),
    "Tensor.__dlpack__": (
        "self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None",
    ),
    "Tensor.__reduce_ex__": ("self, protocol: SupportsIndex, /",),
    "Tensor.__repr__": ("self",),
    "Tensor.__torch_dispatch__": ("cls, func: Any, types: Any, args: Any = (), kwargs: Any = None -> Any",),
    "Tensor.__torch_function__": ("cls, func: Any, types: Any, args: Any = (), kwargs: Any = None -> Any",),
    "Tensor.__array__": ("self, dtype: Any = None, copy: bool | None = None",),
    "Tensor.__contains__": ("self, key: Any, /",),
    "Tensor.__deepcopy__": ("self, memo: dict[int, Any], /",),
    "Tensor.__format__": ("self, spec: str, /",),
    "Tensor.__getitem__": (f"self, key: {INDEX}, /",),
    "Tensor.__setitem__": (f"self, key: {INDEX}, value: {OPERAND}, /",),
    "Tensor._make_subclass": ("cls: type[_S], data: Tensor, require_grad: bool = False -> _S",),
    "Tensor.as_subclass": ("self, cls: type[_S] -> _S",),
    "Tensor.new": ("self, *args: Any, **kwargs: Any",),
    "Tensor.size": ("self, dim: None = None -> Size", "self, dim: int -> int"),
    "Tensor.stride": ("self, dim: None = None -> tuple[int, ...]", "self, dim: int -> int"),
    "Tensor.to": (
        "self, dtype: dtype, non_blocking: bool = False, copy: bool = False, *, memory_format=None",
        "self, device: Device = None, dtype: dtype | None = None, non_blocking: bool = False, copy: bool = False, *, "
        "memory_format=None",
        "self, other: Tensor, non_blocking: bool = False, copy: bool = False, *, memory_format=None",
    ),
    "Tensor.type": (
        "self, dtype: None = None, non_blocking: bool = False -> str",
        "self, dtype: str | dtype, non_blocking: bool = False -> Tensor",
    ),
    "Tensor.view": ("self, *size: int", "self, size: Sequence[int]", "self, dtype: dtype"),
    **{
        f"Tensor.__{side}{name}__": (f"self, other: {OPERAND}, /",)
        for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift lt le gt ge div".split()
        for side in ("", "r")
    },
    **dict.fromkeys(("Tensor.__eq__", "Tensor.__ne__"), ("self, other: Any, / -> Tensor",)),
    **dict.fromkeys(("Tensor.__matmul__", "Tensor.__rmatmul__"), ("self, other: Tensor, /",)),
    # -- other classes --
    "Generator.set_state": ("self, new_state: Tensor",),
    **dict.fromkeys(
        ("PyNode.mark_dirty", "PyNode.mark_non_differentiable", "PyNode.save_for_backward", "PyNode.save_for_forward"),
        ("self, *tensors: Tensor | None",),
    ),
    "PyNode.set_materialize_grads": ("self, value: bool",),
    "Size.__add__": (
        "self, other: tuple[int, ...], / -> Size",
        "self, other: tuple[_T, ...], / -> tuple[int | _T, ...]",
    ),
    "Size.__getitem__": ("self, index: SupportsIndex, / -> int", "self, index: slice, / -> Size"),
    "Size.__mul__": ("self, times: SupportsIndex, / -> Size",),
}
