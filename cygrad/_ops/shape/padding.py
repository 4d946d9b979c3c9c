"""Padding and cropping of dimensions at their ends, with a constant or with elements of the tensor itself."""

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import (
    ELSEWHERE,
    FUNCTION_ONLY,
    IMAGE,
    IMAGE_GRADIENT,
    LINEAR,
    PRIVATE,
    declare,
    facts,
    publish,
)
from cygrad._core.graph.record import apply1_args, apply_n, record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.autocast import guarded
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._kernels.cpu.base.copying import element
from cygrad._kernels.cpu.shape import padding as kernels
from cygrad._ops.base.arguments import integers, require
from cygrad._ops.base.batching.rules import leading, rule

# -- constant padding --


def constant_pad_nd_rule(n, g):
    return constant_pad_nd(g, tuple(-count for count in n.args[0]))


CONSTANT_PAD_ND = declare(
    "constant_pad_nd",
    constant_pad_nd_rule,
    flags=LINEAR | FUNCTION_ONLY | IMAGE | IMAGE_GRADIENT,
    kernel=kernels.constant,
    attributes="pad",
    batching=leading,
)


def constant_pad_nd(input, pad, value=0):
    """Pad `input` with `value`: `pad` has the counts (before, after) for the last dimension first.

    Negative counts crop. Saves nothing. Gradient: g without the padding, and with zeros for cropped elements. Raises
    RuntimeError for an odd number of counts or too many, and for negative lengths of the result.

    >>> import cygrad
    >>> cygrad.constant_pad_nd(cygrad.tensor([1, 2]), (1, 2), 7)
    tensor([7, 1, 2, 7, 7])
    """
    t = require(input, "constant_pad_nd")
    return _constant(t, integers(pad, "constant_pad_nd", "pad", 2), value)


def _constant(t, counts, value):
    if len(counts) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(counts)}")
    if len(counts) > 2 * t.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(counts)}while the input has {t.ndim}dimensions."
        )
    array = array_of(t)
    if min(counts, default=0) < 0:
        for length, before, after in zip(reversed(array.shape), counts[::2], counts[1::2]):
            left = length + min(before, 0)
            if left < 0 or left + min(after, 0) < 0:
                raise RuntimeError("narrow(): length must be non-negative.")
    checked_lengths(_shape_with(array.shape, counts))
    filling = element(value.item() if isinstance(value, Tensor) else value, array.dtype)
    return record_n(CONSTANT_PAD_ND, kernels.constant(array, counts, filling), (t,), (counts, filling))


# -- padding with elements --


def _shape_with(shape, counts):
    """Return the shape with `counts` added at the ends of dimensions, the last dimension first."""
    more = [before + after for before, after in zip(counts[::2], counts[1::2])]
    return tuple([n + added for n, added in zip(shape, [0] * (len(shape) - len(more)) + more[::-1])])


def pad_rule(n, g):
    mode, counts, shape = n.args
    return pad_backward(g, mode, counts, shape)


def _pad(call):
    return with_elements(call.full(call.inputs[0]), *call.args[:2])


_FLOAT8 = {"reflect": "reflection_pad{}d", "replicate": "replication_pad{}d"}


def _by_elements(mode, dims, node):
    return declare(
        f"pad.{mode}{dims or ''}",
        pad_rule,
        flags=LINEAR | PRIVATE | (0 if mode == "circular" else IMAGE | IMAGE_GRADIENT),
        kernel=kernels.by_elements,
        node=node,
        attributes="_ padding",
        batching=_pad,
        float8=_FLOAT8.get(mode, "").format(dims) or None,
    )


_ROWS = {
    (mode, dims): _by_elements(mode, dims, f"{name}Pad{dims}DBackward0")
    for mode, name in (("reflect", "Reflection"), ("replicate", "Replication"))
    for dims in (1, 2, 3)
}
_ROWS |= dict.fromkeys([("circular", dims) for dims in (1, 2, 3)], _by_elements("circular", 0, "PadCircularBackward0"))


def pad_backward_rule(n, g):
    mode, counts, _ = n.args
    return with_elements(g, mode, counts)


PAD_BACKWARD = declare("pad_backward", pad_backward_rule, flags=LINEAR | PRIVATE, kernel=kernels.sum_back)


def pad_backward(input, mode, counts, shape):
    """Sum, for each element of a tensor of `shape`, the elements of `input` that `pad` would copy it to."""
    return apply1_args(PAD_BACKWARD, input, (mode, counts, shape), None)


@rule("pad_backward")
def _pad_backward(call):
    mode, counts, shape = call.args
    return apply_n(call.op, (call.full(call.inputs[0]),), (mode, counts, (call.size, *shape)))


def with_elements(t, mode, counts):
    """Run `pad` in one of the modes that copy elements, after all checks."""
    array = kernels.by_elements(array_of(t), mode, counts)
    return record_n(_ROWS[mode, len(counts) // 2], array, (t,), (mode, counts, array_of(t).shape))


def _entry(mode, dims):
    """Return `with_elements` under PyTorch's name, which autocast may have a policy for."""

    def entry(t, counts):
        return with_elements(t, mode, counts)

    entry.__name__ = f"{_PYTORCH[mode]}_pad{dims}d"
    if mode == "replicate" or mode == "reflect" and dims < 3:
        return guarded(facts(autocast="float32")(entry))
    return entry


_PYTORCH = {"reflect": "reflection", "replicate": "replication", "circular": "circular"}
_ENTRIES = {key: _entry(*key) for key in _ROWS}


@facts(in_python=True)
def pad(input, pad, mode="constant", value=None):
    """Pad dimensions: `pad` has the counts (before, after) for the last dimension first; negative counts crop.

    mode 'constant' fills with `value`, by default 0; 'reflect' mirrors the tensor at its end elements, without
    repeating them; 'replicate' repeats the end elements; 'circular' wraps around. All but 'constant' pad the last 1 to
    3 dimensions of tensors with one or two more. Saves nothing. Gradient: each element gets the sum of g over its
    copies. Raises RuntimeError for invalid counts, NotImplementedError for an unknown mode or number of dimensions.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.pad(cygrad.tensor([[1, 2, 3]]), (2, 1), mode="reflect")
    tensor([[3, 2, 1, 2, 3, 2]])
    """
    t = require(input, "pad")
    counts = integers(pad, "pad", "pad", 2)
    if value is not None and not isinstance(value, (int, float, Tensor)):
        raise messages.wrong_type("pad", "value", 4, "float", value)
    if len(counts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(counts) > 2 * t.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(counts)} and input of dimension {t.ndim}"
        )
    if isinstance(mode, str) and mode == "constant":
        return _constant(t, counts, 0 if value is None else value)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if not isinstance(mode, str):
        raise messages.wrong_type("pad", "mode", 3, "str", mode)
    if mode not in kernels.MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(counts) not in (2, 4, 6) or t.ndim not in (len(counts) // 2 + 1, len(counts) // 2 + 2):
        raise NotImplementedError(f"Padding size {len(counts)} is not supported for {t.ndim}D input tensor.")
    _check_lengths(array_of(t).shape, mode, counts)
    checked_lengths(_shape_with(array_of(t).shape, counts))
    return _ENTRIES[mode, len(counts) // 2](t, counts)


def _check_lengths(shape, mode, counts):
    """Raise unless the dimensions are long enough for the padding, and the result is not empty."""
    dims = len(counts) // 2
    pairs = list(zip(counts[::2], counts[1::2]))
    lengths = [shape[-1 - i] + before + after for i, (before, after) in enumerate(pairs)]
    if mode == "circular":
        if any(max(pair) > shape[-1 - i] for i, pair in enumerate(pairs)):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if min(lengths) < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        return
    if 0 in shape[len(shape) - dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    for i, (before, after) in enumerate(pairs if mode == "reflect" else ()):
        if max(before, after) >= shape[-1 - i]:
            raise RuntimeError(
                f"Argument #{2 * i + 4}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {len(shape) - 1 - i} of input {list(shape)}"
            )
    if max(lengths) < 1:
        names = "WHD"[:dims]
        given = ", ".join(f"{name}: {shape[-1 - i]}" for i, name in reversed(list(enumerate(names))))
        wanted = " ".join(f"{name}: {lengths[i]}" for i, name in reversed(list(enumerate(names))))
        blank = " " if mode == "replicate" and dims == 2 else ""
        raise RuntimeError(f"input ({given}{blank}) is too small. Calculated output {wanted}")
    if min(lengths) < 0:
        made = [*shape[:-dims], *lengths[::-1]]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(lengths)}: {made}")


composite = {"pad": ELSEWHERE}
functions = publish(globals())
