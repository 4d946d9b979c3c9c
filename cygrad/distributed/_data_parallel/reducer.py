"""When gradients are reduced: the hooks of `DistributedDataParallel` during a backward pass.

Note [Reduction during backward]
--------------------------------
A pass begins at the hook on an output of `forward`, or at the first gradient of a parameter. Each parameter's hook
counts its bucket down; a full bucket is filled with the scaled gradients, and its all-reduce begins, always in the
order of the buckets, which is the same in all processes. MPI moves nothing by itself, so that the engine calls `_poll`
every few nodes while reductions are under way. At the end of the pass incomplete buckets are sent too, with zeros for
what lacks: all processes therefore take part in the same reductions whatever their graphs are, and see from the header
of a bucket (`Bucket.header`) that some process has no gradient for a parameter. A single bucket is reduced at the end,
by one blocking call: then there is nothing to hide it behind.

A pass that comes after another without `zero_grad` averages what is there anew. The mean of means is the mean, so this
is right for any number of passes, and for gradients that have been accumulated under `no_sync`. Not so for
`average="sum"`: there what is the same everywhere, from an earlier pass, is divided by the number of processes before
more is added to it.
"""

import weakref
from functools import partial
from typing import Any

import cygrad
from cygrad._core.engine.backward import is_selective, queue_callback, set_poll
from cygrad.distributed._data_parallel.agreement import send
from cygrad.distributed._data_parallel.buckets import FIRST_BUCKET_BYTES, Bucket, SparseBucket, assignment_by_size
from cygrad.distributed._data_parallel.unused import caller, unused_error
from cygrad.utils.warning import warn

__all__ = ["Reducer"]


class Reducer:
    """Averages the gradients of parameters over a group, or adds them up."""

    keeps_earlier = False  # whether gradients of earlier passes are set aside, and not reduced again

    def __init__(self, names, parameters, is_sparse, group, model):
        self.names, self.parameters, self.is_sparse, self.group = names, parameters, is_sparse, group
        self._model = weakref.ref(model)  # for its settings, which may change
        self._running: Any = None  # the model during a pass
        self.hook: Any = None
        self.is_in_pass = False
        self.divisor = None  # other than the number of processes, for `join`
        self.adds_up = model.average == "sum"
        self.touched = [False] * len(parameters)
        self.times = [1] * len(parameters)  # how often each gets a gradient in a pass
        self.passes = 0
        self.forward_at: Any = None
        self._unsynced: Any = None  # a parameter with a gradient of this process alone, and its version
        self._has_warned = False
        self._arrivals: list = []
        self._is_rebuilt = False
        self._make_buckets(*self.first_assignment())
        for parameter in parameters:
            if hasattr(parameter, "_in_backward_hook"):  # it would step before the gradient is averaged
                parameter._in_backward_hook.remove()
        own = weakref.ref(self)  # a model that is wrapped anew must not be reduced by its former wrapper too
        hooks = [
            parameter.register_post_accumulate_grad_hook(partial(_arrived, own, number))
            for number, parameter in enumerate(parameters)
        ]
        if self.adds_up and not self.keeps_earlier:
            hooks += [
                parameter.register_hook(partial(_comes, own, number)) for number, parameter in enumerate(parameters)
            ]
        weakref.finalize(self, _remove, hooks).atexit = False

    @property
    def model(self):
        """The `DistributedDataParallel`."""
        return self._model()

    # --- Buckets ---------------------------------------------------------------------------------

    def limits(self):
        """The limits of the buckets, in bytes: by default such that models of a few MB have several buckets too."""
        model, first = self.model, FIRST_BUCKET_BYTES
        if model.bucket_limits:
            return model.bucket_limits
        if model.has_own_cap:
            return [first, model.bucket_bytes_cap]
        total = sum(parameter.numel() * parameter.element_size() for parameter in self.parameters)
        return [first, min(max(first, total // 8), model.bucket_bytes_cap)]

    def first_assignment(self):
        """The numbers of the parameters of each bucket, as if gradients arrived in reverse order."""
        return self._assigned(range(len(self.parameters) - 1, -1, -1))

    def _assigned(self, order):
        order = list(order)
        return assignment_by_size([self.parameters[n] for n in order], self.limits(), self.is_sparse, order)

    def _make_buckets(self, assignment, limits):
        self.buckets: list[Any] = []
        self.places: list[Any] = [None] * len(self.parameters)
        for index, numbers in enumerate(assignment):
            kind = SparseBucket if self.is_sparse[numbers[0]] else Bucket
            self.buckets.append(kind(index, numbers, [self.parameters[number] for number in numbers]))
            self.buckets[-1].expected = sum(self.times[number] for number in numbers)
            self.buckets[-1].begin()
            for number in numbers:
                self.places[number] = self.buckets[-1]
        self._next = 0

    def _may_rebuild(self):
        if self.model._join_config is not None and self.model._join_config.enable:
            return False  # processes without batches would not take part
        return self.model.static_graph or not self.model.find_unused_parameters

    def _rebuild(self):
        """Order the buckets as gradients have arrived in rank 0; once, after the first pass."""
        self._is_rebuilt = True
        if len(self.buckets) == 1:
            return
        rest = sorted(set(range(len(self.parameters))) - set(self._arrivals), reverse=True)
        order = cygrad.tensor(list(dict.fromkeys(self._arrivals)) + rest, device=self.model.device)
        self.group.broadcast([order], 0).wait()
        assignment = self._assigned(order.tolist())
        if assignment[0] != [bucket.numbers for bucket in self.buckets]:
            former = self.buckets
            self._make_buckets(*assignment)
            for bucket in former:
                if self.model.gradient_as_bucket_view and isinstance(bucket, Bucket):
                    self._move_views(bucket)

    def _move_views(self, former):
        for number, parameter, view in zip(former.numbers, former.parameters, former.views):
            if parameter.grad is view:
                bucket = self.places[number]
                target = bucket.views[bucket.numbers.index(number)]
                with cygrad.no_grad():
                    target.copy_(view)
                parameter.grad = target

    # --- A pass ----------------------------------------------------------------------------------

    def set_hook(self, state, hook):
        """Let a communication hook reduce buckets."""
        self.hook = state, hook

    def before_forward(self):
        """Warn once if parameters have changed since gradients accumulated under `no_sync` that nobody averaged."""
        if self._unsynced is None or self._has_warned:
            return
        parameter, version = self._unsynced
        if parameter._version != version:
            self._has_warned = True
            warn(
                "DistributedDataParallel: parameters have changed after a backward pass under `no_sync()`, and before "
                "its gradients were averaged. Each process may now have other parameters.\n"
                "  to fix it: call the last `backward` before `optimizer.step()` outside of `no_sync()`"
            )

    def after_forward(self, output):
        """Let a backward pass through an output of `forward` begin a reduction; forget one that an error has ended."""
        self.forward_at = caller()
        if self.is_in_pass and not _is_in_backward():
            self._end()
        hook = partial(self._begin_at_output, self.model)
        for tensor in tensors_in(output):
            if tensor.requires_grad:
                tensor.register_hook(hook)

    def _begin_at_output(self, model, gradient):
        # `autograd.grad` of an output leaves `.grad` alone, as for a penalty on the gradient of the inputs
        if not self.is_in_pass and model.require_backward_grad_sync and not is_selective():
            self._begin()

    def _begin(self):
        queue_callback(self._finish)
        self.is_in_pass, self._running = True, self.model

    @property
    def _share(self):
        """The part of each process in what all have."""
        return 1 / (self.divisor or self.group.size())

    @property
    def scale(self):
        """What gradients are multiplied by before they are added up."""
        return 1 if self.adds_up else self._share

    def _comes(self, number):
        """The hook of a parameter whose gradient is about to be added to `.grad`."""
        earlier = self.parameters[number].grad
        if earlier is not None and not self.touched[number]:
            with cygrad.no_grad():
                earlier.mul_(self._share)

    def _arrived(self, number, parameter):
        """The hook of a parameter: its gradient is complete."""
        self.touched[number] = True
        if not self.model.require_backward_grad_sync:
            self._unsynced = parameter, parameter._version
            return
        if not self.is_in_pass:
            self._begin()
        bucket = self.places[number]
        if bucket.is_launched:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by use of a module parameter "
                "outside the `forward` function, or by reentrant backward passes over a shared parameter.\n"
                f"  {self.names[number]} has got a second gradient in one backward pass, after its bucket was sent\n"
                "  to fix it: use `checkpoint(..., use_reentrant=False)`, or `_set_static_graph()`"
            )
        if not self._is_rebuilt:
            self._arrivals.append(number)
        bucket.left -= 1
        if bucket.left == 0 and len(self.buckets) > 1 and (self.passes or not self.model.static_graph):
            self._launch_full()

    def _launch_full(self):
        """Begin to reduce full buckets, in order."""
        with cygrad.no_grad():
            while self._next < len(self.buckets) and self.buckets[self._next].left <= 0:
                self._launch(self.buckets[self._next])
        if self._next < len(self.buckets):
            set_poll(self._poll)

    def _launch(self, bucket, is_shadow=False):
        """Begin to reduce a bucket."""
        self._next = bucket.index + 1
        bucket.is_launched = True
        if isinstance(bucket, SparseBucket):
            return
        if self.hook is None:
            bucket.fill(self.scale, self.touched, is_shadow, self._share if self.adds_up else None)
            bucket.work = self.group.allreduce([bucket.flat])
        else:
            bucket.fill(1, self.touched, is_shadow)
            state, hook = self.hook
            bucket.work = hook(state, cygrad.distributed.GradBucket(bucket, len(self.buckets)))

    def _poll(self):
        """Let reductions proceed."""
        for bucket in self.buckets[: self._next]:
            if bucket.work is not None and self.hook is None:
                bucket.work.is_completed()

    def _finish(self):
        """End a pass: reduce what is left, wait for all, and hand the gradients over."""
        try:
            with cygrad.no_grad():
                self.reduce_rest()
                self._hand_over()
                self._unsynced = None
                if self.model.static_graph and not self.passes:
                    self._learn()
                self.passes += 1
                if not self._is_rebuilt and self._may_rebuild():
                    self._rebuild()
        finally:
            self._end()

    def reduce_rest(self, is_shadow=False):
        """Reduce the buckets that are not sent yet, and wait for all. A shadow has no gradients to give."""
        for bucket in self.buckets[self._next :]:
            self._launch(bucket, is_shadow)
        for bucket in self.buckets:
            if isinstance(bucket, SparseBucket):
                is_earlier = self.adds_up and not self.touched[bucket.numbers[0]]
                bucket.lacking_ranks = bucket.reduce(self.gather, self.scale, self._share if is_earlier else 1)
            elif self.hook is None:
                bucket.work.wait()
            else:
                if not hasattr(bucket.work, "wait"):
                    raise _no_future(self.hook[1], bucket.work)
                result = bucket.work.wait()
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not bucket.data:
                    bucket.data.copy_(result)
        if self.hook is not None:  # hooks see the gradients alone
            none = cygrad.zeros(0, device=self.model.device)
            headers = cygrad.cat([none, *(b.header.float() for b in self.buckets if isinstance(b, Bucket))])
            self.group.allreduce([headers]).wait()
            for bucket in self.buckets:
                if isinstance(bucket, Bucket):
                    bucket.header.copy_(headers[: bucket.header.numel()])
                    headers = headers[bucket.header.numel() :]

    def accompany(self):
        """Take part in the reductions of a pass of other processes, without gradients."""
        try:
            with cygrad.no_grad():
                self.reduce_rest(is_shadow=True)
                if any(self._use_of(bucket) is not None for bucket in self.buckets):
                    self._check_unused(frozenset())
        finally:
            self._end()

    def _hand_over(self):
        """Give the reduced gradients to the parameters, unless some lack that must not."""
        incomplete = {bucket.index: self._use_of(bucket) for bucket in self.buckets}
        if any(used is not None for used in incomplete.values()):
            self._check_unused(frozenset(number for number, touched in enumerate(self.touched) if not touched))
        for bucket in self.buckets:
            if isinstance(bucket, Bucket):
                bucket.write(self.model.gradient_as_bucket_view, incomplete[bucket.index])
        self._step_in_backward()

    def _step_in_backward(self):
        """Let optimizers step that parameters have of their own (`_apply_optimizer_in_backward`)."""
        for parameter in self.parameters:
            optimizers = getattr(parameter, "_in_backward_optimizers", ())
            if optimizers and parameter.grad is not None:
                for optimizer in optimizers:
                    optimizer.step()
                parameter.grad = None

    @staticmethod
    def _use_of(bucket):
        """For each place of a bucket whether any process has a gradient, or None if all processes have all."""
        if isinstance(bucket, SparseBucket):
            return [bucket.parameters[0].grad is not None] if bucket.lacking_ranks else None
        if not bucket.lacking.any().item():
            return None
        return [value != 0 for value in bucket.having.tolist()]

    def _check_unused(self, unused):
        """Raise in all processes: a parameter has no gradient in some. Unless that is allowed."""
        if not (self.model.static_graph or self.model.find_unused_parameters):
            raise unused_error(self.names, sorted(unused), self.group, self.forward_at, self.gather)

    def _learn(self):
        """Note how many gradients each bucket gets in a pass over a static graph."""
        self.times = [self._arrivals.count(number) for number in range(len(self.parameters))]

    def _end(self):
        self.is_in_pass, self._running = False, None
        self._next = 0
        self.touched = [False] * len(self.parameters)
        for bucket in self.buckets:
            bucket.begin()

    # --- Help ------------------------------------------------------------------------------------

    def gather(self, value):
        """The values of all processes."""
        found = [None] * self.group.size()
        cygrad.distributed.all_gather_object(found, value, group=self.group)
        return found

    def send_buffers(self, buffers, root=0):
        """Send buffers of one rank to all."""
        send(buffers, self.group, root)


def _arrived(own, number, parameter):
    reducer = own()
    if reducer is not None:
        reducer._arrived(number, parameter)


def _comes(own, number, gradient):
    reducer = own()
    if reducer is not None:
        reducer._comes(number)


def _no_future(hook, result):
    name = getattr(hook, "__qualname__", repr(hook))
    return RuntimeError(
        f"callback must return a torch.futures.Future object, but got {type(result).__name__}\n"
        f"  the communication hook {name} returned it; to fix it: return `work.get_future()`, for example"
    )


def _remove(hooks):
    for hook in hooks:
        hook.remove()


def _is_in_backward():
    try:
        set_poll(None)
    except RuntimeError:
        return False
    return True


def tensors_in(value):
    """The tensors in a nested result of a module."""
    if isinstance(value, cygrad.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif hasattr(value, "__dataclass_fields__"):
        for each in vars(value).values():
            yield from tensors_in(each)
