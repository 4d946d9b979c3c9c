"""The queues of `multiprocessing`, which hand over tensors in shared memory."""

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
