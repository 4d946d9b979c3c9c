"""`FlopCounterMode`: counts the floating-point operations of matrix products and convolutions, module by module.

An operation is an addition or a multiplication of numbers. The names and formulas are those of PyTorch's ops: a linear
layer counts as `aten.addmm`, a gradient of a convolution as `aten.convolution_backward`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from math import prod
from typing import Any

import cygrad
from cygrad.utils._flops import Listener, calls_of
from cygrad.utils.module_tracker import ModuleTracker
from cygrad.utils.warning import warn

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = cygrad.ops.aten
flop_registry: dict[Any, Callable[..., int]] = {}


def get_shape(i: Any) -> Any:
    """Return the shape of a tensor; other values as they are."""
    return i.shape if isinstance(i, cygrad.Tensor) else i


def _shapes(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _shapes(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)) and not isinstance(values, cygrad.Size):
        return type(values)(_shapes(value) for value in values)
    return get_shape(values)


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """Return a formula that takes tensors, for one that takes shapes and `out_shape`."""

    @wraps(f)
    def formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        return f(*_shapes(args), out_shape=_shapes(out_val), **_shapes(kwargs))

    return formula


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """Decorator that registers the formula of an op, or of several: it returns the number of operations of a call.

    The formula receives the arguments with shapes in place of tensors, and the shape of the result as `out_shape`; with
    `get_raw`, the tensors themselves, and the result as `out_val`.

    >>> import cygrad
    >>> from cygrad.utils.flop_counter import FlopCounterMode, register_flop_formula
    >>> @cygrad.library.custom_op("docs::scaled", mutates_args=())
    ... def scaled(x: cygrad.Tensor) -> cygrad.Tensor:
    ...     return x * 2
    >>> @register_flop_formula(cygrad.ops.docs.scaled)
    ... def scaled_flop(x_shape, *args, out_shape=None, **kwargs):
    ...     return x_shape.numel()
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = scaled(cygrad.ones(2, 3))
    >>> counter.get_total_flops()
    6
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, cygrad.ops.OpOverloadPacket) and not hasattr(target, "_opoverload"):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            packet = target._opoverload.overloadpacket if hasattr(target, "_opoverload") else target
            if packet in flop_registry:
                raise RuntimeError(f"duplicate registrations for {packet}")
            flop_registry[packet] = formula if get_raw else shape_wrapper(formula)
        return formula

    return register


# -- formulas --


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of an (m, k) by (k, n) product: 2 m k n."""
    m, k = a_shape
    inner, n = b_shape
    if k != inner:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {inner}")
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of `addmm`: those of the product."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of `b` products (m, k) by (k, n): 2 b m k n."""
    b, m, k = a_shape
    other, inner, n = b_shape
    if b != other or k != inner:
        raise AssertionError(f"bmm: batch dimensions and inner dimensions must match, got {a_shape} and {b_shape}")
    return b * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of `baddbmm`: those of the products."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Return the operations of a convolution: for each place of the filter, a product with each of its elements."""
    places = prod((x_shape if transposed else out_shape)[2:])
    return places * prod(w_shape) * x_shape[0] * 2


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Return the operations of a call of `aten.convolution`."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Any,
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Any,
    out_shape: Any = None,
) -> int:
    """Return the operations of the gradients of a convolution that `output_mask` selects."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        one, other = (x_shape, grad_out_shape) if transposed else (grad_out_shape, x_shape)
        count += prod(w_shape[2:]) * prod(one[2:]) * grad_out_shape[1] * x_shape[1] * other[0] * 2
    return count


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Return the operations of attention: those of two batched products."""
    b, h, s_q, d_q = query_shape
    _, _, s_k, _ = key_shape
    d_v = value_shape[-1]
    return bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))


@register_flop_formula(
    [
        aten._scaled_dot_product_efficient_attention,
        aten._scaled_dot_product_flash_attention,
        aten._scaled_dot_product_cudnn_attention,
    ]
)
def sdpa_flop(
    query_shape: Any, key_shape: Any, value_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Return the operations of `scaled_dot_product_attention`."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Return the operations of the gradients of attention that computes its weights again: five batched products."""
    b, h, s_q, d_q = query_shape
    _, _, s_k, _ = key_shape
    d_v = value_shape[-1]
    scores = bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k))
    values = bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))
    return 3 * scores + 2 * values


# -- the mode --


class FlopCounterMode:
    """Counts the operations in a block, and prints a table at its end unless `display` is False.

    The table has the modules up to `depth` levels deep. `custom_mapping` has formulas for further ops, like
    `register_flop_formula`.

    >>> import cygrad
    >>> from cygrad.utils.flop_counter import FlopCounterMode
    >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(4, 5), cygrad.nn.ReLU(), cygrad.nn.Linear(5, 2))
    >>> with FlopCounterMode() as counter:
    ...     _ = model(cygrad.ones(3, 4))
    Module          FLOP    % Total
    ------------  ------  ---------
    Sequential       180    100.00%
    - aten.addmm     180    100.00%
    Sequential.0     120     66.67%
    - aten.addmm     120     66.67%
    Sequential.2      60     33.33%
    - aten.addmm      60     33.33%
    >>> counter.get_total_flops()
    180
    >>> counter.get_flop_counts()["Global"], counter.get_table().splitlines()[0]
    ({<OpOverloadPacket(op='aten.addmm')>: 180}, 'Module          FLOP    % Total')
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        if mods is not None:
            warn("mods argument is not needed anymore, you can stop passing it")
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.mod_tracker = ModuleTracker()
        self.flop_registry = {
            **flop_registry,
            **{
                key: f if getattr(f, "_get_raw", False) else shape_wrapper(f)
                for key, f in (custom_mapping or {}).items()
            },
        }
        self._names = {packet.__name__ for packet in self.flop_registry}
        self._listener = Listener(self._note)
        self._counts_gradient = False

    def __enter__(self) -> "FlopCounterMode":
        self.flop_counts.clear()
        _active.append(self)
        self.mod_tracker.__enter__()
        self._listener.start()
        return self

    def __exit__(self, *error: Any) -> None:
        _active.remove(self)
        self._listener.stop()
        self.mod_tracker.__exit__()
        if self.display and error[0] is None:
            print(self.get_table(self.depth))

    def _note(self, done: Any) -> None:
        """Count an op."""
        if isinstance(done, tuple):  # a custom op
            self._count(*done)
            return
        if self._counts_gradient:
            return  # of a product, whose gradient has been counted when it began
        calls, gradients = calls_of(done, self._names)
        for packet, args in calls:
            self._count(packet, args, {}, done.outs[0])
        if done.node is not None:
            self.mod_tracker.remember(done.node)
            if gradients and _active[-1] is self:
                _count_when_run(done.node, gradients)

    def _count(self, packet: Any, args: Any, kwargs: Any, out: Any) -> None:
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for module in self.mod_tracker.parents:
                self.flop_counts[module][packet] += count

    def get_total_flops(self) -> int:
        """Return the number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return {name of a module: {op: number of operations}}; "Global" has them all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the table as text.

        >>> import cygrad
        >>> from cygrad.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = cygrad.ones(2, 2) @ cygrad.ones(2, 2)
        >>> print(counter.get_table().splitlines()[0])
        Module       FLOP    % Total
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        modules = [name for name in sorted(self.flop_counts) if name != "Global" and name.count(".") < depth]
        is_subsumed = any(sum(self.flop_counts[name].values()) >= total for name in modules)
        if not is_subsumed and self.flop_counts["Global"]:
            modules.insert(0, "Global")
        rows = [row for name in modules for row in self._rows(name, total)]
        return _table(("Module", "FLOP", "% Total"), rows or [("Global", "0", "0%")])

    def _rows(self, name: str, total: int) -> Iterator[tuple[str, str, str]]:
        counts = self.flop_counts[name]
        for title, count in ((name, sum(counts.values())), *((f"- {op}", count) for op, count in counts.items())):
            share = count / total if total else 0.0
            yield title, convert_num_with_suffix(count, get_suffix_str(total)), f"{share:.2%}"


_active: list[FlopCounterMode] = []  # the counters whose blocks are open, the innermost last


def _count_when_run(node: Any, gradients: list[Any]) -> None:
    """Have the open counters count these calls when a node runs, in place of the ops that its gradient consists of."""

    def begin(grads: Any) -> None:
        for counter in _active:
            counter._counts_gradient = True
            for packet, args in gradients:
                counter._count(packet, args, {}, None)

    def end(grad_inputs: Any, grad_outputs: Any) -> None:
        for counter in _active:
            counter._counts_gradient = False

    node.register_prehook(begin)
    node.register_hook(end)


suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """Return the suffix with which a number has two to four digits before the point."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """Return a number as text with a suffix.

    >>> from cygrad.utils.flop_counter import convert_num_with_suffix
    >>> convert_num_with_suffix(12345, "K"), convert_num_with_suffix(12, "")
    ('12.345K', '12')
    """
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}" if suffix else str(number)


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table: the first column aligned to the left, the others to the right."""
    widths = [max(len(head) + 2, *(len(row[i]) for row in rows)) for i, head in enumerate(headers)]

    def line(cells: tuple[str, ...]) -> str:
        first, *others = (
            cell.ljust(width) if not i else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others])

    return "\n".join([line(headers), "  ".join("-" * width for width in widths), *map(line, rows)])
