"""Lookups by integers: embeddings, sums of embeddings (bags), and one-hot encodings.

Gradients of the matrix are dense, or with `sparse=True` sparse: they then hold the rows that were looked up. Functions
with the signatures of nn.functional; in the main package, the matrix comes first.
"""

from functools import lru_cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import is_forward, keep
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, IN0, IN1, NONDIFF, declare, named, publish
from cygrad._core.graph.record import record_n, record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.transforms.forward_mode import has_samples
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import private
from cygrad._kernels.cpu.nn import embeddings as kernels
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.tape.calls import noted
from cygrad._kernels.tape.tape import noted_data
from cygrad._library import later
from cygrad._ops.base.arguments import integer, require
from cygrad._ops.base.arithmetic import div, mul
from cygrad._ops.base.batching.rules import leading, rule
from cygrad._ops.base.checks.common import are_within, check_unbatched, first_outside, typed
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import reshape, unsqueeze
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.creation.ranges import arange
from cygrad._ops.elementwise.selection import where
from cygrad._ops.indexing.gathering import index_add, index_select, scatter_add
from cygrad._ops.indexing.masked_fill import masked_fill

sparse_tensors = later("cygrad._ops.sparse.entries")  # needed only for sparse gradients

SUM, MEAN, MAX = range(3)
MODES = {"sum": SUM, "mean": MEAN, "max": MAX}


def _check_indices(indices, function):
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.type_name}Tensor instead (while checking arguments for {function})"
        )


def _out_of_range(indices, count):
    return not is_array(indices) and not are_within(indices, 0, count)


def _added_rows(rows, taken, padding, shape):
    """Return a matrix of this shape: each row is the sum of the rows with the same index, and that of the padding 0."""
    if not is_forward() and get_modes() & NO_GRAD:
        return tensor_of(kernels.added_rows(array_of(rows), array_of(taken), shape[0], padding))
    if padding >= 0:  # the sums would not do: higher derivatives have to be 0 there, too
        rows = masked_fill(rows, unsqueeze(taken == padding, 1), 0)
    return index_add(rows.new_zeros(shape), 0, taken, rows)


# -- embedding --


def embedding_rule(n, g):
    padding_idx, by_frequency, is_sparse, shape = n.args
    taken = n.saved(1)
    rows = reshape(g, (-1, shape[1])) if shape[1] else g.reshape(taken.numel(), 0)
    if is_sparse:
        if by_frequency:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return _sparse_gradient(n, rows, array_of(taken).reshape(-1), padding_idx, shape, g.dtype)
    indices = reshape(taken, (-1,))
    return _added_rows(_per_occurrence(rows, indices, shape) if by_frequency else rows, indices, padding_idx, shape)


def _per_occurrence(rows, indices, shape):
    """Divide each row by the number of times that its index occurs."""
    if is_forward():  # each sample of a batch may have indices of its own
        ones = rows.new_ones(indices.shape, dtype=sum_type(rows))
        counts = index_add(ones.new_zeros(shape[:1]), 0, indices, ones)
        return div(rows, unsqueeze(index_select(counts, 0, indices), 1))
    places = private(array_of(indices))
    if _out_of_range(places, shape[0]):
        raise IndexError("index out of range in self")
    return mul(rows, tensor_of(kernels.frequency_scale(places, array_of(rows).dtype)[:, None]))


def _sparse_gradient(n, rows, indices, padding, shape, dtype):
    """Return the gradient of the matrix as a sparse tensor of the rows that were looked up, without the padding.

    For a matrix that was computed from others it is dense, because few ops take sparse gradients.
    """
    if padding >= 0:
        kept = np.nonzero(indices != padding)[0]
        rows, indices = index_select(rows, 0, tensor_of(kept)), indices[kept]
    rows = rows.to(dtype)  # scaled rows of half precision are in float32
    found = sparse_tensors.built(indices.reshape(1, -1).astype(np.int64), rows.clone(), shape)
    return found if n.next_functions[0][0].name() == "torch::autograd::AccumulateGrad" else found.to_dense()


EMBEDDING = declare(
    "embedding",
    embedding_rule,
    flags=ELSEWHERE,
    inputs="weight indices",
    attributes="padding_idx scale_grad_by_freq sparse _",
    devices="together",
    derived={"weight_sym_argsize_0": (3, 0)},
)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Return the rows of the matrix `weight` at the indices `input`; the result has one dimension more than `input`.

    out[..., j] = weight[input[...], j].

    The row `padding_idx` gets no gradient. Selected rows with a norm larger than `max_norm` are first scaled to it, in
    place. Saves `input`. Gradient: for each row, the sum of g over all its occurrences; with `scale_grad_by_freq` the
    mean; with `sparse`, a sparse tensor of the rows that were looked up. Raises IndexError for an index out of range,
    RuntimeError for other dtypes and shapes.

    >>> import cygrad
    >>> cygrad.nn.functional.embedding(cygrad.tensor([1, 0]), cygrad.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = require(weight, "embedding", "weight").shape[0]
        if not -rows <= padding_idx < max(rows, 1):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx += rows if padding_idx < 0 else 0
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return embedding_of_package(weight, input, padding_idx, scale_grad_by_freq, sparse)


@rule("embedding")
def _embedding(call):
    table, indices = call.inputs[0], call.kept[1]
    padding, by_frequency, sparse, _ = call.args
    row = None if padding < 0 else padding
    if not call.has(table) and not by_frequency:
        return embedding(call.samples(indices), table, row, sparse=sparse)
    tables, sample = call.full(table), arange(call.size, device=table.device).view(-1, *(1,) * indices.ndim)
    if padding < 0 and not by_frequency:
        return tables[sample, call.near(indices)]
    numbers = sample * len(table) + call.near(indices)
    found = embedding(numbers, tables.flatten(0, 1), scale_grad_by_freq=by_frequency, sparse=sparse)
    if row is None:
        return found
    is_padding = (call.full(indices) == row).unsqueeze(-1)
    return where(is_padding, found.detach(), found)


@named("embedding")
def embedding_of_package(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Return the rows of the matrix `weight` at `indices`; `padding_idx`, if not negative, gets no gradient.

    >>> import cygrad
    >>> cygrad.embedding(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]), cygrad.tensor([1, 0, 1]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    w, i = require(weight, "embedding", "weight"), require(indices, "embedding", "indices", 2)
    if w.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(i, "embedding")
    table, places = array_of(w), array_of(i)
    if _out_of_range(places, len(table)):
        wrong = places[(places < 0) | (places >= len(table))].flat[0]
        raise IndexError(f"index out of range in self\n  embedding: there is no row {wrong} in a table of {len(table)}")
    result = record_n(
        EMBEDDING, kernels.rows(table, places), (w,), (padding_idx, bool(scale_grad_by_freq), sparse, table.shape), i
    )
    keep(result, 1, i)
    return result


def embedding_renorm_(input, indices, max_norm, norm_type=2.0):
    """Scale the rows at `indices` with a norm larger than `max_norm` to that norm, in place; not recorded.

    Such a row is multiplied by max_norm / (norm + 1e-7).

    >>> import cygrad
    >>> table = cygrad.tensor([[3.0, 4.0], [0.3, 0.4]])
    >>> cygrad.embedding_renorm_(table, cygrad.tensor([0, 1]), 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    w, i = require(input, "embedding_renorm_"), require(indices, "embedding_renorm_", "indices", 2)
    check_unbatched("embedding_renorm_", w, i)
    _check_indices(i, "embedding_renorm_")
    table, places = array_of(w), np.unique(array_of(i))
    if _out_of_range(places, len(table)):
        raise IndexError("index out of range in self")
    longer, scaled = kernels.scaled_to_norm(table, places, float(max_norm), float(norm_type))
    if longer.size:
        w.detach().index_copy_(0, tensor_of(longer.astype(np.int64)), tensor_of(scaled))
    return w


# -- embedding_bag --


def embedding_bag_rule(n, g):
    indices, bags, scale, largest, mode, shape = n.args[:6]
    if mode == MAX:
        places, empty = largest
        if empty is not None:
            g = masked_fill(g, tensor_of(empty[:, None]), 0)
        zeros = tensor_of(noted_data(np.zeros(shape, array_of(g).dtype, like=array_of(g))))
        return scatter_add(zeros, 0, tensor_of(places), g), None
    rows, taken = index_select(g, 0, tensor_of(bags)), tensor_of(indices)
    is_sparse, padding, by_frequency = n.args[6:]
    grad_weights = None
    if n.needs(1):
        grad_weights = total(mul(rows, index_select(n.saved(0), 0, taken)), 1)
        if padding >= 0:
            grad_weights = masked_fill(grad_weights, taken == padding, 0)
    if not n.needs(0):
        return None, grad_weights
    if scale is not None:
        rows = mul(rows, tensor_of(scale[:, None]))
    weights = n.saved(1)
    if weights is not None:
        rows = mul(rows, unsqueeze(weights, 1))
    if is_sparse and by_frequency:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    if is_sparse:
        return _sparse_gradient(n, rows, indices, padding, shape, g.dtype), grad_weights
    return _added_rows(rows, taken, padding, shape), grad_weights


EMBEDDING_BAG = declare(
    "embedding_bag",
    embedding_bag_rule,
    saves=(IN1, IN0),
    flags=ELSEWHERE,
    inputs="weight per_sample_weights",
    attributes="_ _ _ _ mode",
    devices="together",
    batching=None,
    vmap_name="embedding_bag.padding_idx",
    overloads="345678",
    derived={
        "indices": lambda n: tensor_of(n.args[0]),
        "result1": lambda n: tensor_of(n.args[1]),
        "weight_sym_argsize_0": (5, 0),
        "sparse": (6,),
        "padding_idx": (7,),
        "scale_grad_by_freq": (8,),
    },
)


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Return the "sum", "mean" or "max" of the rows of `weight` at the indices in each bag: (bags, columns).

    For sums, out[b, j] = sum over the indices i of bag b of per_sample_weights[i] * weight[input[i], j].

    A bag is a row of a matrix `input`. In a vector, the bags start at `offsets`; with `include_last_offset`, the last
    offset is the end of the last bag. `per_sample_weights`, of the same shape as input, are the weights of the rows in
    a sum. `padding_idx` does not count. The result for an empty bag is 0. Saves the indices, and what the gradients of
    the two factors need. The gradient of `weight` is a sparse tensor if `sparse` is set. Raises ValueError or
    RuntimeError for invalid arguments.

    >>> import cygrad
    >>> cygrad.nn.functional.embedding_bag(cygrad.tensor([[0, 1], [1, 1]]), cygrad.eye(2))
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    i, w = require(input, "embedding_bag"), require(weight, "embedding_bag", "weight", 2)
    if w.dtype.name == "int64" and i.dtype.is_floating_point:
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        i, w = w, i
    weights = per_sample_weights
    if weights is not None and i.shape != weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, then it must have the same shape as "
            f"the input ({i.shape})"
        )
    if w.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {w.ndim}")
    if i.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = tensor_of(noted_data(np.arange(i.shape[0], like=array_of(i)) * i.shape[1]))
        include_last_offset = False
        i, weights = reshape(i, -1), weights if weights is None else reshape(weights, -1)
    elif i.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {i.ndim}")
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        embedding_renorm_(w, i, max_norm, norm_type)
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    return embedding_bag_of_package(
        w, i, offsets, scale_grad_by_freq, MODES[mode], sparse, weights, include_last_offset, padding_idx
    )[0]


@noted
def _joined_in_bags(table, places, starts, weights, mode, padding, by_frequency):
    """Return (the results, the places as int64, the bag of each, the sizes, the rows of the maxima, more).

    The last is which bags are empty, for maxima and if any is, or the factors of the gradients, otherwise and if any.
    """
    bags = kernels.bag_of_each(starts, len(places))
    places = places.astype(np.int64)
    counted = places != padding
    sizes = kernels.bag_sizes(bags, counted, len(starts))
    if mode == MAX:
        result, rows = kernels.largest_of_bags(table, places, bags, sizes, counted)
        return result, places, bags, sizes, rows, sizes == 0 if is_array(sizes) or (sizes == 0).any() else None
    result = kernels.sums_of_bags(table, places, bags, weights, counted, sizes, mode == MEAN)
    scale = kernels.bag_scale(places, bags, sizes, mode == MEAN, by_frequency, table.dtype)
    return result, places, bags, sizes, np.zeros(len(starts), np.int64, like=places), scale


@typed(scale_grad_by_freq=bool, mode=int, sparse=bool, include_last_offset=bool)
@named("embedding_bag")
def embedding_bag_of_package(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=SUM,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Return (the results of the bags, the bag of each index, the sizes of the bags, the rows of the maxima).

    `mode` is a code: 0 sum, 1 mean, 2 max. See nn.functional.embedding_bag.

    >>> import cygrad
    >>> rows = cygrad.tensor([[1.0], [2.0], [4.0]])
    >>> cygrad.embedding_bag(rows, cygrad.tensor([0, 1, 2]), cygrad.tensor([0, 2]))[0]
    tensor([[3.],
            [4.]])
    """
    w, i = require(weight, "embedding_bag", "weight"), require(indices, "embedding_bag", "indices", 2)
    o = require(offsets, "embedding_bag", "offsets", 3)
    check_unbatched("embedding_bag", i, o)
    if include_last_offset and not o.numel():
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if not o.numel() and i.ndim == 1:  # no bags: drop the indices
        i, per_sample_weights = i[:0], per_sample_weights if per_sample_weights is None else per_sample_weights[:0]
    _check_indices(i, "embedding_bag")
    _check_indices(o, "embedding_bag")
    if mode not in MODES.values():
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if isinstance(per_sample_weights, Tensor) and per_sample_weights.dtype is not w.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {messages.type_word(array_of(w))} does not equal "
            f"{messages.type_word(array_of(per_sample_weights))} (while checking arguments for embedding_bag)"
        )
    table, places, starts = array_of(w), private(array_of(i)), private(array_of(o))
    for array, what in ((places, "input"), (starts, "offsets")):
        if array.ndim != 1:
            rank = "1D" if what == "offsets" or array.ndim == 2 else "1D or 2D"
            raise RuntimeError(f"{what} has to be a {rank} Tensor, but got Tensor of dimension {array.ndim}")
    if table.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {table.ndim}")
    if padding_idx is not None:
        padding_idx = integer(padding_idx, "embedding_bag", "padding_idx", 9)
    _check_bags(table, places, starts, padding_idx)
    if not w.dtype.is_floating_point:
        raise messages.not_implemented_for("embedding_bag", w.dtype)
    padding = -1 if padding_idx is None else padding_idx % len(table)
    starts = starts[:-1] if include_last_offset else starts
    weights = None if per_sample_weights is None else array_of(per_sample_weights)
    found = _joined_in_bags(table, places, starts, weights, mode, padding, scale_grad_by_freq)
    result, places, bags, sizes, rows, more = found
    scale, largest = (None, (rows, more)) if mode == MAX else (more, None)
    args = places, bags, scale, largest, mode, table.shape, sparse, padding, scale_grad_by_freq
    arrays = result, bags, sizes, rows
    shown = i, o, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    return record_outputs(EMBEDDING_BAG, arrays, (w, per_sample_weights), args, 1, shown)


@noted
def _check_bags(table, places, starts, padding_idx):
    if starts.size and not is_array(starts) and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {starts[0]}"
        )
    if starts.size and not is_array(starts) and starts[-1] > len(places):
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {len(places)} but got offsets[-1] of {starts[-1]}"
        )
    if starts.size and not is_array(starts) and not (starts[1:] >= starts[:-1]).all():
        raise RuntimeError(f"offsets must not decrease, but got {starts.tolist()}")
    if padding_idx is not None and not -len(table) <= padding_idx < len(table):
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-len(table)} through {len(table) - 1}, but got "
            f"{padding_idx}"
        )
    if _out_of_range(places, len(table)):
        wrong = first_outside(places, 0, len(table))
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong}\n  there are "
            f"{len(table)} embeddings"
        )


# -- one_hot --


_FEW_CLASSES = 64


@lru_cache(_FEW_CLASSES)
def unit_rows(count):
    """Return the identity matrix, read-only because it is cached."""
    rows = np.eye(count, dtype=np.int64)
    rows.flags.writeable = False
    return rows


def one_hot_array(a, num_classes):
    """Return an int64 array with one dimension more: 1 at the class, 0 elsewhere."""
    if is_array(a):
        return (a[..., None] == np.arange(num_classes, like=a)).astype(np.int64)
    if num_classes <= _FEW_CLASSES and a.size <= chunks.SIZE:
        return unit_rows(num_classes).take(a, 0)
    rows, classes = np.zeros((a.size, num_classes), np.int64), a.reshape(-1)
    for start in range(0, a.size, chunks.SIZE):
        part = classes[start : start + chunks.SIZE]
        rows[start : start + chunks.SIZE][np.arange(len(part)), private(part)] = 1
    return rows.reshape(*a.shape, num_classes)


_one_hot_array = noted(one_hot_array)
ONE_HOT = declare("one_hot", flags=NONDIFF | ELSEWHERE, kernel=one_hot_array, inputs="self", batching=leading)


def one_hot(tensor, num_classes=-1):
    """Encode each class index in `tensor` (int64) as a row of zeros with a one at that index; adds a dimension.

    The number of classes is `num_classes`, or, if that is -1, the largest index plus one. Raises RuntimeError for
    negative indices, for indices beyond `num_classes`, and for other dtypes.

    >>> import cygrad
    >>> cygrad.nn.functional.one_hot(cygrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    array = array_of(require(tensor, "one_hot"))
    classes = integer(num_classes, "one_hot", "num_classes", 2)
    if classes == -1 and is_forward() and has_samples(tensor):
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
        )
    if tensor.dtype.name != "int64":
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor.\n"
            f"  this one is {tensor.dtype}: convert it with .long()"
        )
    if array.size == 0:
        if classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif is_array(array) and classes != -1 or classes > 0 and are_within(array, 0, classes):
        pass
    else:
        classes = _number_of_classes(array, classes)
    checked_lengths((*array.shape, int(classes)))
    return record_n(ONE_HOT, _one_hot_array(array, classes), (tensor,), (classes,))


@noted
def _number_of_classes(array, classes):
    """Return the number of classes, of which -1 means the largest class and one; raises RuntimeError for wrong ones."""
    if array.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if classes == -1:
        return int(array.max()) + 1
    if array.max() >= classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return classes


functions = publish(
    globals(),
    {
        "embedding": embedding_of_package,
        "embedding_bag": embedding_bag_of_package,
        "embedding_renorm_": embedding_renorm_,
    },
)
