"""Sums of products over chosen dimensions: Einstein's notation, `tensordot`, Kronecker products, traces.

All are made of other ops, whose gradients they have, except `trace`.
"""

import math
import operator

from cygrad._core import messages
from cygrad._core.access import array_of
from cygrad._core.gradients_in_blocks import reused
from cygrad._core.opdef import FUNCTION_ONLY, LINEAR, declare, publish
from cygrad._core.record import apply_n, tensor_argument
from cygrad._core.tensor import Tensor
from cygrad._kernels.reduce import sum as sum_of_array
from cygrad._ops.arguments import dim_argument, require, type_name
from cygrad._ops.arithmetic import mul
from cygrad._ops.delivering import given
from cygrad._ops.diagonals import diagonal
from cygrad._ops.products import bmm, mm
from cygrad._ops.ranges import eye
from cygrad._ops.reductions import sum as total
from cygrad._ops.views import expand, permute, reshape, squeeze, unsqueeze

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ELLIPSIS = -1

# -- einsum: reading the equation -----------------------------------------------------------------


def labels_of_term(term, operand, offset=0):
    """The subscripts of one operand as numbers, where an ellipsis is one of them; `operand` is None for the output."""
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
    """The labels of each operand, and those of the output or None."""
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
    """`operand, [0, 1], operand, [1, 2], ..., [0, 2]`: the operands, their labels, and those of the output or None."""
    output = labels_of_list(arguments[-1]) if len(arguments) % 2 else None
    pairs = arguments[: len(arguments) // 2 * 2]
    return list(pairs[::2]), [labels_of_list(labels) for labels in pairs[1::2]], output


def labels_of_list(labels):
    read = [ELLIPSIS if label is ... else operator.index(label) for label in labels]
    if any(label is not ... and not 0 <= number < 52 for label, number in zip(labels, read)):
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return read


def without_ellipses(operands, terms, output):
    """The labels with numbers from 52 on in place of ellipses, whose dimensions are aligned at the right."""
    covered = 0
    for number, (t, labels) in enumerate(zip(operands, terms)):
        named = len(labels) - (ELLIPSIS in labels)
        if ELLIPSIS in labels:
            if named > t.dim():
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                    f"dimensions ({t.dim()}) for operand {number}"
                )
            covered = max(covered, t.dim() - named)
        elif named != t.dim():
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of "
                f"dimensions ({t.dim()}) for operand {number} and no ellipsis was given"
            )
    extra = list(range(52, 52 + covered))

    def spelled(labels, n):
        at = labels.index(ELLIPSIS) if ELLIPSIS in labels else len(labels)
        return labels[:at] + extra[covered - n :] + labels[at + 1 :] if ELLIPSIS in labels else labels

    terms = [spelled(labels, t.dim() - len(labels) + 1) for t, labels in zip(operands, terms)]
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


# -- einsum: computing ----------------------------------------------------------------------------


def diagonalised(t, labels, number):
    """The operand with repeated subscripts taken along their diagonal."""
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if t.shape[first] != t.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {LETTERS[label]} is repeated for operand {number} but the sizes don't match, "
                    f"{t.shape[second]} != {t.shape[first]}"
                )
            t = diagonal(t, 0, first, second)
            labels = [v for i, v in enumerate(labels) if i not in (first, second)] + [label]
    return t, labels


def check_sizes(operands, terms):
    sizes: dict[int, int] = {}
    for number, (t, labels) in enumerate(zip(operands, terms)):
        for label, size in zip(labels, t.shape):
            seen = sizes.get(label, 1)
            if size not in (1, seen) and seen != 1:
                name = LETTERS[label] if label < 52 else "..."
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {number} which does not broadcast with "
                    f"previously seen size {seen}"
                )
            sizes[label] = max(seen, size) if size else 0


def summed(t, labels, kept, dtype=None):
    """The sum over all subscripts that are not kept."""
    gone = [i for i, label in enumerate(labels) if label not in kept]
    return (total(t, gone, dtype=dtype) if gone else t), [label for label in labels if label in kept]


def narrowed(t, labels, other, other_labels):
    """Without the dimensions of length 1 that stand against longer ones: broadcasting them is leaving them out."""
    long = {label for label, size in zip(other_labels, other.shape) if size != 1}
    gone = [i for i, (label, size) in enumerate(zip(labels, t.shape)) if size == 1 and label in long]
    return (squeeze(t, tuple(gone)) if gone else t), [label for i, label in enumerate(labels) if i not in gone]


def contracted(a, a_labels, b, b_labels, kept):
    """The product of two operands, summed over what is not kept."""
    a, a_labels = narrowed(a, a_labels, b, b_labels)
    b, b_labels = narrowed(b, b_labels, a, a_labels)
    dtype = None if a.is_floating_point() or a.is_complex() else a.dtype  # without it, the sum of integers is int64
    a, a_labels = summed(a, a_labels, kept | set(b_labels), dtype)
    b, b_labels = summed(b, b_labels, kept | set(a_labels), dtype)
    both = [label for label in a_labels if label in b_labels]
    batch, over = [v for v in both if v in kept], [v for v in both if v not in kept]
    left, right = [v for v in a_labels if v not in both], [v for v in b_labels if v not in both]
    labels = batch + left + right
    if not over:
        return mul(aligned(a, a_labels, labels), aligned(b, b_labels, labels)), labels
    sizes = {**dict(zip(a_labels, a.shape)), **dict(zip(b_labels, b.shape))}
    stacks, rows, inner, columns = (math.prod(sizes[v] for v in part) for part in (batch, left, over, right))
    a = permute(a, [a_labels.index(v) for v in batch + left + over])
    b = permute(b, [b_labels.index(v) for v in batch + over + right])
    if batch:
        product = bmm(reshape(a, (stacks, rows, inner)), reshape(b, (stacks, inner, columns)))
    else:
        product = mm(reshape(a, (rows, inner)), reshape(b, (inner, columns)))
    return reshape(product, tuple(sizes[v] for v in labels)), labels


def aligned(t, labels, wanted):
    """Permuted into the order of the wanted subscripts, with dimensions of length 1 for those it lacks."""
    t = permute(t, [labels.index(v) for v in wanted if v in labels])
    for i, label in enumerate(wanted):
        if label not in labels:
            t = unsqueeze(t, i)
    return t


def pairs_in_order(operands, terms, output):
    """Which operands to multiply next; the product goes to the end of the list.

    It is opt_einsum's choice if that is installed, else from the left.
    """
    n = len(operands)
    if n > 2:
        try:
            import opt_einsum
        except ImportError:
            pass
        else:
            sides = ["".join(map(opt_einsum.get_symbol, labels)) for labels in (*terms, output)]
            equation = ",".join(sides[:-1]) + "->" + sides[-1]
            path = opt_einsum.contract_path(equation, *(tuple(t.shape) for t in operands), shapes=True)[0]
            if all(len(pair) == 2 for pair in path):
                return path
    return left_to_right(n)


def left_to_right(n):
    return [(0, 1)] + [(0, length - 1) for length in range(n - 1, 1, -1)] if n > 1 else []


def check_operands(operands):
    for i, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type_name(operand)}")
    kinds = [t.dtype for t in operands]
    for kind in kinds[1:]:
        if kind is not kinds[0]:
            first, other = kinds[0].type_name, kind.type_name
            raise RuntimeError(f"expected scalar type {first} but found {other}")


def einsum(*args):
    """Sums of products by Einstein's summation convention.

    `einsum(equation, *operands)`: the equation names each dimension of each operand by a letter, as in "ij,jk->ik".
    The result has the dimensions named behind the arrow, in that order; the others are summed over. Without an arrow,
    it has those that are named once, in alphabetical order. A letter that an operand repeats takes its diagonal; "..."
    stands for the dimensions not named, which broadcast. Letters are ordered A to Z, a to z; blanks count for nothing.
    `einsum(operand, [0, 1], operand, [1, 2], [0, 2])` says the same with numbers below 52.

    Of more than two operands, those are multiplied first that opt_einsum says, if it is installed. Raises RuntimeError
    for equations that do not fit the operands.

    >>> import cygrad
    >>> a = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cygrad.einsum("ij,kj->ik", a, a)
    tensor([[ 5., 11.],
            [11., 25.]])
    >>> cygrad.einsum("ii", a)
    tensor(5.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
        check_operands(operands)
        terms, output = read_equation(args[0], len(operands))
    else:
        operands, terms, output = read_sublists(args)
        check_operands(operands)
    terms, output = without_ellipses(operands, terms, output)
    for number, (t, labels) in enumerate(zip(operands, terms)):
        operands[number], terms[number] = diagonalised(t, labels, number)
    check_sizes(operands, terms)
    for pair in pairs_in_order(operands, terms, output):
        chosen = [(operands.pop(i), terms.pop(i)) for i in sorted(pair, reverse=True)]
        result, labels = chosen.pop()
        for other, other_labels in reversed(chosen):
            kept = set(output).union(*terms)
            result, labels = contracted(result, labels, other, other_labels, kept)
        operands.append(result)
        terms.append(labels)
    result, labels = summed(operands[0], terms[0], output)
    return permute(result, [labels.index(v) for v in output])


# -- tensordot, kron ------------------------------------------------------------------------------


def tensordot(a, b, dims=2, out=None):
    """The sum of products over `dims`: the last `dims` dimensions of `a` and the first of `b`, or two lists of them.

    The result has what remains of a's dimensions, then what remains of b's. Raises RuntimeError if the lengths differ.

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
    lengths = [(array_of(a).shape[i], array_of(b).shape[j]) for i, j in zip(of_a, of_b)]
    for (m, n), i, j in zip(lengths, of_a, of_b):
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in "
                f"dim {j}"
            )
    for (m, n), i, j in zip(lengths, of_a, of_b):  # a length of 1 is broadcast: the other is summed over
        if m != n:
            a, b = (a, total(b, j, True)) if m == 1 else (total(a, i, True), b)
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
    """The Kronecker product: blocks of `other`, one for each element of `input` and multiplied by it.

    Both are taken to have as many dimensions as the one that has more; the lengths multiply.

    >>> import cygrad
    >>> cygrad.kron(cygrad.tensor([1, 10]), cygrad.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    require(input, "kron")
    require(other, "kron", "other", 2)
    n = max(input.dim(), other.dim())
    shapes = [(1,) * (n - t.dim()) + tuple(t.shape) for t in (input, other)]
    a = reshape(input, tuple(v for size in shapes[0] for v in (size, 1)))
    b = reshape(other, tuple(v for size in shapes[1] for v in (1, size)))
    product = reshape(mul(a, b), tuple(p * q for p, q in zip(*shapes)))
    return given("kron", product, out, input, other)


# -- trace ----------------------------------------------------------------------------------------


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
)


def trace(input):
    """The sum of the diagonal of a matrix; of integers in int64. Saves nothing. Gradient: g on the diagonal of zeros.

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


composite = {"einsum": FUNCTION_ONLY, "tensordot": FUNCTION_ONLY, "kron": 0}
functions = publish(globals())
