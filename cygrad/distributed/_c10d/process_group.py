"""`ProcessGroup`: the processes that take part in a collective, and the collectives by their low-level names."""

from cygrad import device as _device
from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed._c10d.reduce_ops import ReduceOp, check_reduction
from cygrad.distributed._c10d.stores import PrefixStore
from cygrad.distributed._c10d.work import Work

__all__ = ["Backend", "BackendConfig", "ProcessGroup"]


class Backend(str):
    """The name of a back end, in lower case: "gloo" for the CPU, "nccl" for GPUs.

    >>> from cygrad.distributed import Backend
    >>> Backend("GLOO") == Backend.GLOO
    True
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO, "hpu": "hccl"}
    backend_capability = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
    }

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish\n  got {name!r}")
        return super().__new__(cls, getattr(cls, name.upper(), name.lower()))

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Raises RuntimeError: a back end of one's own is for several processes."""
        raise one_process(f"Backend.register_backend({name!r})")


class BackendConfig:
    """Which back end serves which kind of device: from "gloo", or from "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend):
        defaults = Backend.default_device_backend_map
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend(defaults["cpu"])}
        elif ":" in backend:
            self.device_backend_map = dict(self._pairs(backend))
        else:
            devices = Backend.backend_capability.get(backend, ["cpu", "cuda"])
            self.device_backend_map = dict.fromkeys(devices, Backend(backend))

    @staticmethod
    def _pairs(backend):
        for part in backend.lower().split(","):
            pair = part.split(":")
            if len(pair) != 2:
                raise ValueError(f"Invalid device:backend pairing: '{part}'. cygrad reads e.g. 'cpu:gloo,cuda:nccl'")
            yield pair[0], Backend(pair[1])

    def get_device_backend_map(self):
        """Return {kind of device: back end}."""
        return self.device_backend_map

    def __repr__(self):
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


class ProcessGroup:
    """Processes that exchange tensors; `new_group` makes one, and `init_process_group` that of all processes."""

    def __init__(self, backend, ranks, rank, *, name, config, store, group_name, group_desc=None, device_id=None):
        self._backend, self._ranks, self._rank = backend, ranks, rank
        self._name, self._config = name, config
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

    def get_group_store(self):
        """The store that the group's processes share."""
        return self._store

    @property
    def _device_types(self):
        return [_device(kind) for kind in self._config.device_backend_map]

    # --- Collectives -----------------------------------------------------------------------------

    def allreduce(self, tensors, op=ReduceOp.SUM, **_):
        """Reduce tensors over all processes, in place."""
        tensors = _as_list(tensors)
        for tensor in tensors:
            check_reduction(op, tensor, "all_reduce")
        self._backend.all_reduce(tensors, op)
        return Work(tensors)

    def allreduce_coalesced(self, tensors, op=ReduceOp.SUM, **_):
        """Reduce tensors over all processes, in place."""
        return self.allreduce(tensors, op)

    def reduce(self, tensors, root=0, op=ReduceOp.SUM, **_):
        """Reduce tensors over all processes, into those of `root`."""
        tensors = _as_list(tensors)
        self._check_root("reduce", root)
        for tensor in tensors:
            check_reduction(op, tensor, "reduce")
        self._backend.reduce(tensors, root, op)
        return Work(tensors)

    def broadcast(self, tensors, root=0, **_):
        """Send tensors of `root` to all."""
        tensors = _as_list(tensors)
        self._check_root("broadcast", root)
        self._backend.broadcast(tensors, root)
        return Work(tensors)

    def allgather(self, outputs, tensor, **_):
        """Gather the tensors of all processes into a list."""
        if isinstance(tensor, (list, tuple)):
            (outputs,), (tensor,) = outputs, tensor
        self._check_outputs("allgather", outputs, tensor)
        self._backend.all_gather(outputs, tensor)
        return Work(outputs)

    def gather(self, outputs, tensor, root=0, **_):
        """Gather the tensors of all processes into a list of `root`."""
        self._check_root("gather", root)
        self._check_length("gather", "output", outputs)
        self._check_same("gather", outputs, tensor)
        self._backend.gather(outputs, tensor, root)
        return Work(outputs)

    def scatter(self, output, inputs, root=0, **_):
        """Send each process its tensor of the list of `root`."""
        self._check_root("scatter", root)
        self._check_length("scatter", "input", inputs)
        self._check_same("scatter", inputs, output)
        self._backend.scatter(output, inputs, root)
        return Work([output])

    def reduce_scatter(self, output, inputs, op=ReduceOp.SUM, **_):
        """Reduce a list over all processes, and leave each process its tensor."""
        if len(inputs) != self.size():
            raise RuntimeError(
                f"invalid input tensor list size, must be world size\n  got {len(inputs)} tensors for {self.size()}"
            )
        check_reduction(op, output, "reduce_scatter")
        self._check_same("reduce_scatter", inputs, output)
        self._backend.reduce_scatter(output, inputs, op)
        return Work([output])

    def alltoall(self, outputs, inputs, **_):
        """Send the i-th tensor of each process to process i."""
        for kind, tensors in (("output", outputs), ("input", inputs)):
            if len(tensors) != self.size():
                raise RuntimeError(
                    f"ProcessGroupGloo::alltoall: {kind} tensor list size {len(tensors)} does not match world size "
                    f"{self.size()}"
                )
        for output, given in zip(outputs, inputs):
            self._check_same("alltoall", [output], given)
        self._backend.all_to_all(outputs, inputs)
        return Work(outputs)

    def barrier(self, *_, **__):
        """Wait until all processes are here."""
        self._backend.barrier()
        return Work()

    # --- Checks ----------------------------------------------------------------------------------

    def _check_root(self, what, root):
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}\n  there are {self.size()} ranks")

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


def _as_list(tensors):
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
