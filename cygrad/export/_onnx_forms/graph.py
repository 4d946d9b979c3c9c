"""ONNX graphs under construction: values, constants, nodes, and the numbers that follow lengths."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.export._onnx_forms.table import Unsupported
from cygrad.export._programs.sizes import Formula

__all__ = ["ONNX_DTYPES", "Graph", "Value"]

ONNX_DTYPES = {
    cygrad.float32: 1,
    cygrad.uint8: 2,
    cygrad.int8: 3,
    cygrad.uint16: 4,
    cygrad.int16: 5,
    cygrad.int32: 6,
    cygrad.int64: 7,
    cygrad.bool: 9,
    cygrad.float16: 10,
    cygrad.float64: 11,
    cygrad.uint32: 12,
    cygrad.uint64: 13,
    cygrad.bfloat16: 16,
}
_LARGEST = 2**63 - 1


class Value:
    """A tensor of a graph. Those of the program have the shape seen while recording; None marks what varies."""

    def __init__(self, name: str, dtype: Any, shape: Sequence[int] | None = None, varying: Iterable[int] = ()) -> None:
        self.name, self.dtype = name, dtype
        self._shape = None if shape is None else tuple(None if d in varying else n for d, n in enumerate(shape))

    def __repr__(self) -> str:
        return f"Value({self.name}, {self.dtype}, {self._shape})"

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The lengths; None for one that varies."""
        if self._shape is None:
            raise Unsupported("its shape is not known")
        return self._shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype.is_floating_point

    def axis(self, dim: int) -> int:
        """Return a dimension, counted from the front."""
        return dim + max(self.rank, 1) if dim < 0 else dim

    def axes(self, dims: Any) -> list[int]:
        """Return dimensions, counted from the front; all for None and ()."""
        if dims is None or (isinstance(dims, (tuple, list)) and not dims):
            return list(range(self.rank))
        return [self.axis(dim) for dim in (dims if isinstance(dims, (tuple, list)) else (dims,))]

    def length(self, dim: int) -> int:
        """Return a length, which must not vary."""
        found = self.shape[dim]
        if found is None:
            raise Unsupported(f"dimension {dim} of an operand varies, and the op needs a fixed length")
        return found

    def fixed(self, dims: Iterable[int]) -> list[int]:
        """Return several lengths, which must not vary."""
        return [self.length(dim) for dim in dims]


class Graph:
    """The nodes and constants of an ONNX graph."""

    def __init__(self, opset: int) -> None:
        import onnx  # an extra

        self.onnx, self.opset = onnx, opset
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.domains: dict[str, int] = {}
        self.values: dict[str, Value] = {}  # by the name in the program
        self.target = ""  # the name of the function in hand
        self.results: list[Tensor] = []  # what it returned while recording
        self._known: dict[Any, Value] = {}
        self._count = 0

    def fresh(self, wish: str) -> str:
        """Return a name for a value that no other has."""
        self._count += 1
        return f"/{wish}/{self._count}"

    # -- nodes -----------------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: Any, n: int = 1, dtype: Any = None, shape: Any = None, **attributes: Any) -> Any:
        """Add a node; return its result, or a tuple of `n`.

        Inputs are values, None for one that is left out, and lists of integers. The result has the dtype of the
        first input unless `dtype` says otherwise. Attributes that are None are left out.
        """
        values = [self.ints(each) if isinstance(each, (list, tuple)) else each for each in inputs]
        if dtype is None:
            dtype = values[0].dtype
        outputs = [self.fresh(kind) for _ in range(n)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        for key, value in attributes.items():
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, (Formula, Value)):
                    raise Unsupported(f"`{key}` varies with the lengths of the arguments, and ONNX needs a constant")
        names = ["" if value is None else value.name for value in values]
        while names and not names[-1]:
            names.pop()
        self.nodes.append(self.onnx.helper.make_node(kind, names, outputs, name=outputs[0], **attributes))
        made = [Value(name, dtype, shape) for name in outputs]
        return made[0] if n == 1 else tuple(made)

    def constant(self, data: Any, dtype: Any) -> Value:
        """Return a constant of a dtype."""
        array = np.asarray(data)
        if dtype is cygrad.bfloat16:
            return self.cast(self.constant(array, cygrad.float32), dtype)
        array = array.astype(_NUMPY[dtype])
        key = (dtype, array.shape, array.tobytes()) if array.size <= 64 else None
        if key not in self._known or key is None:
            name = self.fresh("constant")
            self.constants[name] = array
            value = Value(name, dtype, array.shape)
            if key is None:
                return value
            self._known[key] = value
        return self._known[key]

    def ints(self, numbers: Iterable[Any]) -> Value:
        """Return a 1-dim int64 tensor of integers, formulas and 1-dim values."""
        numbers = list(numbers)
        if all(type(each) is int for each in numbers):
            return self.constant(np.array(numbers, np.int64).reshape(len(numbers)), cygrad.int64)
        parts = [self.number(each, cygrad.int64, (1,)) for each in numbers]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def number(self, value: Any, dtype: Any, shape: tuple[int, ...] = ()) -> Value:
        """Return a number, a formula or a value with one element as a tensor of shape `()` or `(1,)`."""
        if isinstance(value, Formula):
            found = self._formula(value)
            value = found if shape else self.op("Squeeze", found)
        elif isinstance(value, Value):
            if value._shape != shape:
                value = self.op("Reshape", value, list(shape))
        else:
            return self.constant(np.full(shape, value), dtype)
        return self.cast(value, dtype)

    def _formula(self, formula: Formula) -> Value:
        total = None
        for coefficient, sizes in formula.terms:
            product = None
            for name, dim in sizes:
                size = self.size(self.values[name], dim)
                product = size if product is None else self.op("Mul", product, size)
            if product is None:
                product = self.ints([coefficient])
            elif coefficient != 1:
                product = self.op("Mul", product, self.ints([coefficient]))
            total = product if total is None else self.op("Add", total, product)
        assert total is not None
        if formula.is_int():
            return total
        found = self.cast(total, cygrad.float64)
        if formula.power != 1:
            found = self.op("Pow", found, self.constant([formula.power], cygrad.float64))
        return self.op("Mul", found, self.constant([formula.factor], cygrad.float64))

    # -- values ----------------------------------------------------------------------------------------

    def cast(self, value: Value, dtype: Any) -> Value:
        """Return a value in another dtype."""
        if value.dtype is dtype:
            return value
        return self.op("Cast", value, dtype=dtype, shape=value._shape, to=self.code(dtype))

    def code(self, dtype: Any) -> int:
        """Return ONNX's number of a dtype."""
        if dtype not in ONNX_DTYPES:
            raise Unsupported(f"ONNX files of cygrad have no {dtype}")
        return ONNX_DTYPES[dtype]

    def value(self, operand: Any, dtype: Any) -> Value:
        """Return an operand, a value or a number, in this dtype."""
        return self.cast(operand, dtype) if isinstance(operand, Value) else self.number(operand, dtype)

    def scaled(self, value: Value, factor: Any) -> Value:
        """Return a value times a number or another value."""
        return value if factor == 1 else self.op("Mul", value, self.value(factor, value.dtype))

    def dtype_of(self, *operands: Any) -> Any:
        """Return the dtype that operands, values and numbers, are promoted to."""
        found: Any = None
        for operand in operands:
            if isinstance(operand, Formula):
                operand = 1 if operand.is_int() else 1.0
            if isinstance(operand, Value):
                operand = cygrad.empty((1,) * len(operand._shape or ()), dtype=operand.dtype)
            elif operand is None:
                continue
            found = operand if found is None else cygrad.empty(
                (1,) * max(_ndim(found), _ndim(operand)), dtype=cygrad.result_type(found, operand)
            )  # fmt: skip
        return found.dtype if isinstance(found, Tensor) else cygrad.tensor(found).dtype

    def promoted(self, *operands: Any) -> list[Value]:
        """Return operands in their common dtype."""
        dtype = self.dtype_of(*operands)
        return [self.value(operand, dtype) for operand in operands]

    def size(self, value: Value, dim: int) -> Value:
        """Return the length of a dimension as a 1-dim tensor."""
        if value._shape is not None:
            dim = value.axis(dim)
            length = value._shape[dim]
            if length is not None:
                return self.ints([length])
        return self.op("Shape", value, dtype=cygrad.int64, start=dim, end=dim + 1 if dim != -1 else None)

    def sizes(self, value: Value) -> Value:
        """Return the shape as a 1-dim tensor."""
        if value._shape is not None and None not in value._shape:
            return self.ints(value._shape)
        return self.op("Shape", value, dtype=cygrad.int64)

    def numel(self, value: Value) -> Value:
        """Return the number of elements as a 0-dim tensor."""
        if value._shape is not None and None not in value._shape:
            return self.constant(math.prod(value._shape), cygrad.int64)
        return self.op("Size", value, dtype=cygrad.int64)

    def reshape(self, value: Value, sizes: Any) -> Value:
        """Return a value in another shape."""
        return self.op("Reshape", value, sizes, allowzero=None)

    def slice(self, value: Value, axis: int, start: Any = 0, stop: Any = _LARGEST, step: int = 1) -> Value:
        """Return a part of a value along an axis."""
        return self.op("Slice", value, self.ints([start]), self.ints([stop]), [axis], [step])

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Return a value with its dimensions in another order."""
        order = list(order)
        if order == list(range(len(order))):
            return value
        shape = None if value._shape is None else [value._shape[d] for d in order]
        turned = self.op("Transpose", value, perm=order)
        turned._shape = None if shape is None else tuple(shape)
        return turned

    def swapped(self, value: Value, a: int, b: int) -> Value:
        """Return a value with two dimensions exchanged."""
        order = list(range(value.rank))
        order[a], order[b] = order[b], order[a]
        return self.transpose(value, order)

    def arange(self, stop: Value) -> Value:
        """Return the integers below a 0-dim or 1-dim value."""
        zero, one = self.constant(0, cygrad.int64), self.constant(1, cygrad.int64)
        if stop.name in self.constants:
            return self.constant(np.arange(self.constants[stop.name].item()), cygrad.int64)
        return self.op("Range", zero, self.op("Squeeze", stop) if stop._shape != () else stop, one)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """Return `a` where a condition holds, and `b` elsewhere."""
        return self.op("Where", condition, a, b, dtype=a.dtype)


def _ndim(value: Any) -> int:
    return value.dim() if isinstance(value, Tensor) else 0


_NUMPY = {
    cygrad.float32: np.float32,
    cygrad.uint8: np.uint8,
    cygrad.int8: np.int8,
    cygrad.uint16: np.uint16,
    cygrad.int16: np.int16,
    cygrad.int32: np.int32,
    cygrad.int64: np.int64,
    cygrad.bool: np.bool_,
    cygrad.float16: np.float16,
    cygrad.float64: np.float64,
    cygrad.uint32: np.uint32,
    cygrad.uint64: np.uint64,
}
