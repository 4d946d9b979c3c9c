"""Hooks that average gradients, and those that send them in half precision."""

import cygrad
from cygrad.distributed._c10d.collectives import all_reduce
from cygrad.distributed._c10d.membership import GroupMember
from cygrad.futures import Future

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
    "noop_hook",
]  # fmt: skip


def averaged(group, tensor):
    """Return a future of the mean of `tensor` over all processes, which is written to it."""
    group = group if group is not None else GroupMember.WORLD
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group, bucket):
    """Average the gradients of all processes, as without a hook.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model.register_comm_hook(dist.group.WORLD, allreduce_hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    return averaged(process_group, bucket.buffer())


def noop_hook(_, bucket):
    """Leave the gradients as they are, to see how long training takes without communication.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import noop_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model.register_comm_hook(None, noop_hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """
    future: Future = Future()
    future.set_result(bucket.buffer())
    return future


def _compressed(process_group, bucket, dtype):
    full = bucket.buffer()
    return averaged(process_group, full.to(dtype)).then(lambda done: full.copy_(done.value()))


def fp16_compress_hook(process_group, bucket):
    """Average the gradients in float16: half the bytes of float32.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model.register_comm_hook(dist.group.WORLD, fp16_compress_hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad.dtype
    torch.float32
    >>> dist.destroy_process_group()
    """
    return _compressed(process_group, bucket, cygrad.float16)


def bf16_compress_hook(process_group, bucket):
    """Average the gradients in bfloat16: half the bytes of float32.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model.register_comm_hook(dist.group.WORLD, bf16_compress_hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad.dtype
    torch.float32
    >>> dist.destroy_process_group()
    """
    return _compressed(process_group, bucket, cygrad.bfloat16)


def _wrapper(hook, dtype):
    def compressed_hook(state, bucket):
        full = bucket.buffer()
        bucket.set_buffer(full.to(dtype))
        return hook(state, bucket).then(lambda done: full.copy_(_tensor_of(done.value())))

    return compressed_hook


def _tensor_of(value):
    return value[0] if isinstance(value, (list, tuple)) else value


def fp16_compress_wrapper(hook):
    """Return a hook that gives `hook` the gradients in float16.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> hook = default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)
    >>> model.register_comm_hook(powerSGD_hook.PowerSGDState(start_powerSGD_iter=2), hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """
    return _wrapper(hook, cygrad.float16)


def bf16_compress_wrapper(hook):
    """Return a hook that gives `hook` the gradients in bfloat16.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> hook = default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
    >>> model.register_comm_hook(dist.group.WORLD, hook)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """
    return _wrapper(hook, cygrad.bfloat16)
