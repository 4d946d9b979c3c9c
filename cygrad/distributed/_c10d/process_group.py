"""`ProcessGroup`: the processes that take part in a collective, and the collectives by their low-level names."""

import time

import numpy as np

from cygrad import device as _device
from cygrad import strided
from cygrad.distributed._c10d import wire
from cygrad.distributed._c10d.backends import Backend
from cygrad.distributed._c10d.options import takes_options
from cygrad.distributed._c10d.reduce_ops import ReduceOp, check_reduction
from cygrad.distributed._c10d.stores import PrefixStore
from cygrad.distributed._c10d.work import Work, joined

__all__ = ["ProcessGroup"]

_MONITOR = 30000  # the tag of messages of `monitored_barrier`


class ProcessGroup:
    """Processes that exchange tensors; `new_group` makes one, and `init_process_group` that of all processes.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.group.WORLD
    >>> group.rank(), group.size(), group.name()
    (0, 1, 'gloo')
    >>> isinstance(group.get_group_store(), dist.Store)
    True
    >>> x, found = cygrad.tensor([1.0, 2.0]), cygrad.empty(2)
    >>> group.allreduce([x]).wait(), group.broadcast([x], 0).wait(), group.reduce([x], 0).wait()
    (True, True, True)
    >>> group.allreduce_coalesced([x]).wait(), group.allgather([found], x).wait()
    (True, True)
    >>> group.gather([found], x).wait(), group.scatter(found, [x]).wait()
    (True, True)
    >>> group.reduce_scatter(found, [x]).wait(), group.alltoall([found], [x]).wait()
    (True, True)
    >>> group.all_to_all_single(found, x).wait(), group.barrier().wait()
    (True, True)
    >>> group.all_gather_single(found, x).wait(), group.reduce_scatter_single(found, x).wait()
    (True, True)
    >>> group.allgather_coalesced([[found]], [x]).wait(), group.all_gather_single_coalesced([found], [x]).wait()
    (True, True)
    >>> group.reduce_scatter_single_coalesced([found], [x]).wait()
    True
    >>> from datetime import timedelta
    >>> group.set_timeout(timedelta(seconds=60))
    >>> found
    tensor([1., 2.])
    >>> group.monitored_barrier()
    >>> if group.size() == 2:
    ...     work = group.send([x], 1) if group.rank() == 0 else group.recv([found], 0)
    ...     work.wait()
    ...     work = group.send([x], 0) if group.rank() == 1 else group.recv_anysource([found])
    ...     work.wait()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, engines, ranks, rank, *, name, config, store, group_name, timeout, guard=None, group_desc=None,
        device_id=None,
    ):  # fmt: skip
        self._engines, self._ranks, self._rank = engines, ranks, rank
        self._name, self._config, self._guard = name, config, guard
        self.count = 0  # of the collectives that have begun
        self.set_timeout(timeout)
        self._store = PrefixStore(group_name, store)
        self.group_name = str(group_name)
        self.group_desc = group_desc or "undefined"
        self.bound_device_id = device_id

    __module__ = "cygrad.distributed.distributed_c10d"

    def rank(self):
        """This process's rank in the group."""
        return self._rank

    def size(self):
        """The number of processes."""
        return len(self._ranks)

    def name(self):
        """The name of the back end; "undefined" if there may be several."""
        return Backend.UNDEFINED if ":" in self._name else self._name

    def set_timeout(self, timeout):
        """Set how long collectives wait for the other processes, as a `timedelta`."""
        self._timeout_given, self._timeout = timeout, timeout.total_seconds()

    def get_group_store(self):
        """The store that the group's processes share."""
        return self._store

    @property
    def _device_types(self):
        return [_device(kind) for kind in self._config.device_backend_map]

    def _close(self):
        for engine in set(self._engines.values()):
            engine.close()

    # --- One transfer ----------------------------------------------------------------------------

    def _engine(self, tensor=None):
        """The engine for a tensor, by its device. Raises RuntimeError if the group has none."""
        if tensor is None:
            return next(iter(self._engines.values()))
        kind = tensor.device.type
        if kind not in self._engines:
            raise RuntimeError(
                f"No backend type associated with device type {kind}\n"
                f"  this group serves {self._config!r}; to fix it: move the tensor, or make the group with "
                '"cpu:gloo,cuda:nccl", which serves both'
            )
        return self._engines[kind]

    def _moved(self, tensor, writes):
        return wire.moved(tensor, writes, self._engine(tensor).on_device)

    def _reduced(self, op):
        """What makes a parcel of a tensor for this reduction."""
        return lambda tensor, writes: wire.reduced(tensor, op, self.size(), writes, self._engine(tensor).on_device)

    def _run(self, name, tensors, parcels, begin, results=None, details="", peer=None):
        """Begin a transfer of each of these parcels; returns the `Work` whose result are the tensors.

        details: what else must be equal in all processes, such as the root, for the comparison of calls; peer: the
        only other process that takes part, if not all do.
        """
        watch = None
        if self._guard is not None:
            watch = self._guard.entered(self, name, tensors, details, peer)
        if len(tensors) == 1:
            handles = [begin(self._engine(tensors[0]), parcels[0].array, tensors[0])]
        else:
            with self._engine(tensors[0]).together():
                handles = [begin(self._engine(each), parcel.array, each) for each, parcel in zip(tensors, parcels)]
        writes = [parcel.write for parcel in parcels if parcel.write is not None]
        return Work(tensors if results is None else results, handles, writes, watch, self._timeout)

    # --- Collectives -----------------------------------------------------------------------------

    @takes_options
    def allreduce(self, tensors, op=ReduceOp.SUM):
        """Reduce tensors over all processes, in place."""
        tensors = _as_list(tensors)
        for tensor in tensors:
            if tensor.layout is not strided:
                from cygrad.distributed._c10d import sparse  # which is made of the collectives of objects

                return joined([sparse.all_reduce(each, op, self) for each in tensors], tensors)
            check_reduction(op, tensor, "all_reduce")
        size = self.size()
        parcels = [wire.reduced(each, op, size, True, self._engine(each).on_device) for each in tensors]

        def begin(engine, array, tensor):
            return engine.all_reduce(array, wire.reduction(op, tensor))

        return self._run("all_reduce", tensors, parcels, begin, details=op)

    @takes_options
    def allreduce_coalesced(self, tensors, op=ReduceOp.SUM):
        """Reduce tensors over all processes, in place."""
        if not tensors:
            raise NotImplementedError(
                "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no "
                "fallback function is registered for schema c10d::allreduce_coalesced_.\n  there is nothing to reduce"
            )
        return self.allreduce(tensors, op)

    @takes_options
    def reduce(self, tensors, root=0, op=ReduceOp.SUM):
        """Reduce tensors over all processes, into those of `root`."""
        tensors = _as_list(tensors)
        self._check_root("reduce", root)
        for tensor in tensors:
            check_reduction(op, tensor, "reduce")
        parcels = [self._reduced(op)(tensor, self._rank == root) for tensor in tensors]

        def begin(engine, array, tensor):
            return engine.reduce(array, root, wire.reduction(op, tensor))

        return self._run("reduce", tensors, parcels, begin, details=(op, root))

    @takes_options
    def broadcast(self, tensors, root=0):
        """Send tensors of `root` to all."""
        tensors = _as_list(tensors)
        self._check_root("broadcast", root)
        parcels = [self._moved(tensor, self._rank != root) for tensor in tensors]
        return self._run(
            "broadcast", tensors, parcels, lambda engine, array, _: engine.broadcast(array, root), details=root
        )

    @takes_options
    def allgather(self, outputs, tensor):
        """Gather the tensors of all processes into a list."""
        if isinstance(tensor, (list, tuple)):
            (outputs,), (tensor,) = outputs, tensor
        self._check_outputs("allgather", outputs, tensor)
        output = wire.joined(outputs, self._moved, True)
        return self._all_gather(output, tensor, outputs)

    @takes_options
    def all_gather_single(self, output, tensor):
        """Gather the tensors of all processes into one, in which they follow each other."""
        if output.dtype != tensor.dtype or output.numel() != tensor.numel() * self.size():
            self._check_outputs("allgather", output.chunk(self.size()) if output.ndim else [output], tensor)
            self._check_multiple("all_gather_single", "output", output, tensor)
        return self._all_gather(self._moved(output, True), tensor, [output])

    def _all_gather(self, output, tensor, results):
        input = wire.apart(self._moved(tensor, False).array, output.array)
        return self._run(
            "all_gather", [tensor], [output], lambda engine, array, _: engine.all_gather(array, input), results
        )

    @takes_options
    def gather(self, outputs, tensor, root=0):
        """Gather the tensors of all processes into a list of `root`."""
        if isinstance(tensor, (list, tuple)):
            (tensor,), outputs = tensor, outputs[0] if outputs else []
        self._check_root("gather", root)
        output = wire.Parcel(None, None)
        if self._rank == root:
            self._check_length("gather", "output", outputs)
            self._check_same("gather", outputs, tensor)
            output = wire.joined(outputs, self._moved, True)
        input = wire.apart(self._moved(tensor, False).array, output.array)
        return self._run(
            "gather", [tensor], [output], lambda engine, array, _: engine.gather(array, input, root), outputs or [],
            details=root,
        )  # fmt: skip

    @takes_options
    def scatter(self, output, inputs, root=0):
        """Send each process its tensor of the list of `root`."""
        if isinstance(output, (list, tuple)):
            (output,), inputs = output, inputs[0] if inputs else []
        self._check_root("scatter", root)
        input, parcel = None, self._moved(output, True)
        if self._rank == root:
            self._check_length("scatter", "input", inputs)
            self._check_same("scatter", inputs, output)
            input = wire.apart(wire.joined(inputs, self._moved, False).array, parcel.array)
        return self._run(
            "scatter", [output], [parcel],
            lambda engine, array, _: engine.scatter(array, input, root), details=root,
        )  # fmt: skip

    @takes_options
    def reduce_scatter(self, output, inputs, op=ReduceOp.SUM):
        """Reduce a list over all processes, and leave each process its tensor."""
        if isinstance(output, (list, tuple)):
            (output,), (inputs,) = output, inputs
        if len(inputs) != self.size():
            raise RuntimeError(
                f"invalid input tensor list size, must be world size\n  got {len(inputs)} tensors for {self.size()}"
            )
        check_reduction(op, output, "reduce_scatter")
        self._check_same("reduce_scatter", inputs, output)
        return self._reduce_scatter(output, wire.joined(inputs, self._reduced(op), False).array, op)

    @takes_options
    def reduce_scatter_single(self, output, input, op=ReduceOp.SUM):
        """Reduce a tensor over all processes, and leave each process its part."""
        self._check_multiple("reduce_scatter_tensor", "input", input, output)
        check_reduction(op, output, "reduce_scatter")
        return self._reduce_scatter(output, self._reduced(op)(input, False).array, op)

    def _reduce_scatter(self, output, input, op):
        name, parcel = wire.reduction(op, output), self._reduced(op)(output, True)
        input = wire.apart(input, parcel.array)
        return self._run(
            "reduce_scatter", [output], [parcel],
            lambda engine, array, _: engine.reduce_scatter(array, input, name), details=op,
        )  # fmt: skip

    @takes_options
    def alltoall(self, outputs, inputs):
        """Send the i-th tensor of each process to process i."""
        for kind, tensors in (("output", outputs), ("input", inputs)):
            if len(tensors) != self.size():
                raise RuntimeError(
                    f"ProcessGroupGloo::alltoall: {kind} tensor list size {len(tensors)} does not match world size "
                    f"{self.size()}"
                )
        self._check_same("alltoall", [outputs[self._rank]], inputs[self._rank])
        output = wire.joined(outputs, self._moved, True)
        input = wire.joined(inputs, self._moved, False).array
        sizes = [[each.numel() * each.element_size() for each in tensors] for tensors in (outputs, inputs)]
        return self._all_to_all(output, input, sizes, outputs)

    @takes_options
    def all_to_all_single(self, output, input, output_sizes=(), input_sizes=()):
        """Send the i-th part of a tensor of each process to process i; parts are along the first dimension."""
        sizes = []
        for tensor, given in ((output, output_sizes), (input, input_sizes)):
            rows = _split_sizes(tensor, given, self.size())
            row = tensor.element_size() * (tensor.numel() // tensor.shape[0] if tensor.shape[0] else 0)
            sizes.append([each * row for each in rows])
        if sizes[0][self._rank] != sizes[1][self._rank]:
            raise RuntimeError(
                "all_to_all_single: the part that this process sends to itself has another size where it arrives\n"
                f"  got {sizes[1][self._rank]} bytes for {sizes[0][self._rank]}"
            )
        return self._all_to_all(self._moved(output, True), self._moved(input, False).array, sizes, [output])

    def _all_to_all(self, output, input, sizes, results):
        input = wire.apart(input, output.array)
        return self._run(
            "all_to_all", results[:1], [output], lambda engine, array, _: engine.all_to_all(array, input, *sizes),
            results,
        )  # fmt: skip

    @takes_options
    def barrier(self):
        """Wait until all processes are here."""
        watch = None if self._guard is None else self._guard.entered(self, "barrier", [], "")
        return Work((), [self._engine().barrier()], (), watch, self._timeout)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """Wait until all processes are here; rank 0 says which are not."""
        seconds = self._timeout if timeout is None else timeout.total_seconds()
        if self.size() > 1:
            (self._monitor if self._rank == 0 else self._report)(seconds, wait_all_ranks)

    # --- Several at once -------------------------------------------------------------------------

    @takes_options
    def allgather_coalesced(self, output_lists, tensors):
        """Gather several tensors of all processes into as many lists."""
        if any(len(outputs) != self.size() for outputs in output_lists):
            raise RuntimeError(
                "ProcessGroupGloo::allgather_coalesced: output lists should be equal to world size\n"
                f"  got {[len(outputs) for outputs in output_lists]} tensors for {self.size()} processes"
            )
        works = [self.allgather(outputs, tensor) for outputs, tensor in zip(output_lists, tensors, strict=True)]
        return joined(works, [each for outputs in output_lists for each in outputs])

    @takes_options
    def all_gather_single_coalesced(self, outputs, tensors):
        """`all_gather_single` for each of several tensors."""
        with self._engine(tensors[0]).together():
            works = [self.all_gather_single(output, tensor) for output, tensor in zip(outputs, tensors, strict=True)]
        return joined(works, outputs)

    @takes_options
    def reduce_scatter_single_coalesced(self, outputs, inputs, op=ReduceOp.SUM):
        """`reduce_scatter_single` for each of several tensors."""
        with self._engine(inputs[0]).together():
            works = [self.reduce_scatter_single(output, each, op) for output, each in zip(outputs, inputs, strict=True)]
        return joined(works, outputs)

    # Older names.
    _allgather_base, _reduce_scatter_base, alltoall_base = all_gather_single, reduce_scatter_single, all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- From one process to another -------------------------------------------------------------

    @takes_options
    def send(self, tensors, peer, tag=0):
        """Send a tensor to process `peer`."""
        (tensor,) = tensors
        self._check_peer("send", peer)
        _check_tag("send", tag)
        return self._run(
            f"send to rank {peer}", tensors, [self._moved(tensor, False)],
            lambda engine, array, _: engine.send(array, peer, tag), details=None, peer=peer,
        )  # fmt: skip

    @takes_options
    def recv(self, tensors, peer, tag=0):
        """Receive into a tensor what process `peer` sends."""
        self._check_peer("recv", peer)
        return self._recv(tensors, peer, tag)

    @takes_options
    def recv_anysource(self, tensors, tag=0):
        """Receive into a tensor what any process sends."""
        if self.size() == 1:
            raise RuntimeError("ProcessGroupGloo::recvAnysource: there is no other process in the group")
        return self._recv(tensors, None, tag)

    def _recv(self, tensors, peer, tag):
        _check_tag("recv", tag)
        (tensor,) = tensors
        return self._run(
            "recv" if peer is None else f"recv from rank {peer}", tensors, [self._moved(tensor, True)],
            lambda engine, array, _: engine.recv(array, peer, tag), details=None, peer=peer,
        )  # fmt: skip

    def _monitor(self, timeout, wait_all_ranks):
        engine = self._engine()
        missing = []
        end = time.monotonic() + timeout
        for peer in range(1, self.size()):
            handle = engine.recv(np.zeros(1, np.uint8), peer, _MONITOR)
            try:
                handle.wait(max(0.0, end - time.monotonic()))
            except TimeoutError:
                handle.abort()
                missing.append(peer)
                if not wait_all_ranks:
                    break
        if missing:
            ranks = ", ".join(str(self._ranks[peer]) for peer in missing)
            kind = "Ranks" if wait_all_ranks else "Rank"
            raise RuntimeError(f"[Rank 0]: {kind} {ranks} failed to pass monitoredBarrier in {timeout * 1000:.0f} ms")
        for peer in range(1, self.size()):
            engine.send(np.ones(1, np.uint8), peer, _MONITOR).wait(timeout)

    def _report(self, timeout, _):
        engine = self._engine()
        engine.send(np.ones(1, np.uint8), 0, _MONITOR).wait(timeout)
        handle = engine.recv(np.zeros(1, np.uint8), 0, _MONITOR)
        try:
            handle.wait(timeout)
        except TimeoutError:
            handle.abort()
            raise RuntimeError(
                f"Rank {self._ranks[self._rank]} successfully reached monitoredBarrier, but received errors while "
                "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
            ) from None

    # --- Bytes -----------------------------------------------------------------------------------

    def _bytes(self, name, begin):
        """Carry out one transfer of bytes between the processes' main memories, for objects."""
        watch = self._guard.entered(self, name, [], "") if self._guard is not None else None
        work = Work((), [begin(self._bytes_engine())], (), watch, self._timeout)
        work.wait()
        return work

    def _bytes_engine(self):
        """The engine for the main memory."""
        return next((each for each in self._engines.values() if not each.on_device), self._engine().host)

    # --- Checks ----------------------------------------------------------------------------------

    def _check_root(self, what, root):
        if not hasattr(root, "__index__"):
            raise _incompatible("", f"a rank is an int; got {root!r}")
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}\n  there are {self.size()} ranks")

    def _check_peer(self, what, peer):
        if not 0 <= peer < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid peer rank: {peer}\n  there are {self.size()} ranks")

    def _check_multiple(self, what, kind, large, small):
        """Raise unless one tensor has the elements of the other for each process."""
        if large.dtype != small.dtype:
            raise ValueError(f"{what}: output and input have different dtypes {large.dtype} and {small.dtype}")
        if large.numel() != small.numel() * self.size():
            raise ValueError(
                f"{kind} tensor size must be equal to world_size times "
                f"{'input' if kind == 'output' else 'output'} tensor size\n"
                f"  {what} got {large.numel()} elements for {self.size()} times {small.numel()}"
            )

    def _check_outputs(self, what, outputs, tensor):
        if len(outputs) != self.size():
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid output tensor list at index 0 (expected length {self.size()}, "
                f"got {len(outputs)})"
            )
        self._check_same(what, outputs, tensor)

    def _check_length(self, what, kind, tensors):
        if len(tensors) != self.size():
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: Incorrect {kind} list size {len(tensors)}. {kind.capitalize()} list size "
                f"should be {self.size()}, same as size of the process group."
            )

    @staticmethod
    def _check_same(what, tensors, like):
        for index, tensor in enumerate(tensors):
            if tensor.dtype != like.dtype:
                raise RuntimeError(
                    f"ProcessGroupGloo::{what}: invalid tensor type at index {index} (expected {like.dtype}, got "
                    f"{tensor.dtype})"
                )
            if tensor.shape != like.shape:
                expected, got = (str(list(t.shape))[1:-1] for t in (like, tensor))
                raise RuntimeError(
                    f"ProcessGroupGloo::{what}: invalid tensor size at index {index} (expected ({expected}), "
                    f"got ({got}))"
                )


def _check_tag(what, tag):
    if not hasattr(tag, "__index__"):
        raise _incompatible(what, f"a tag is an int; got {tag!r}")
    if tag < 0:
        raise RuntimeError(f"Tag must be nonnegative\n  got {tag}")


def _incompatible(name, what):
    return TypeError(
        f"{name}(): incompatible function arguments. The following argument types are supported:\n  {what}"
    )


def _as_list(tensors):
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _split_sizes(tensor, sizes, count):
    """The lengths of the parts of a tensor along its first dimension, one for each process."""
    length = tensor.shape[0]
    if not sizes:
        if length % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [length // count] * count
    if not all(hasattr(each, "__index__") for each in sizes):
        raise _incompatible("all_to_all_single", f"split sizes are ints; got {sizes!r}")
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError(f"Split sizes doesn't match total dim 0 size\n  got {list(sizes)} for {length}")
    return list(sizes)
