"""Optimizers that average models, or step during backward."""

from cygrad.distributed._c10d.errors import one_process
from cygrad.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps as `optim`, and lets `averager` average the parameters of all processes now and then.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> from cygrad.distributed.optim import PostLocalSGDOptimizer
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = PostLocalSGDOptimizer(cygrad.optim.SGD([model.weight], lr=0.1), PeriodicModelAverager(period=4))
    >>> optimizer.add_param_group({"params": [model.bias]})
    >>> optimizer.zero_grad()
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> optimizer.step()
    >>> state = optimizer.state_dict()
    >>> optimizer.load_state_dict(state)
    >>> state["step"]
    1
    >>> dist.destroy_process_group()
    """

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
    """Steps parameters that are in other processes, through `distributed.rpc`. Raises RuntimeError: there is one.

    >>> import cygrad
    >>> from cygrad.distributed.optim import DistributedOptimizer
    >>> DistributedOptimizer(cygrad.optim.SGD, [], lr=0.1)
    Traceback (most recent call last):
        ...
    RuntimeError: DistributedOptimizer, which steps remote parameters: this works in one process for now...
    """

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
            # `DistributedDataParallel` removes it, and steps once gradients are averaged
            parameter._in_backward_hook = parameter.register_post_accumulate_grad_hook(_step_now)


def _step_now(parameter):
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _get_in_backward_optimizers(module):
    """The optimizers of a module's parameters that step during backward."""
    return [each for p in module.parameters() for each in getattr(p, "_in_backward_optimizers", ())]
