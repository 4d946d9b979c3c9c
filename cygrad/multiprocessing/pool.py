"""The pools of `multiprocessing`, which hand over tensors in shared memory."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
