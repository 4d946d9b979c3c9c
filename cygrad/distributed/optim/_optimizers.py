"""Optimizers that spread their state, average models, or step during backward."""

from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed.algorithms.join import Joinable, JoinHook
from cygrad.distributed.distributed_c10d import _get_default_group
from cygrad.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is spread over the processes of a group (ZeRO). One process has it whole.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> w = cygrad.nn.Parameter(cygrad.ones(1))
    >>> optimizer = ZeroRedundancyOptimizer([w], cygrad.optim.SGD, lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.0
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view=False,
        overlap_with_ddp=False,
        **defaults,
    ):
        self.process_group = process_group if process_group is not None else _get_default_group()
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._overlap_with_ddp, self._is_consolidated = overlap_with_ddp, False
        super().__init__(params, defaults)
        self.optim = optimizer_class(self.param_groups, **defaults)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def step(self, closure=None, **kwargs):
        """Take a step, each process for its parameters, and send them to the others."""
        return self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)

    def add_param_group(self, param_group):
        """Add parameters."""
        if "optim" in self.__dict__:
            self.optim.add_param_group(param_group)
        else:  # while the groups are taken over
            super().add_param_group(param_group)

    def __repr__(self):
        return repr(self.optim)

    def consolidate_state_dict(self, to=0):
        """Collect the state of all processes in process `to`, which can then call `state_dict()`."""
        self._is_consolidated = True

    def state_dict(self):
        """The state of all processes. Raises RuntimeError unless `consolidate_state_dict` has been called."""
        if not self._is_consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=0)` "
                "on all ranks beforehand if you meant to save the global state."
            )
        return self.optim.state_dict()

    def load_state_dict(self, state_dict):
        """Load the state of all processes."""
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def join_hook(self, **kwargs):
        """Return what a process does once it is out of batches."""
        return JoinHook()

    @property
    def join_device(self):
        """The device for the collectives of `Join`."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        """The group for the collectives of `Join`."""
        return self.process_group


class PostLocalSGDOptimizer(Optimizer):
    """Steps as `optim`, and lets `averager` average the parameters of all processes now and then."""

    def __init__(self, optim, averager):
        self.optim, self.averager = optim, averager
        self.param_groups, self.defaults = optim.param_groups, optim.defaults

    @property
    def state(self):  # type: ignore[override]
        """The state of the optimizer within."""
        return self.optim.state

    def __repr__(self):
        return repr(self.optim)

    def step(self, closure=None):
        """Take a step, and average the parameters if it is time to."""
        loss = self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none=True):
        """Reset the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group):
        """Add parameters."""
        self.optim.add_param_group(param_group)

    def state_dict(self):
        """The state of the optimizer, and the step number of the averager."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict):
        """Load the state of the optimizer, and the step number of the averager, 0 if there is none."""
        self.averager.step = state_dict.get("step", 0)
        self.optim.load_state_dict({key: value for key, value in state_dict.items() if key != "step"})


class DistributedOptimizer:
    """Steps parameters that are in other processes, through `distributed.rpc`. Raises RuntimeError: there is one."""

    def __init__(self, optimizer_class, params_rref, *args, **kwargs):
        raise one_process("DistributedOptimizer, which steps remote parameters")


def _apply_optimizer_in_backward(optimizer_class, params, optimizer_kwargs, register_hook=True):
    """Let each parameter have an optimizer of its own that steps, and drops the gradient, as soon as that arrives."""
    choices = optimizer_kwargs if isinstance(optimizer_kwargs, list) else [optimizer_kwargs]
    classes = optimizer_class if isinstance(optimizer_class, list) else [optimizer_class] * len(choices)
    for parameter in params:
        optimizers = [cls([parameter], **options) for cls, options in zip(classes, choices)]
        parameter._in_backward_optimizers = optimizers
        if register_hook:
            parameter.register_post_accumulate_grad_hook(_step_now)


def _step_now(parameter):
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _get_in_backward_optimizers(module):
    """The optimizers of a module's parameters that step during backward."""
    return [each for p in module.parameters() for each in getattr(p, "_in_backward_optimizers", ())]
