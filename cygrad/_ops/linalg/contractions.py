"""Tensor contractions: einsum, tensordot, Kronecker products, and traces.

All but `trace` are composed of other ops and inherit their gradients.
"""

import math
import operator
from functools import lru_cache

from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, LINEAR, declare, facts, publish
from cygrad._core.graph.record import apply_n, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry import autocast
from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._ops.base.arguments import dim_argument, require, type_name
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.products import bmm, mm
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import expand, permute, reshape, squeeze
from cygrad._ops.common.out_argument import given
from cygrad._ops.creation.ranges import eye
from cygrad._ops.shape.diagonals import diagonal

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ELLIPSIS = -1

# -- einsum: parsing --


def labels_of_term(term, operand, offset=0):
    """Return the subscripts of an operand (None: the output) as numbers, with ELLIPSIS for an ellipsis."""
    of = "output" if operand is None else f"operand {operand}"
    labels, i = [], 0
    while i < len(term):
        if term[i] == " ":
            pass
        elif term[i] == ".":
            if ELLIPSIS in labels:
                found = "for which" if operand is not None else "but"
                shown = "ellipsis" if operand is not None else "ellipsis (...)"
                raise RuntimeError(f"einsum(): found '.' for {of} {found} an {shown} was already found")
            if term[i : i + 3] != "...":
                shown = "" if operand is not None else " (...)"
                raise RuntimeError(f"einsum(): found '.' for {of} that is not part of any ellipsis{shown}")
            labels.append(ELLIPSIS)
            i += 2
        elif term[i] in LETTERS:
            labels.append(LETTERS.index(term[i]))
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {offset + i} in the equation string, "
                "subscripts must be in [a-zA-Z]"
            )
        i += 1
    return labels


def read_equation(equation, n_operands):
    """Return the labels of each operand, and those of the output or None."""
    inputs, arrow, output = equation.partition("->")
    terms, offset = [], 0
    for number, term in enumerate(inputs.split(",")):
        if number >= n_operands:
            raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        terms.append(labels_of_term(term, number, offset))
        offset += len(term) + 1
    if len(terms) < n_operands:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return terms, labels_of_term(output, None, len(inputs) + 2) if arrow else None


def read_sublists(arguments):
    """Parse `operand, [0, 1], operand, [1, 2], ..., [0, 2]` into operands, labels, and output labels or None."""
    output = labels_of_list(arguments[-1]) if len(arguments) % 2 else None
    pairs = arguments[: len(arguments) // 2 * 2]
    return list(pairs[::2]), [labels_of_list(labels) for labels in pairs[1::2]], output


def labels_of_list(labels):
    read = [ELLIPSIS if label is ... else operator.index(label) for label in labels]
    if any(label is not ... and not 0 <= number < 52 for label, number in zip(labels, read)):
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return read


def without_ellipses(shapes, terms, output):
    """Replace ellipses by labels from 52 on; the dimensions they cover are aligned at the right."""
    covered = 0
    for number, (shape, labels) in enumerate(zip(shapes, terms)):
        named = len(labels) - (ELLIPSIS in labels)
        if ELLIPSIS in labels:
            if named > len(shape):
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                    f"dimensions ({len(shape)}) for operand {number}"
                )
            covered = max(covered, len(shape) - named)
        elif named != len(shape):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of "
                f"dimensions ({len(shape)}) for operand {number} and no ellipsis was given"
            )
    extra = list(range(52, 52 + covered))

    def spelled(labels, n):
        at = labels.index(ELLIPSIS) if ELLIPSIS in labels else len(labels)
        return labels[:at] + extra[covered - n :] + labels[at + 1 :] if ELLIPSIS in labels else labels

    terms = [spelled(labels, len(shape) - len(labels) + 1) for shape, labels in zip(shapes, terms)]
    if output is None:
        flat = [label for labels in terms for label in labels]
        output = extra + sorted(label for label in set(flat) if label < 52 and flat.count(label) == 1)
    else:
        output = spelled(output, covered)
        check_output(terms, output)
    return terms, output


def check_output(terms, output):
    for label in output:
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {LETTERS[label]} appears more than once in the output")
        if not any(label in labels for labels in terms):
            raise RuntimeError(
                f"einsum(): output subscript {LETTERS[label]} does not appear in the equation for any input operand"
            )


# -- einsum: planning --


class Part:
    """An operand or a product of operands: its planned shape and labels, and the ops that lead to them."""

    def __init__(self, shape, labels):
        self.shape, self.labels, self.ops = tuple(shape), list(labels), []

    def sizes(self):
        return dict(zip(self.labels, self.shape))

    def drop(self, op, gone):
        """Remove dimensions with `op`, which takes them as its argument."""
        if gone:
            self.ops.append((op, tuple(gone)))
            kept = [d for d in range(len(self.shape)) if d not in gone]
            self.shape = tuple([self.shape[d] for d in kept])
            self.labels = [self.labels[d] for d in kept]

    def arrange(self, wanted, shape=None):
        """Permute the dimensions into the order of `wanted` (labels it lacks are skipped), then reshape."""
        order = [self.labels.index(v) for v in wanted if v in self.labels]
        if order != list(range(len(order))):
            self.ops.append((permute, tuple(order)))
        self.shape = tuple([self.shape[d] for d in order])
        if shape is not None and shape != self.shape:
            self.ops.append((reshape, shape))

    def take_diagonals(self, number):
        """Replace repeated subscripts by the diagonal."""
        for label in set(self.labels):
            while self.labels.count(label) > 1:
                first = self.labels.index(label)
                second = self.labels.index(label, first + 1)
                n = self.shape[first]
                if n != self.shape[second]:
                    raise RuntimeError(
                        f"einsum(): subscript {LETTERS[label]} is repeated for operand {number} but the sizes don't "
                        f"match, {self.shape[second]} != {n}"
                    )
                self.ops.append((_diagonal, (first, second)))
                kept = [d for d in range(len(self.shape)) if d not in (first, second)]
                self.shape = (*[self.shape[d] for d in kept], n)
                self.labels = [*[self.labels[d] for d in kept], label]

    def narrow(self, other):
        """Squeeze dimensions of length 1 that are longer in `other`: dropping them is equivalent to broadcasting."""
        long = {label for label, size in other.sizes().items() if size != 1}
        found = enumerate(zip(self.labels, self.shape))
        self.drop(squeeze, [d for d, (label, size) in found if size == 1 and label in long])

    def sum(self, kept, op):
        """Sum over all subscripts that are not kept."""
        self.drop(op, [d for d, label in enumerate(self.labels) if label not in kept])


def _diagonal(t, dims):
    return diagonal(t, 0, *dims)


def _summed(t, dims, keepdim=False):
    """Sum, keeping the dtype of integers as `tensordot` requires; `sum` would return int64."""
    return total(t, dims, keepdim, dtype=None if t.is_floating_point() or t.is_complex() else t.dtype)


def check_sizes(parts):
    sizes: dict[int, int] = {}
    for number, part in enumerate(parts):
        for label, size in zip(part.labels, part.shape):
            seen = sizes.get(label, 1)
            if size not in (1, seen) and seen != 1:
                name = LETTERS[label] if label < 52 else "..."
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {number} which does not broadcast with "
                    f"previously seen size {seen}"
                )
            sizes[label] = max(seen, size) if size else 0


def contracted(a, b, kept):
    """Arrange two parts for multiplication and return (their product, the op that computes it)."""
    a.narrow(b)
    b.narrow(a)
    a.sum(kept.union(b.labels), total)
    b.sum(kept.union(a.labels), total)
    both = [label for label in a.labels if label in b.labels]
    batch, over = [v for v in both if v in kept], [v for v in both if v not in kept]
    left, right = [v for v in a.labels if v not in both], [v for v in b.labels if v not in both]
    labels, sizes = batch + left + right, {**a.sizes(), **b.sizes()}
    product = Part([sizes[v] for v in labels], labels)
    if not over:
        for part in (a, b):
            own = part.sizes()
            part.arrange(labels, tuple([own.get(v, 1) for v in labels]))
        return product, mul
    stacks, rows, inner, columns = (math.prod([sizes[v] for v in part]) for part in (batch, left, over, right))
    first = (stacks,) if batch else ()
    a.arrange(batch + left + over, (*first, rows, inner))
    b.arrange(batch + over + right, (*first, inner, columns))
    if product.shape != (*first, rows, columns):
        product.ops.append((reshape, product.shape))
    return product, bmm if batch else mm


def planned(terms, output, shapes):
    """Return the plan: a step (i, j, ops of i, ops of j, multiply) for each product, and the ops of the result.

    i and j are the operands to multiply next; their product is appended to the list of operands.
    """
    terms, output = without_ellipses(shapes, terms, output)
    parts, steps = [Part(shape, labels) for shape, labels in zip(shapes, terms)], []
    for number, part in enumerate(parts):
        part.take_diagonals(number)
    check_sizes(parts)
    for pair in pairs_in_order(parts, output):
        i, j = sorted(pair)
        b, a = parts.pop(j), parts.pop(i)
        product, multiply = contracted(a, b, set(output).union(*[part.labels for part in parts]))
        steps.append((i, j, tuple(a.ops), tuple(b.ops), multiply))
        parts.append(product)
    last = parts[0]
    last.sum(output, total)
    last.arrange(output)
    return steps, tuple(last.ops)


@lru_cache(maxsize=1024)
def planned_for(equation, shapes):
    """Return the plan of an equation."""
    terms, output = read_equation(equation, len(shapes))
    return planned(terms, output, shapes)


# Whether and how opt_einsum looks for an order: the settings `enabled` and `strategy` of `backends.opt_einsum`.
search = {"enabled": True, "strategy": "auto"}


def pairs_in_order(parts, output):
    """Return the pairs of operands to multiply, in order; each product is appended to the list.

    The order comes from opt_einsum if that is installed and not switched off, and goes from left to right otherwise.
    """
    n = len(parts)
    if n > 2 and search["enabled"]:
        try:
            import opt_einsum  # optional
        except ImportError:
            pass
        else:
            terms = [part.labels for part in parts]
            sides = ["".join(map(opt_einsum.get_symbol, labels)) for labels in (*terms, output)]
            equation = ",".join(sides[:-1]) + "->" + sides[-1]
            shapes = [part.shape for part in parts]
            path = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=search["strategy"])[0]
            if all(len(pair) == 2 for pair in path):
                return path
    return [(0, 1)] + [(0, length - 1) for length in range(n - 1, 1, -1)] if n > 1 else []


# -- einsum: evaluation --


def check_operands(operands):
    for i, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type_name(operand)}")


def check_types(a, b):
    """Check the operand dtypes of a matrix product. Elementwise products promote them, and autocast unifies them."""
    if a.dtype is not b.dtype and not autocast.is_enabled("cpu"):
        raise RuntimeError(f"expected scalar type {a.dtype.type_name} but found {b.dtype.type_name}")


@facts(autocast_gpu="lower", in_python=True)
def einsum(*args):
    """Sum products of operands by the Einstein summation convention.

    In `einsum(equation, *operands)`, the equation names each dimension of each operand by a letter, as in "ij,jk->ik".
    The result has the dimensions named after the arrow, in that order; all others are summed over. Without an arrow, it
    has the dimensions named exactly once, in alphabetical order (A to Z, then a to z). A letter repeated within an
    operand takes its diagonal. "..." stands for the unnamed dimensions, which broadcast. Spaces are ignored.
    `einsum(operand, [0, 1], operand, [1, 2], [0, 2])` is the same with numbers below 52 in place of letters.

    With more than two operands, opt_einsum, if installed, determines the order of multiplication; settings are in
    `backends.opt_einsum`. Raises RuntimeError
    for equations that do not fit the operands.

    >>> import cygrad
    >>> a = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cygrad.einsum("ij,kj->ik", a, a)
    tensor([[ 5., 11.],
            [11., 25.]])
    >>> cygrad.einsum("ii", a)
    tensor(5.)
    """
    if len(args) < 2 or len(args) == 2 and isinstance(args[1], (list, tuple)) and not args[1]:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
        check_operands(operands)
        plan = planned_for if len(operands) <= 2 else planned_for.__wrapped__  # opt_einsum's answer may change
        steps, last = plan(args[0], tuple([array_of(t).shape for t in operands]))
    elif not isinstance(args[0], Tensor) and not hasattr(args[0], "__array__"):
        raise messages.wrong_type("einsum", "equation", 1, "str", args[0])
    else:
        operands, terms, output = read_sublists(args)
        check_operands(operands)
        steps, last = planned(terms, output, [array_of(t).shape for t in operands])
    for i, j, ops_of_a, ops_of_b, multiply in steps:
        b, a = _changed(operands.pop(j), ops_of_b), _changed(operands.pop(i), ops_of_a)
        if multiply is not mul:
            check_types(a, b)
        operands.append(multiply(a, b))
    result = _changed(operands[0], last)
    return result if result is not operands[0] or steps else permute(result, list(range(result.dim())))


def _changed(t, ops):
    for op, how in ops:
        t = op(t, how)
    return t


# -- tensordot, kron --


@facts(autocast_gpu="widest", out_dtype="output", in_python=True)
def tensordot(a, b, dims=2, out=None):
    """Contract `a` and `b` over `dims`: the last dimensions of `a` with the first of `b`, or two lists of dimensions.

    With `dims` = 1, out[i, ..., j, ...] = sum over k of a[i, ..., k] * b[k, j, ...].

    The result has the remaining dimensions of `a`, then those of `b`. Raises RuntimeError if contracted lengths differ.

    >>> import cygrad
    >>> a = cygrad.ones(3, 4, 5)
    >>> cygrad.tensordot(a, cygrad.ones(4, 3, 2), dims=([1, 0], [0, 1])).shape
    torch.Size([5, 2])
    """
    require(a, "tensordot", "a")
    require(b, "tensordot", "b", 2)
    of_a, of_b = dims_to_contract(a, b, dims)
    if len(of_a) != len(of_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"both inputs should have same dtype\n  got {a.dtype} and {b.dtype}")
    lengths = [(array_of(a).shape[i], array_of(b).shape[j]) for i, j in zip(of_a, of_b)]
    for (m, n), i, j in zip(lengths, of_a, of_b):
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in "
                f"dim {j}"
            )
    for (m, n), i, j in zip(lengths, of_a, of_b):  # length 1 broadcasts: sum over the other operand first
        if m != n:
            a, b = (a, _summed(b, j, True)) if m == 1 else (_summed(a, i, True), b)
    shape_a, shape_b = array_of(a).shape, array_of(b).shape
    of_a = [dim_argument(i, len(shape_a), "tensordot", "dims", 3) for i in of_a]
    of_b = [dim_argument(j, len(shape_b), "tensordot", "dims", 3) for j in of_b]
    left = [d for d in range(len(shape_a)) if d not in of_a]
    right = [d for d in range(len(shape_b)) if d not in of_b]
    rows, columns = [shape_a[d] for d in left], [shape_b[d] for d in right]
    inner = math.prod([shape_a[d] for d in of_a])
    product = mm(_matrix(a, left + of_a, math.prod(rows), inner), _matrix(b, of_b + right, inner, math.prod(columns)))
    return given("tensordot", reshape(product, (*rows, *columns)), out, a, b)


def _matrix(t, order, rows, columns):
    ordered = t if order == list(range(len(order))) else permute(t, order)
    return reshape(ordered, (rows, columns))


def dims_to_contract(a, b, dims):
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims)
    if isinstance(dims, (list, tuple)) and len(dims) == 2 and all(isinstance(part, (list, tuple)) for part in dims):
        return list(dims[0]), list(dims[1])
    if not isinstance(dims, int):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return list(range(-dims, 0)), list(range(dims))


def kron(input, other, *, out=None):
    """Kronecker product: copies of `other` scaled by each element of `input`.

    For matrices, with `other` (p, q): out[p i + k, q j + l] = input[i, j] * other[k, l].

    The operand with fewer dimensions is padded with leading dimensions of length 1. Lengths multiply.

    >>> import cygrad
    >>> cygrad.kron(cygrad.tensor([1, 10]), cygrad.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    require(input, "kron")
    require(other, "kron", "other", 2)
    first, second, shape = _kron_shapes(array_of(input).shape, array_of(other).shape)
    product = reshape(mul(reshape(input, first), reshape(other, second)), shape)
    return given("kron", product, out, input, other)


@lru_cache(256)
def _kron_shapes(first, second):
    """Return (the two shapes in which the tensors are multiplied, the shape of their Kronecker product)."""
    n = max(len(first), len(second))
    first, second = (1,) * (n - len(first)) + first, (1,) * (n - len(second)) + second
    return (
        tuple([v for size in first for v in (size, 1)]),
        tuple([v for size in second for v in (1, size)]),
        tuple([p * q for p, q in zip(first, second)]),
    )


# -- trace --


def trace_rule(n, g):
    (shape,) = n.args
    one = eye(*shape, dtype=g.dtype, device=g.device)
    return mul(one, expand(g, shape), out=reused(one))


TRACE = declare(
    "trace",
    trace_rule,
    flags=LINEAR,
    kernel=lambda a, shape: sum_of_array(a.diagonal()),
    inputs="self",
    attributes="self_sym_sizes",
    autocast="float32",
)


def trace(input):
    """Return the sum of the diagonal of a matrix, in int64 for integers.

    The result is sum over i of input[i, i].

    Saves nothing. Gradient: g on the diagonal, 0 elsewhere.

    >>> import cygrad
    >>> cygrad.trace(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    t = tensor_argument(TRACE, input, "input", 1)
    if t.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {t.dim()}")
    kind = array_of(t).dtype.kind
    if kind == "b":
        raise messages.not_implemented_for("trace", t.dtype)
    if kind in "iu":
        t = t.long()
    return apply_n(TRACE, (t,), (tuple(t.shape),))


@rule("trace")
def _trace(call):
    return call.full(call.inputs[0]).diagonal(0, 1, 2).sum(1)


composite = {"einsum": FUNCTION_ONLY, "tensordot": FUNCTION_ONLY, "kron": 0}
functions = publish(globals())
