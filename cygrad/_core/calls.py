"""Calls that Python or Cython has refused: NumPy's names and numbers, and what is missing in PyTorch's words."""

import re
from contextlib import suppress

import numpy as np

from cygrad._core.tensor import Tensor

OTHER_NAMES = {
    "axis": "dim",
    "axis0": "dim0",
    "axis1": "dim1",
    "keepdims": "keepdim",
    "x2": "other",
    "element": "elements",
    "test_element": "test_elements",
}
NO_TENSOR = re.compile(r"must be (Number|float), not Tensor$|invalid combination of arguments")
FIRST = ("input", "x", "a", "x1")
VARIADIC = 4 | 8  # inspect.CO_VARARGS, CO_VARKEYWORDS
NOT_A_TENSOR = re.compile(r"Argument '(\w+)' has incorrect type \(expected .*Tensor, got (.*)\)")
# Written in Python by PyTorch too, whose errors are Python's own there
IN_PYTHON = frozenset(
    """atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
    einsum lobpcg lu meshgrid norm split stft tensordot unique unique_consecutive unravel_index bartlett
    blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser nuttall
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d binary_cross_entropy
    cross_entropy elu fold gaussian_nll_loss glu hardsigmoid hardswish hardtanh huber_loss interpolate l1_loss
    leaky_relu linear_cross_entropy local_response_norm lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d
    max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nll_loss normalize pad relu6 silu smooth_l1_loss soft_margin_loss softmin
    softsign tanhshrink triplet_margin_with_distance_loss""".split()
)


def look_again(function, values, names, error):
    """What to do after a TypeError of a call with these values, of which the last are given by these keywords.

    A tuple of the result of another call, or the text of the error, or None: it is right as it is.
    """
    plain = function
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    code = plain.__code__
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = names or ()
    given = len(values) - len(names)
    if any(name not in arguments for name in names):
        known = tuple(_known(name, arguments, given, names) for name in names)
        if known != names:
            return (function(*values[:given], **dict(zip(known, values[given:]))),)
    title = f"fft_{plain.__name__}" if plain.__module__.endswith(".fourier") else plain.__name__
    required = arguments[: code.co_argcount - len(plain.__defaults__ or ())]
    missing = [f'"{name}"' for name in required[given:] if name not in names]
    if missing and not code.co_flags & VARIADIC and title not in IN_PYTHON:
        plural = "s" * (len(missing) == 1)  # as in PyTorch
        return f"{title}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
    text = str(error)
    # Numbers of NumPy first: then tensors among them may be right
    kind = "" if any(isinstance(value, np.generic) for value in values) else text
    simple = [_simple(value, kind) for value in values]
    if any(a is not b for a, b in zip(simple, values)):
        with suppress(TypeError):
            return (function(*simple[:given], **dict(zip(names, simple[given:]))),)
    match = NOT_A_TENSOR.match(text)
    if match:
        wrong = match[1] if match[1] in arguments else "out"
        return f"{title}(): argument '{wrong}' must be Tensor, not {match[2]}"
    named = text.startswith(f"{plain.__name__}() ") and title != plain.__name__
    return title + text.removeprefix(plain.__name__) if named else None


def _simple(value, text):
    """Python's number for one of NumPy, and for a tensor where the text says that it must be none; str for bytes."""
    if isinstance(value, np.generic):
        number = value.item()
        return value if isinstance(number, np.generic) else number  # Python has no such number as longdouble
    if isinstance(value, Tensor) and NO_TENSOR.search(text) and not value.ndim and not value.requires_grad:
        return value.item()
    if isinstance(value, complex) and not value.imag and text.endswith("not complex"):
        return value.real
    return value.decode() if isinstance(value, bytes) and value.isascii() else value


def _known(name, arguments, given, names):
    """What an argument of this name is called here, if the function has none of the name."""
    other = OTHER_NAMES.get(name)
    if name in FIRST:
        other = "input" if "input" in arguments or not arguments or given else arguments[0]
    return other if name not in arguments and other in arguments and other not in names else name
