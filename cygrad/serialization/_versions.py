"""Whether a module is recent enough, as programs ask of `pickle` modules before they save with them."""

from __future__ import annotations

from typing import Any

from cygrad.utils.warning import warn


class SourceChangeWarning(Warning):
    """PyTorch's warning that the source of a saved module has changed; cygrad does not issue it.

    >>> import cygrad
    >>> issubclass(cygrad.serialization.SourceChangeWarning, Warning)
    True
    """


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's `__version__` is at least a tuple such as `(1, 2)`.

    Raises RuntimeError for a version that cannot be compared with the tuple; without `error_if_malformed` warns, and
    counts it as recent enough.

    >>> import cygrad, numpy
    >>> cygrad.serialization.check_module_version_greater_or_equal(numpy, (1, 20))
    True
    """
    try:
        parts = module.__version__.split(".")
        version = tuple(type(wanted)(parts[i]) for i, wanted in enumerate(req_version_tuple))
        return version >= req_version_tuple
    except Exception as error:
        text = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(text) from error
        warn(f"{text}, but continuing assuming that requirement is met")
        return True
