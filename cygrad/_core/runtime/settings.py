"""PyTorch's global switches: determinism and matmul precision on GPUs, plus settings accepted for compatibility that
have no effect here.

On the CPU, results are always deterministic. Warnings are issued through Python's `warnings`.
"""

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.runtime import filling
from cygrad._kernels.device.cupy_library import switches
from cygrad._kernels.gpu.runtime.matmul_precision import Precision, apply

_MODES = ("default", "warn", "error")


class _Switches:
    """The current settings."""

    debug_mode = 0  # 0, 1 or 2
    warn_only = False  # as requested, even if determinism is not
    fills_new_memory = True  # while determinism is requested
    warn_always = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Request algorithms that give the same result each time. On the CPU all algorithms of cygrad do.

    Memory that `empty`, `empty_like`, `resize_` and their kind leave uninitialized is filled meanwhile: with NaN, the
    largest integer or True (unless `cygrad.utils.deterministic.fill_uninitialized_memory` is False).

    On GPUs, sums into a common location (gradients of indices and embeddings, `scatter_add`, ...) then have a fixed
    order, which takes longer.

    >>> import cygrad
    >>> cygrad.use_deterministic_algorithms(True)
    >>> cygrad.are_deterministic_algorithms_enabled()
    True
    >>> cygrad.use_deterministic_algorithms(False)
    """
    if type(mode) is not bool:
        raise messages.wrong_type("_set_deterministic_algorithms", "mode", 1, "bool", mode)
    if type(warn_only) is not bool:
        raise messages.wrong_keyword("_set_deterministic_algorithms", "warn_only", "bool", warn_only)
    _set_debug_mode((1 if warn_only else 2) if mode else 0)
    _Switches.warn_only = warn_only


def _set_debug_mode(mode):
    _Switches.debug_mode, _Switches.warn_only = mode, mode == 1
    switches.in_order = mode > 0
    _tell_filling()


def fills_new_memory() -> bool:
    """Whether `empty` fills its results while deterministic algorithms are requested."""
    return _Switches.fills_new_memory


def set_fills_new_memory(mode: bool) -> None:
    """Set whether `empty` fills its results while deterministic algorithms are requested."""
    _Switches.fills_new_memory = mode
    _tell_filling()


def _tell_filling():
    for follow in filling.followers:
        follow(_Switches.debug_mode > 0 and _Switches.fills_new_memory)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms(True)` was called.

    >>> import cygrad
    >>> cygrad.are_deterministic_algorithms_enabled()
    False
    """
    return _Switches.debug_mode > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was called with `warn_only=True`.

    >>> import cygrad
    >>> cygrad.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _Switches.warn_only


def number_of_mode(debug_mode):
    """Convert 'default', 'warn' or 'error', or 0, 1 or 2, to a number. Raises RuntimeError for other values."""
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got " + debug_mode
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    return int(debug_mode)


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the same switch as a number or a word: 0 'default', 1 'warn', 2 'error'.

    Raises TypeError for other types, RuntimeError for other values.

    >>> import cygrad
    >>> cygrad.set_deterministic_debug_mode("warn")
    >>> cygrad.get_deterministic_debug_mode()
    1
    >>> cygrad.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    _set_debug_mode(number_of_mode(debug_mode))


def get_deterministic_debug_mode() -> int:
    """Return the value of `set_deterministic_debug_mode` as a number.

    >>> import cygrad
    >>> cygrad.get_deterministic_debug_mode()
    0
    """
    return _Switches.debug_mode


def set_warn_always(b: bool) -> None:
    """Request warnings each time instead of only once; most of them are controlled by Python's warning filters.

    >>> import cygrad
    >>> cygrad.set_warn_always(True)
    >>> cygrad.is_warn_always_enabled()
    True
    >>> cygrad.set_warn_always(False)
    """
    if type(b) is not bool:
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _Switches.warn_always = b


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` is on.

    >>> import cygrad
    >>> cygrad.is_warn_always_enabled()
    False
    """
    return _Switches.warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Request that subnormal numbers be flushed to zero. Has no effect and returns False.

    >>> import cygrad
    >>> cygrad.set_flush_denormal(True)
    False
    """
    return False


def set_float32_matmul_precision(precision: str) -> None:
    """Allow float32 matrix products on GPUs to use TF32: 'high' or 'medium'; 'highest', the default, forbids it.

    Products on the CPU always have float32 precision.

    >>> import cygrad
    >>> cygrad.set_float32_matmul_precision("high")
    >>> cygrad.get_float32_matmul_precision()
    'high'
    >>> cygrad.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; "
            "the currentsetFloat32MatmulPrecision call has no effect."
        )
        return
    Precision.matmul = precision
    apply()


def get_float32_matmul_precision() -> str:
    """Return the value of `set_float32_matmul_precision`.

    >>> import cygrad
    >>> cygrad.get_float32_matmul_precision()
    'highest'
    """
    return Precision.matmul


class _Matmul:
    """The attributes of `backends.cuda.matmul`. Others raise AttributeError."""

    __slots__ = ()

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 matrix products may use TF32."""
        return Precision.matmul != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        Precision.matmul = "high" if _switch(value, "allow_tf32") else "highest"
        apply()

    @property
    def allow_fp16_accumulation(self) -> bool:
        """Whether float16 matrix products may accumulate in float16."""
        return Precision.fp16_accumulation

    @allow_fp16_accumulation.setter
    def allow_fp16_accumulation(self, value: bool) -> None:
        Precision.fp16_accumulation = _switch(value, "allow_fp16_accumulation")
        apply()

    @property
    def allow_fp16_reduced_precision_reduction(self) -> bool:
        """Whether partial sums may be reduced in float16."""
        return Precision.reduced["float16"]

    @allow_fp16_reduced_precision_reduction.setter
    def allow_fp16_reduced_precision_reduction(self, value: bool) -> None:
        Precision.reduced["float16"] = _switch(value, "allow_fp16_reduced_precision_reduction")

    @property
    def allow_bf16_reduced_precision_reduction(self) -> bool:
        """Whether partial sums may be reduced in bfloat16."""
        return Precision.reduced["bfloat16"]

    @allow_bf16_reduced_precision_reduction.setter
    def allow_bf16_reduced_precision_reduction(self, value: bool) -> None:
        Precision.reduced["bfloat16"] = _switch(value, "allow_bf16_reduced_precision_reduction")


def _switch(value, name):
    if type(value) is not bool:
        raise RuntimeError(f"set_{name}_cublas expects a bool, but got {type(value).__name__}")
    return value


matmul_settings = _Matmul()
