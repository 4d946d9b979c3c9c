"""The number of threads that work on a large array (Note [Pieces] in thread_pool.pyx)."""

import cygrad._kernels.platform.thread_pool as thread_pool
from cygrad._kernels.platform import machine

_MOST = 2**31 - 1


class _Interop:
    """The value set by the user; cygrad never runs several operations at once."""

    threads = 0


def get_num_threads() -> int:
    """Return the number of threads that work on a large array.

    The initial value is the environment variable ``CYGRAD_NUM_THREADS``, or else the number of processors available to
    this process (its CPU affinity mask and its container's quota). Matrix products are left to BLAS, which has threads
    of its own.

    >>> import cygrad
    >>> cygrad.get_num_threads() >= 1
    True
    """
    return thread_pool.num_threads()


def set_num_threads(num: int) -> None:
    """Set the number of threads that work on a large array. Results do not depend on it.

    Raises RuntimeError unless `num` is a positive int.

    >>> import cygrad
    >>> former = cygrad.get_num_threads()
    >>> cygrad.set_num_threads(1)
    >>> cygrad.get_num_threads()
    1
    >>> cygrad.set_num_threads(former)
    """
    thread_pool.set_num_threads(_checked(num, "set_num_threads"))


def get_num_interop_threads() -> int:
    """Return the value of `set_num_interop_threads`; initially the number of processors. It has no effect here.

    >>> import cygrad
    >>> cygrad.get_num_interop_threads() >= 1
    True
    """
    return _Interop.threads or machine.usable_cpus()


def set_num_interop_threads(num: int) -> None:
    """Accepted for compatibility; has no effect here, since operations run one after the other.

    Raises RuntimeError unless `num` is a positive int and, like PyTorch, when called twice.

    >>> import cygrad
    >>> cygrad.set_num_interop_threads(0)
    Traceback (most recent call last):
    RuntimeError: set_num_interop_threads expects a positive integer
    """
    num = _checked(num, "set_num_interop_threads")
    if _Interop.threads:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _Interop.threads = num


def _checked(num, function):
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"{function} expects an int, but got {type(num).__name__}")
    if num > _MOST:
        raise ValueError("Overflow when unpacking long")
    if num <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    return num
