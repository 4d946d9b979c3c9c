"""Dropout: randomly sets elements or channels to zero, or (alpha dropout) to selu(-inf), its lower saturation value.

Functions with the signatures of nn.functional; the main package has the forms `dropout(input, p, train)` and
`dropout_`.
"""

import math

import numpy as np

from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import operand_of, tensor_of
from cygrad._core.graph.opdef import named, shown
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, mul
from cygrad._ops.base.checks.common import typed
from cygrad._ops.base.creation import place_of
from cygrad._ops.base.views import squeeze, unsqueeze
from cygrad._ops.elementwise.selection import where
from cygrad._ops.random.random import for_each_sample, in_memory_order, keep_mask, scaled_coins

SELU_FLOOR = 1.7580993408473766  # -selu(-inf)


def _checked(input, p, train, function):
    """Return the probability as a float after all checks; 0 if nothing is dropped."""
    probability = float(p)
    if not 0 <= probability <= 1:
        kind = RuntimeError if math.isnan(probability) else ValueError
        raise kind(f"dropout probability has to be between 0 and 1, but got {p}")
    if not train or probability == 0:
        return 0.0
    if require(input, function).dtype.name == "bool" or not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.type_name}\n"
            "  dropout scales the elements it keeps: convert integers with .float() first"
        )
    return probability


def _dropped(input, p, train, inplace, function, by_channel=False, to_floor=False):
    """Implement all forms of dropout.

    `by_channel` drops whole channels. `to_floor` sets elements to -SELU_FLOOR and preserves mean and variance.
    """
    require(input, function)
    p = _checked(input, p, train, function)
    if p == 0 or (by_channel and not input.numel()):
        return input
    array = operand_of(input)
    number = array.dtype.type
    out = input if inplace else None
    shape = array.shape
    if by_channel:
        if array.ndim < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = shape[:2] + (1,) * (array.ndim - 2)
    if p == 1:
        return mul(input, tensor_of(np.zeros((), array.dtype)), out=out)
    place = place_of(input)
    factor = 1 / math.sqrt((SELU_FLOOR**2 * p + 1) * (1 - p))
    wide = np.float32 if array.itemsize == 2 else number  # PyTorch divides half precision in single precision
    scale = number(factor if to_floor else wide(1) / wide(1 - p))

    def draw(shape):
        if place is None and number in (np.float32, np.float64):
            return scaled_coins(shape, 1 - p, scale)
        return as_array(keep_mask(shape, 1 - p, None, place) * scale)

    if place is None and not by_channel:
        drawn = in_memory_order(array, draw)
    else:
        drawn = draw(shape)
    scales = for_each_sample(tensor_of(drawn), draw)
    found = mul(input, scales, out=out)
    if not to_floor:
        return found
    kept = number(SELU_FLOOR * factor * p)
    dropped = number(-(SELU_FLOOR * factor)) + kept
    zeros = mul(scales, 0)
    return add(found, where(scales == 0, add(zeros, dropped.item()), add(zeros, kept.item())), out=out)


@shown
def dropout(input, p=0.5, training=True, inplace=False):
    """In training, set each element to zero with probability p and divide the others by 1 - p; otherwise do nothing.

    This preserves the expected value. Gradient: g times the factor of the element. Raises ValueError for p outside [0,
    1].

    >>> import cygrad
    >>> cygrad.nn.functional.dropout(cygrad.ones(2), p=1.0)
    tensor([0., 0.])
    >>> cygrad.nn.functional.dropout(cygrad.ones(2), training=False)
    tensor([1., 1.])
    """
    return _dropped(input, p, training, inplace, "dropout")


@shown
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """In training, randomly set elements to selu(-inf), while preserving mean 0 and variance 1.

    The result is `a * input + b` where elements are kept and `a * c + b` elsewhere, where c = -1.7581,
    a = ((1 - p) (1 + p c^2))^(-1/2) and b = -a c p.

    >>> import cygrad
    >>> cygrad.nn.functional.alpha_dropout(cygrad.ones(2), 0.5, training=False)
    tensor([1., 1.])
    """
    return _dropped(input, p, training, inplace, "alpha_dropout", to_floor=True)


@shown
def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels: all elements with the same indices in dimensions 0 and 1.

    >>> import cygrad
    >>> cygrad.nn.functional.feature_alpha_dropout(cygrad.ones(1, 2), 0.5, training=False)
    tensor([[1., 1.]])
    """
    return _dropped(input, p, training, inplace, "feature_alpha_dropout", by_channel=True, to_floor=True)


# -- channels with one to three dimensions --


@shown
def dropout1d(input, p=0.5, training=True, inplace=False):
    """`dropout` of whole channels: shape (N, C, L), or (C, L) for one sample. Raises RuntimeError for others.

    >>> import cygrad
    >>> cygrad.nn.functional.dropout1d(cygrad.ones(1, 2, 3), 1.0).sum()
    tensor(0.)
    """
    _checked(input, p, False, "dropout1d")
    if require(input, "dropout1d").ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _of_one_or_more(input, p, training, inplace, input.ndim == 3)


@shown
def dropout2d(input, p=0.5, training=True, inplace=False):
    """`dropout` of whole channels: shape (N, C, H, W). Warns about others, where dimension 1 counts as the channels.

    >>> import cygrad
    >>> cygrad.nn.functional.dropout2d(cygrad.ones(1, 2, 3, 3), 1.0).sum()
    tensor(0.)
    """
    _checked(input, p, False, "dropout2d")
    _warn_dims(require(input, "dropout2d"), 2)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _of_one_or_more(input, p, training, inplace, True)


@shown
def dropout3d(input, p=0.5, training=True, inplace=False):
    """`dropout` of whole channels: shape (N, C, D, H, W), or (C, D, H, W) for one sample. Warns about others.

    >>> import cygrad
    >>> cygrad.nn.functional.dropout3d(cygrad.ones(1, 2, 3, 3, 3), 1.0).sum()
    tensor(0.)
    """
    _checked(input, p, False, "dropout3d")
    _warn_dims(require(input, "dropout3d"), 3)
    return _of_one_or_more(input, p, training, inplace, input.ndim == 5)


def _warn_dims(input, spatial):
    if input.ndim not in (spatial + 1, spatial + 2):
        warn(
            f"dropout{spatial}d: Received a {input.ndim}-D input to dropout{spatial}d, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this warning, please use "
            f"dropout instead. Note that dropout{spatial}d exists to provide channel-wise dropout on inputs with "
            f"{spatial} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. {spatial + 1}D "
            f"or {spatial + 2}D inputs)."
        )


def _of_one_or_more(input, p, training, inplace, is_batch):
    """Drop channels of one sample or of a batch."""
    if is_batch:
        return _dropped(input, p, training, inplace, "feature_dropout", by_channel=True)
    if inplace:
        return _dropped(input.unsqueeze_(0), p, training, True, "feature_dropout", by_channel=True).squeeze_(0)
    return squeeze(_dropped(unsqueeze(input, 0), p, training, False, "feature_dropout", by_channel=True), 0)


# -- forms of the main package --


DOC = """{what}

    The result has the shape and the dtype of `input`. Raises RuntimeError unless p is in [0, 1].

    >>> import cygrad
    >>> x = cygrad.ones(2, 3)
    >>> bool((cygrad.{name}(x, 0.5, train=False) == x).all())
    True
    """


def _of_package(name, what, **how):
    """Return the form `name(input, p, train)` and its in-place version."""

    def form(function, inplace):
        @shown
        @typed(p=float, train=bool)
        @named(function)
        def call(input, p, train):
            if not 0 <= p <= 1:
                raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {float(p):g}")
            return _dropped(input, p, train, inplace, name, **how)

        call.__module__ = "cygrad"  # where it is found when it is pickled
        call.__doc__ = DOC.format(what=what + (" It overwrites `input`." if inplace else ""), name=function)
        return call

    return {name: form(name, False), f"{name}_": form(f"{name}_", True)}


functions = {
    **_of_package("dropout", "If `train`, sets elements to zero with probability p and divides the others by 1 - p."),
    **_of_package("feature_dropout", "`dropout` of whole channels.", by_channel=True),
    **_of_package(
        "alpha_dropout", "Dropout that sets elements to selu(-inf), the lower saturation value of selu.", to_floor=True
    ),
    **_of_package("feature_alpha_dropout", "`alpha_dropout` of whole channels.", by_channel=True, to_floor=True),
}
