"""`ZeroRedundancyOptimizer`: each process has the optimizer's state of a part of the parameters."""

from typing import Any

from cygrad import cat, no_grad
from cygrad.distributed._c10d.objects import gather_object
from cygrad.distributed.algorithms.join import Join, Joinable, JoinHook
from cygrad.distributed.distributed_c10d import _get_default_group
from cygrad.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is spread over the processes of a group (ZeRO, stage 1; Rajbhandari et al., 2020).

    Each parameter belongs to one process, which steps it by `optimizer_class(..., **defaults)` and sends it to the
    others; the largest are handed out first, each to the process that has the fewest elements. Gradients are those that
    `DistributedDataParallel` has averaged. `consolidate_state_dict(to)` collects the state in one process, which then
    has `state_dict()` as the optimizer alone would.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> from cygrad.distributed.optim import ZeroRedundancyOptimizer
    >>> w = cygrad.nn.Parameter(cygrad.ones(1))
    >>> optimizer = ZeroRedundancyOptimizer([w], cygrad.optim.SGD, lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.item()
    0.0
    >>> optimizer.add_param_group({"params": [cygrad.nn.Parameter(cygrad.ones(2))], "lr": 0.1})
    >>> optimizer.consolidate_state_dict(to=0)
    >>> state = optimizer.state_dict()  # in process 0
    >>> optimizer.load_state_dict(state)
    >>> [group["lr"] for group in optimizer.param_groups]
    [0.5, 0.1]
    >>> isinstance(optimizer.join_hook(), cygrad.distributed.algorithms.JoinHook)
    True
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
        if overlap_with_ddp:
            raise ValueError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True): cygrad steps after backward only\n"
                "  to fix it: leave the argument out; gradients are reduced during backward all the same"
            )
        self.process_group = process_group if process_group is not None else _get_default_group()
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._consolidated: Any = None
        super().__init__(params, defaults)
        self._make_inner()

    # --- Who has which parameter -----------------------------------------------------------------

    def _make_inner(self):
        """Hand the parameters out, and make the optimizer of this process's part."""
        self._owner = {}
        load = [0] * self.process_group.size()
        for group in self.param_groups:
            for parameter in sorted(group["params"], key=lambda each: -each.numel()):
                owner = load.index(min(load))
                self._owner[parameter] = owner
                load[owner] += parameter.numel()
        rank = self.process_group.rank()
        mine = [
            {**group, "params": [each for each in group["params"] if self._owner[each] == rank]}
            for group in self.param_groups
        ]
        self.optim = self._optim_constructor(mine, **self._optim_defaults)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self.state = self.optim.state

    @staticmethod
    def _copy_options(source, target):
        for a, b in zip(source, target):
            b.update((key, value) for key, value in a.items() if key != "params")

    def add_param_group(self, param_group):
        """Add parameters, which belong to the processes that have the fewest elements."""
        super().add_param_group(param_group)
        if "optim" not in self.__dict__:
            return  # while the groups are taken over
        load = [0] * self.process_group.size()
        for parameter, owner in self._owner.items():
            load[owner] += parameter.numel()
        group = self.param_groups[-1]
        for parameter in sorted(group["params"], key=lambda each: -each.numel()):
            self._owner[parameter] = load.index(min(load))
            load[self._owner[parameter]] += parameter.numel()
        rank = self.process_group.rank()
        mine = [each for each in group["params"] if self._owner[each] == rank]
        self.optim.add_param_group({**group, "params": mine})
        self._copy_options(self.optim.param_groups, self.param_groups)

    # --- Steps -----------------------------------------------------------------------------------

    def step(self, closure=None, **kwargs):
        """Take a step, each process for its parameters, and send them to the others."""
        Join.notify_join_context(self)
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._send_parameters()
        return loss

    @no_grad()
    def _send_parameters(self):
        """Send each parameter from the process it belongs to: those of one dtype together."""
        group = self.process_group
        if group.size() == 1:
            return
        kinds: dict = {}
        for parameter, owner in self._owner.items():
            kinds.setdefault((owner, parameter.dtype, parameter.device), []).append(parameter.detach())
        under_way = []
        for (owner, *_), tensors in kinds.items():
            flat = tensors[0] if len(tensors) == 1 else cat([each.reshape(-1) for each in tensors])
            under_way.append((owner, tensors, flat, group.broadcast([flat], owner)))
        for owner, tensors, flat, work in under_way:
            work.wait()
            if owner != group.rank() and len(tensors) > 1:
                for each, part in zip(tensors, flat.split([each.numel() for each in tensors])):
                    each.copy_(part.view(each.shape))

    def __repr__(self):
        return repr(self.optim)

    # --- State -----------------------------------------------------------------------------------

    def _numbers(self):
        """{parameter: its number among those of all groups}."""
        together = [parameter for group in self.param_groups for parameter in group["params"]]
        return {parameter: number for number, parameter in enumerate(together)}

    def consolidate_state_dict(self, to=0):
        """Collect the state of all processes in process `to` of the group, which can then call `state_dict()`."""
        numbers = self._numbers()
        self._copy_options(self.param_groups, self.optim.param_groups)
        own = self.optim.state_dict()["state"]
        places = [numbers[each] for group in self.optim.param_groups for each in group["params"]]
        mine = {places[number]: value for number, value in own.items()}
        group = self.process_group
        if group.size() == 1:
            self._consolidated = mine
            return
        found: Any = [None] * group.size() if group.rank() == to else None
        gather_object(mine, found, group=group, group_dst=to)
        self._consolidated = None
        if found is not None:
            self._consolidated = {number: value for part in found for number, value in sorted(part.items())}

    def state_dict(self):
        """The state of all processes. Raises RuntimeError unless `consolidate_state_dict` has collected it here."""
        if self._consolidated is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.process_group.rank()})` on all ranks beforehand if you meant to save the global state."
            )
        numbers = self._numbers()
        groups = []
        for group in self.param_groups:
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": [numbers[parameter] for parameter in group["params"]]})
        return {"state": dict(sorted(self._consolidated.items())), "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Load the state of all processes, of which each keeps that of its parameters.

        The number of processes may be another than that which saved it.
        """
        numbers = self._numbers()
        if [len(group["params"]) for group in state_dict["param_groups"]] != [
            len(group["params"]) for group in self.param_groups
        ]:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        self._copy_options(state_dict["param_groups"], self.param_groups)
        mine = [each for group in self.optim.param_groups for each in group["params"]]
        own = self.optim.state_dict()
        state = {
            place: state_dict["state"][numbers[parameter]]
            for place, parameter in enumerate(mine)
            if numbers[parameter] in state_dict["state"]
        }
        self._copy_options(self.param_groups, own["param_groups"])
        self.optim.load_state_dict({"state": state, "param_groups": own["param_groups"]})
        self.state = self.optim.state

    # --- Processes with different numbers of batches ---------------------------------------------

    def join_hook(self, **kwargs):
        """Return what a process does once it is out of batches: it goes on to step its parameters."""
        return _ZeroJoinHook(self)

    @property
    def join_device(self):
        """The device for the collectives of `Join`."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        """The group for the collectives of `Join`."""
        return self.process_group


class _ZeroJoinHook(JoinHook):
    def __init__(self, zero):
        self.zero = zero

    def main_hook(self):
        """Step this process's parameters, whose gradients are still those of all, and send them."""
        self.zero.step()
