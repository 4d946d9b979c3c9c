"""`DistributedDataParallel`: in a group of one process it trains as the module itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad.nn.modules import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Averages the gradients of `module` over all processes of a group, each of which computes them for its data.

    The names in its `state_dict()` start with `module.`. Raises ValueError if there is no group
    (`distributed.init_process_group`), and RuntimeError if no parameter requires grad.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            process_group = device_mesh.get_group()
        self.process_group = process_group or cygrad.distributed.distributed_c10d._get_default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._trained = [
            parameter
            for name, parameter in module.named_parameters()
            if parameter.requires_grad and name not in self.parameters_to_ignore
        ]
        self._check(module, device_ids, output_device)
        self.module, self.dim = module, dim
        self.device = next(iter(module.parameters())).device
        self.device_type = self.device.type
        self.is_multi_device_module = False
        self.device_ids = None if self.device_type == "cpu" or not device_ids else list(device_ids)
        self.output_device = output_device
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.bucket_bytes_cap = int((bucket_cap_mb or 25) * 1024 * 1024)
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._comm_hook: Any = None
        self._is_reduction_queued = False

    def _check(self, module: Module, device_ids: Any, output_device: Any) -> None:
        if not self._trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {parameter.device for parameter in module.parameters()}
        if len(devices) > 1 and (device_ids or output_device):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}, and module parameters {devices}."
            )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the wrapped module."""
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within this context, gradients of this process accumulate and are not averaged."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """Within this context, processes may have different numbers of batches; one process has just its own."""
        yield

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let `hook(state, bucket)` reduce gradients: it returns a future of the tensor to write to them.

        The bucket is a `distributed.GradBucket` of all gradients of one dtype.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        names = list(inspect.signature(hook).parameters.values())
        if len(names) > 1 and names[1].annotation not in (inspect.Parameter.empty, "GradBucket", _bucket_class()):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if self._comm_hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hook = state, hook
        for parameter in self._trained:
            parameter.register_post_accumulate_grad_hook(self._queue_reduction)

    def _queue_reduction(self, _: Any) -> None:
        """Reduce at the end of the running backward pass."""
        if self.require_backward_grad_sync and not self._is_reduction_queued:
            self._is_reduction_queued = True
            cygrad.autograd.Variable._execution_engine.queue_callback(self._reduce)

    def _reduce(self) -> None:
        self._is_reduction_queued = False
        state, hook = self._comm_hook
        kinds: dict[Any, list[Any]] = {}
        for parameter in reversed(self._trained):
            if parameter.grad is not None:
                kinds.setdefault(parameter.grad.dtype, []).append(parameter)
        for index, parameters in enumerate(kinds.values()):
            bucket = _bucket_class()(index, parameters, is_last=index == len(kinds) - 1)
            result = hook(state, bucket).wait()
            bucket.write(result[0] if isinstance(result, (list, tuple)) else result)

    def _set_static_graph(self) -> None:
        """Say that the graph is the same in each iteration, which changes nothing in one process."""
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Name parameters and buffers that are not synchronized."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def will_sync_module_buffers(self) -> bool:
        """Whether buffers are broadcast before the next forward call."""
        return self.require_forward_param_sync and self.broadcast_buffers and any(True for _ in self.module.buffers())

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What PyTorch logs: the world size, the rank and the number of parameters."""
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "num_parameter_tensors": len(self._trained),
        }


def _bucket_class() -> Any:
    return cygrad.distributed.GradBucket
