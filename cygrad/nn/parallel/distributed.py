"""`DistributedDataParallel`: each process of a group has the whole module and a part of the data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad.nn.modules import Module

__all__ = ["DistributedDataParallel"]

_OF_THIS_PROCESS = ("process_group", "_reducer", "_join_config")  # what is not pickled


class DistributedDataParallel(Module):
    """Averages the gradients of `module` over all processes of a group, each of which computes them for its data.

    At construction all processes compare their parameters and buffers, and take over those of rank 0. In backward,
    gradients are reduced in buckets of `bucket_cap_mb` MB (an eighth of all, from 1 to 25; the first of 1 MB) while
    others are still computed; the result is that of one process with the joined batch, if all parts are of the same
    size and the loss is a mean. Buffers are sent from rank 0 before each `forward` (`broadcast_buffers`). With
    `gradient_as_bucket_view` gradients are views of the buckets, which saves a copy. All parameters need a gradient in
    each synchronized pass, unless `find_unused_parameters`, or `static_graph`, for graphs that never change, is set:
    otherwise RuntimeError names those without one, in the same step and in all processes. `average="sum"`, which
    PyTorch lacks, adds gradients up instead, for losses that are divided by the number of elements in all processes
    (`distributed.mean_loss`). See docs/data_parallel.md.

    The names in its `state_dict()` start with `module.`. Raises ValueError if there is no group
    (`distributed.init_process_group`), and RuntimeError if no parameter requires grad, or the processes' modules
    differ.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    _join_config: Any = None
    _divide_by_initial_world_size = True

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
        *,
        average: str = "ranks",
    ) -> None:
        super().__init__()
        from cygrad.distributed._data_parallel.averages import check_average  # many programs use no process group

        check_average(average, "DistributedDataParallel()")
        self.average = average
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            process_group = device_mesh.get_group()
        self.process_group = process_group or cygrad.distributed.distributed_c10d._get_default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        if delay_all_reduce_named_params:
            self.parameters_to_ignore.update(name for name, _ in delay_all_reduce_named_params)
        named = self._reduced(module)
        self._check(module, named, device_ids, output_device)
        self.module, self.dim = module, dim
        self.device = named[0][1].device
        self.device_type = self.device.type
        self.is_multi_device_module = False
        self.device_ids = None if self.device_type == "cpu" or not device_ids else list(device_ids)
        self.output_device = output_device
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.has_own_cap = bucket_cap_mb is not None
        self.bucket_limits = [int(size * 1024 * 1024) for size in bucket_cap_mb_list or ()]
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._buffer_slots = [
            (owner, name)
            for prefix, owner in module.named_modules()
            for name in owner._buffers
            if (f"{prefix}.{name}" if prefix else name) not in self.parameters_to_ignore
        ]
        if init_sync:
            self._make_equal()
        self._reducer = self._made_reducer(named)

    def _reduced(self, module: Module) -> list:
        """The names and parameters of a module whose gradients are averaged."""
        return [
            (name, parameter)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad and name not in self.parameters_to_ignore
        ]

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name not in _OF_THIS_PROCESS}

    def __setstate__(self, state: dict) -> None:
        """Belong to the group of all processes: that of the original does not travel, nor does a communication hook."""
        super().__setstate__(state)
        self.process_group = cygrad.distributed.distributed_c10d._get_default_group()
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._reducer = self._made_reducer(self._reduced(self.module))

    def _check(self, module: Module, named: list, device_ids: Any, output_device: Any) -> None:
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
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

    def _make_equal(self) -> None:
        """Compare the module with those of the other processes, and take over the state of rank 0."""
        from cygrad.distributed._data_parallel import agreement  # many programs use no process group

        kept = [
            (name, tensor)
            for named in (self.module.named_parameters(), self.module.named_buffers())
            for name, tensor in named
            if name not in self.parameters_to_ignore
        ]
        agreement.check_same(kept, self.process_group)
        agreement.send([tensor for _, tensor in kept], self.process_group, 0)

    def _made_reducer(self, named: list) -> Any:
        from cygrad.distributed._data_parallel import ordered, reducer  # many programs use no process group
        from cygrad.distributed._deterministic import get_shards  # the same

        sparse = {
            id(inner.weight)
            for inner in self.module.modules()
            if isinstance(inner, (cygrad.nn.Embedding, cygrad.nn.EmbeddingBag)) and inner.sparse
        }
        names, parameters = [name for name, _ in named], [parameter for _, parameter in named]
        is_sparse = [id(parameter) in sparse for parameter in parameters]
        shards = get_shards()
        if shards is not None:
            return ordered.OrderedReducer(names, parameters, is_sparse, self.process_group, self, shards)
        return reducer.Reducer(names, parameters, is_sparse, self.process_group, self)

    # --- Calls -----------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the wrapped module.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.distributed._fake import simulate
        >>> def program():
        ...     return nn.parallel.DistributedDataParallel(nn.Linear(2, 3))(cygrad.ones(4, 2)).shape
        >>> simulate(program, 2)
        [torch.Size([4, 3]), torch.Size([4, 3])]
        """
        trains = cygrad.is_grad_enabled()
        root = 0
        if trains and self._join_config is not None and self._join_config.enable:
            from cygrad.distributed._data_parallel.joining import agree_before_forward  # imports this module

            root = agree_before_forward(self)
        if self.will_sync_module_buffers():
            self._sync_buffers(root)
        if not trains:
            return self.module(*inputs, **kwargs)
        self._reducer.before_forward()
        output = self.module(*inputs, **kwargs)
        self._reducer.after_forward(output)
        return output

    def _module_buffers(self) -> list:
        return [owner._buffers[name] for owner, name in self._buffer_slots if owner._buffers.get(name) is not None]

    def will_sync_module_buffers(self) -> bool:
        """Whether buffers are broadcast before the next forward call.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.distributed._fake import simulate
        >>> def program():
        ...     m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        ...     return nn.parallel.DistributedDataParallel(m).will_sync_module_buffers()
        >>> simulate(program, 2)
        [True, True]
        """
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self._buffer_slots)

    def _sync_buffers(self, root: int) -> None:
        if self.process_group.size() > 1:
            self._reducer.send_buffers(self._module_buffers(), root)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within this context, gradients of this process accumulate, and are averaged with those of the next pass.

        What counts is where `backward` is called.

        >>> from cygrad import nn
        >>> import cygrad.distributed
        >>> from cygrad.distributed._fake import simulate
        >>> def program():
        ...     m = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ...     x = cygrad.full((1, 1), 1.0 + cygrad.distributed.get_rank())
        ...     with m.no_sync():
        ...         m(x).sum().backward()
        ...     own = m.module.weight.grad.item()
        ...     m(x).sum().backward()
        ...     return own, m.module.weight.grad.item()
        >>> simulate(program, 2)
        [(1.0, 3.0), (2.0, 3.0)]
        """
        before = self.require_backward_grad_sync, self.require_forward_param_sync
        self.require_backward_grad_sync = self.require_forward_param_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync, self.require_forward_param_sync = before

    # --- Processes with different numbers of batches ---------------------------------------------

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Any:
        """Return a context within which processes may have different numbers of batches.

        Those that have left their loop send zeros until all have, and take over the final module of one that has had
        the most batches. Gradients are divided by the number of all processes, or of those that still have batches.
        With `throw_on_early_termination` all raise RuntimeError as soon as one is out of batches.

        >>> from cygrad import nn
        >>> import cygrad.distributed
        >>> from cygrad.distributed._fake import simulate
        >>> def program():
        ...     m = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ...     with m.join():
        ...         for _ in range(1 + cygrad.distributed.get_rank()):
        ...             m(cygrad.ones(1, 1)).sum().backward()
        ...     return m.module.weight.grad
        >>> simulate(program, 2)
        [tensor([[1.]]), tensor([[1.]])]
        """
        from cygrad.distributed.algorithms.join import Join  # imports this module

        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """Return what this process does once it is out of batches.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.distributed._fake import simulate
        >>> def program():
        ...     return type(nn.parallel.DistributedDataParallel(nn.Linear(1, 1)).join_hook()).__name__
        >>> simulate(program, 2)
        ['DataParallelJoinHook', 'DataParallelJoinHook']
        """
        from cygrad.distributed._data_parallel.joining import DataParallelJoinHook  # imports this module

        return DataParallelJoinHook(self, **kwargs)

    @property
    def join_device(self) -> Any:
        """The device for the collectives of `Join`."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group for the collectives of `Join`."""
        return self.process_group

    # --- Settings --------------------------------------------------------------------------------

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let `hook(state, bucket)` reduce gradients: it returns a future of the tensor to write to them.

        The bucket is a `distributed.GradBucket`. Hooks are called in the order of the buckets, during backward. Raises
        RuntimeError the second time.

        >>> import cygrad
        >>> from cygrad import nn
        >>> from cygrad.distributed._fake import simulate
        >>> from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
        >>> def program():
        ...     m = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        ...     m.register_comm_hook(None, allreduce_hook)
        ...     m(cygrad.ones(1, 1)).sum().backward()
        ...     return m.module.weight.grad
        >>> simulate(program, 2)
        [tensor([[1.]]), tensor([[1.]])]
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.average == "sum":
            raise ValueError(
                'register_comm_hook: a hook decides itself what it divides by\n  to fix it: leave `average="sum"` out'
            )
        names = list(inspect.signature(hook).parameters.values())
        bucket = cygrad.distributed.GradBucket
        if len(names) > 1 and names[1].annotation not in (inspect.Parameter.empty, "GradBucket", bucket):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._reducer.set_hook(state, hook)

    def _set_static_graph(self) -> None:
        """Say that the graph is the same in each iteration."""
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Name parameters and buffers that are not synchronized."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What PyTorch logs: who takes part, the parameters, and the settings."""
        parameters = self._reducer.parameters
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "backend_name": cygrad.distributed.get_backend(self.process_group),
            "module_name": type(self.module).__name__,
            "num_parameter_tensors": len(parameters),
            "total_parameter_size_bytes": sum(each.numel() * each.element_size() for each in parameters),
            "iteration": self._reducer.passes,
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "bucket_sizes": ", ".join(str(bucket.flat.nbytes) for bucket in self._reducer.buckets),
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
        }
