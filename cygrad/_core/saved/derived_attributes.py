"""Attributes of nodes, under PyTorch's names, that are derived from what the node stores.

They are computed on access: from the arguments that the rule needs, from the shapes of incoming and outgoing gradients,
and from saved tensors. Nodes store nothing extra for them.
"""

from math import prod

from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.tensor import Tensor


def _argument(*path):
    """Return a function of a node that returns its argument at an index, or an item nested in it."""

    def found(node):
        value = node.args
        for place in path:
            value = value[place]
        return value

    return found


def _constant(value):
    return lambda node: value


def _array(place, by_channel=False):
    """Return a function of a node that returns one of its arguments, an array, as a tensor."""

    def found(node):
        array = node.args[place]
        return tensor_of(array.reshape(-1) if by_channel else array)

    return found


def _numbered(place, *names):
    """Return a function of a node that returns the number of a mode that the node stores by name."""
    return lambda node: names.index(node.args[place])


def _strides_in_elements(node):
    size = node._input_metadata[0].dtype.itemsize
    return tuple(length // size for length in node.args[0][1])


def _shape_of(i):
    """Return a function of a node that returns the shape of an input, taken from its gradient."""

    def found(node):
        target, number = node.next_functions[i]
        if target is None:
            return _saved(node, i).shape
        leaf = getattr(target, "variable", None)
        return tuple(target._input_metadata[number].shape if leaf is None else leaf.shape)

    return found


def _strides_of(i):
    """Return a function of a node that returns the strides of a saved input; they are meaningless if it is empty."""

    def found(node):
        value = _saved(node, i)
        if not value.numel():
            raise AttributeError(f"'{node.name()}' object saved no elements of its input {i}")
        return value.stride()

    return found


def _saved(node, i):
    value = node.saved(i)
    if not isinstance(value, Tensor):
        raise AttributeError(f"'{node.name()}' object saved nothing of its input {i}")
    return value


def _length_of(i, dim):
    """Return a function of a node that returns the size of an input in a dimension."""
    shape = _shape_of(i)
    return lambda node: shape(node)[dim]


def _result_shape(node):
    return tuple(node._input_metadata[0].shape)


_SIZES = {"self_sym_sizes": _shape_of(0)}
_OF_MEAN = {**_SIZES, "self_sym_numel": lambda node: prod(_shape_of(0)(node))}
_UPSAMPLED = {**_SIZES, "output_size": lambda node: _result_shape(node)[2:]}
_POOLED = {name: _argument(2, i) for name, i in (("kernel_size", 0), ("padding", 2), ("dilation", 3), ("ceil_mode", 4))}
_COLUMNS = {name: _argument(i) for i, name in enumerate("kernel_size dilation padding stride".split(), 1)}
_SAMPLED = {
    "align_corners": _argument(3),
    "interpolation_mode": _numbered(1, "bilinear", "nearest", "bicubic"),
    "padding_mode": _numbered(2, "zeros", "border", "reflection"),
}
_UNWEIGHTED = {"weight": _constant(None)}


DERIVED = {  # name of a node: {name of an attribute: a function of the node}
    "AddbmmBackward0": {
        "batch1_sym_argsize_0": _length_of(1, 0),
        "batch1_sym_argsize_1": _length_of(1, 1),
        "batch2_sym_argsize_2": _length_of(2, 2),
    },
    "AsStridedBackward0": {
        "size": _argument(0, 0),
        "stride": _strides_in_elements,
    },
    "BinaryCrossEntropyBackward0": _UNWEIGHTED,
    "BinaryCrossEntropyWithLogitsBackward0": _UNWEIGHTED,
    "Col2ImBackward0": _COLUMNS,
    "EmbeddingBackward0": {"weight_sym_argsize_0": _argument(3, 0)},
    "EmbeddingBagBackward0": {
        "indices": _array(0),
        "result1": _array(1),
        "weight_sym_argsize_0": _argument(5, 0),
    },
    "ExpandBackward0": _SIZES,
    "GatherBackward0": {"sparse_grad": _constant(False)},
    "GridSampler2DBackward0": _SAMPLED,
    "GridSampler3DBackward0": _SAMPLED,
    "Im2ColBackward0": {
        **_COLUMNS,
        "self_sym_argsize_minus_1": _length_of(0, -1),
        "self_sym_argsize_minus_2": _length_of(0, -2),
    },
    "IndexAddBackward0": {"source_dim": lambda node: len(node.args[2])},
    "IndexCopyBackward0": {"source_dim": lambda node: len(node.args[1])},
    "MaxPool2DWithIndicesBackward0": _POOLED,
    "MaxPool3DWithIndicesBackward0": _POOLED,
    "MeanBackward0": _OF_MEAN,
    "MeanBackward1": _OF_MEAN,
    "MmBackward0": {
        **_SIZES,
        "mat2_sym_sizes": _shape_of(1),
        "self_sym_strides": _strides_of(0),
        "mat2_sym_strides": _strides_of(1),
    },
    "MultiMarginLossBackward0": _UNWEIGHTED,
    "NativeBatchNormBackward0": {"result1": _array(1, True), "result2": _array(2, True)},
    "NativeGroupNormBackward0": {
        "N": lambda node: _result_shape(node)[0],
        "C": lambda node: _result_shape(node)[1],
        "HxW": lambda node: prod(_result_shape(node)[2:]),
    },
    "NativeLayerNormBackward0": {"result1": _array(1), "result2": _array(2)},
    "NllLossBackward0": _UNWEIGHTED,
    "NllLoss2DBackward0": _UNWEIGHTED,
    "UpsampleBicubic2DBackward0": _UPSAMPLED,
    "UpsampleBilinear2DBackward0": _UPSAMPLED,
    "UpsampleLinear1DBackward0": _UPSAMPLED,
    "UpsampleNearest1DBackward0": _UPSAMPLED,
    "UpsampleNearest2DBackward0": _UPSAMPLED,
    "UpsampleNearest3DBackward0": _UPSAMPLED,
    "UpsampleTrilinear3DBackward0": _UPSAMPLED,
}


def derived(node):
    """Return {name: function} of the attributes derivable for this node; empty once its values are freed."""
    return {} if node.args is None and node._freed_by is not None else DERIVED.get(node.name(), {})
