"""Saving and loading nested state dictionaries in directories, by any number of processes."""

import os
import re
import secrets
from concurrent.futures import Future, ThreadPoolExecutor

import cygrad
import cygrad.distributed as dist
from cygrad import Tensor
from cygrad.distributed.checkpoint import _planning as planning
from cygrad.distributed.checkpoint._commit import Alone, ByCollectives, ByFiles, CheckpointException
from cygrad.distributed.checkpoint._planning import DefaultLoadPlanner, DefaultSavePlanner, Metadata, Stateful
from cygrad.distributed.checkpoint._storage import INDEX, FileSystemReader, FileSystemWriter
from cygrad.serialization import load as load_file
from cygrad.serialization import save as save_file

__all__ = [
    "async_save", "dcp_to_torch_save", "latest", "load", "load_sharded_optimizer_state_dict", "load_state_dict", "save",
    "save_state_dict", "torch_save_to_dcp",
]  # fmt: skip


def _states(state_dict):
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def _storage(kind, given, checkpoint_id, default):
    if given is not None:
        return given
    if checkpoint_id is None:
        raise RuntimeError(f"`checkpoint_id` must be specified if storage_{kind} is None.")
    return default(checkpoint_id)


def _processes(process_group, no_dist):
    """The processes that take part."""
    if no_dist or not dist.is_initialized():
        return Alone()
    group = process_group if process_group is not None else dist.group.WORLD
    return Alone() if group.size() == 1 else ByCollectives(group)


# --- Saving --------------------------------------------------------------------------------------


class _Plan:
    """What this process writes, and what all do: made together, before anything is written."""

    def __init__(self, state_dict, planner, writer, processes):
        self.rank, self.writer = processes.rank, writer
        values = (planner or DefaultSavePlanner()).pieces(_states(state_dict))
        mine = [planning.piece_of(name, keys, value) for name, (keys, value) in values.items()]
        failure = _failure_of(writer.prepare) if self.rank == 0 else None
        gathered = processes.all((mine, secrets.token_hex(4), failure))
        _raise_failures([failure for _, _, failure in gathered])
        plans, self.token = [plan for plan, _, _ in gathered], gathered[0][1]
        try:
            self.parts = planning.assigned(plans)
        except ValueError as error:
            raise CheckpointException("checkpoint", {self.rank: error}) from error
        written = {piece.name for piece in self.parts[self.rank]}
        chosen = {name: value for name, (_, value) in values.items() if name in written}
        self.tensors = {name: planning.local(each) for name, each in chosen.items() if _has_format(each)}
        self.values = {name: each for name, each in chosen.items() if name not in self.tensors}

    def copied(self):
        """The same with copies of the tensors, which training may change."""
        self.tensors = {name: tensor.cpu().clone() for name, tensor in self.tensors.items()}
        self.values = {n: v.detach().clone() if isinstance(v, Tensor) else v for n, v in self.values.items()}
        return self

    def write(self, processes):
        """Write this process's part, and end as all do."""
        result = _result_of(self._write_part)
        found = processes.all(result)

        def finish():
            failures = [each[1] for each in found]
            if not any(failures):
                metadata = self.metadata([each[0] for each in found])
                failures[0] = _failure_of(lambda: self.writer.finish(metadata, self.token))
            return failures

        _raise_failures(processes.final(finish))
        return self.metadata([each[0] for each in found]) if len(found) == len(self.parts) else Metadata()

    def _write_part(self):
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self.tensors.items()}
        return self.writer.write_part(self.rank, self.token, tensors, self.values)

    def metadata(self, files):
        """What the checkpoint contains. files: for each process {dotted name: file}."""
        metadata = Metadata()
        for rank, part in enumerate(self.parts):
            for piece in part:
                metadata.state_dict_metadata[piece.name] = piece.whole
                metadata.planner_data[piece.name] = piece.keys
                place = {"file": files[rank][piece.name], "offset": piece.offset, "shape": piece.shape}
                metadata.storage_data.setdefault(piece.name, []).append(place)
        return metadata


def _has_format(value):
    """Whether a value goes to a file of tensors."""
    return isinstance(value, Tensor) and value.layout == cygrad.strided and value.dtype != cygrad.complex128


def _failure_of(function):
    """The text of the error that a call raises, or None."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _result_of(function):
    """(what a call returns, None) or (None, the text of its error)."""
    results = []
    failure = _failure_of(lambda: results.append(function()))
    return results[0] if results else None, failure


def _raise_failures(failures):
    """Raise CheckpointException if there are errors in this list of one text or None for each process."""
    failures = {rank: RuntimeError(text) for rank, text in enumerate(failures) if text is not None}
    if failures:
        raise CheckpointException("checkpoint", failures)


def save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist=False,
    use_collectives=True,
):
    """Save a nested dictionary of tensors, other values and objects with `state_dict()` to a directory.

    All processes of the group call this with the same names. Each writes its parts of what is spread over processes
    (`fully_shard`, `DTensor`), and a share of what all have, which is taken from one of them. The directory, which all
    processes must see, holds the old checkpoint until the new one is complete. Returns what has been written. Raises
    CheckpointException in all processes if one fails.

    >>> import cygrad, tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> directory = tempfile.mkdtemp()
    >>> _ = dcp.save({"w": cygrad.ones(2), "step": 3}, checkpoint_id=directory)
    >>> state = {"w": cygrad.zeros(2), "step": 0}
    >>> dcp.load(state, checkpoint_id=directory)
    >>> state
    {'w': tensor([1., 1.]), 'step': 3}
    """
    writer = _storage("writer", storage_writer, checkpoint_id, FileSystemWriter)
    processes = _processes(process_group, no_dist)
    return _Plan(state_dict, planner, writer, processes).write(processes)


_last: dict = {}  # {group, or None: the latest save that is under way there}


def async_save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist=False,
    timeout=1800.0,
    **_,
) -> Future:
    """Save a copy of the state in another thread; returns a `concurrent.futures.Future` of `save`'s result.

    Processes agree on who writes what before this returns, and meet through files in the directory afterwards, so that
    training goes on with its collectives meanwhile. Saves of a group follow each other. If another process does not
    finish within `timeout` seconds the future has a CheckpointException.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> future = dcp.async_save({"x": cygrad.ones(2)}, checkpoint_id=folder.name)
    >>> metadata = future.result()  # training goes on until then
    >>> sorted(metadata.state_dict_metadata)
    ['x']
    >>> folder.cleanup()
    """
    writer = _storage("writer", storage_writer, checkpoint_id, FileSystemWriter)
    processes = _processes(process_group, no_dist)
    plan = _Plan(state_dict, planner, writer, processes).copied()
    key = getattr(processes, "group", None)
    before = _last.get(key)
    meeting = processes
    if processes.size > 1:
        if not isinstance(writer, FileSystemWriter):
            raise ValueError("async_save: several processes need a FileSystemWriter, through whose directory they meet")
        meeting = ByFiles(writer.path, plan.token, processes.rank, processes.size, timeout)

    def write():
        if before is not None:
            before.exception()  # wait
        try:
            return plan.write(meeting)
        except TimeoutError as error:
            raise CheckpointException("checkpoint", {plan.rank: error}) from error

    executor = ThreadPoolExecutor(1)
    _last[key] = future = executor.submit(write)
    future.add_done_callback(lambda done: _last.pop(key, None) if _last.get(key) is done else None)
    executor.shutdown(wait=False)
    return future


# --- Loading -------------------------------------------------------------------------------------


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Load into a nested dictionary, in place, what `save` has stored under the same names.

    Each process reads what it needs; their number, and how tensors are spread over them, may differ from those when it
    was saved. Raises CheckpointException, in all processes, if a name is missing or a tensor has another shape; then
    nothing is changed.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"model": {"w": cygrad.ones(2)}, "step": 3}, checkpoint_id=folder.name)
    >>> state = {"model": {"w": cygrad.zeros(2)}, "step": 0}
    >>> dcp.load(state, checkpoint_id=folder.name)
    >>> state
    {'model': {'w': tensor([1., 1.])}, 'step': 3}
    >>> folder.cleanup()
    """
    reader = _storage("reader", storage_reader, checkpoint_id, FileSystemReader)
    planner = planner or DefaultLoadPlanner()
    states = _states(state_dict)
    processes = _processes(process_group, no_dist)
    changes, failure = _result_of(lambda: _read(states, reader, planner))
    _raise_failures(processes.all(failure))
    with cygrad.no_grad():
        for keys, target, value in changes:
            if target is None:
                planning.put(states, keys, value)
            else:
                planning.local(target).copy_(value)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]
    if not state_dict:
        state_dict.update(states)


def _read(states, reader, planner):
    """[(keys, tensor to write to or None, what has been read)] for a state."""
    metadata = reader.read_metadata()
    if isinstance(planner, planning._EmptyStateDictLoadPlanner):
        chosen = [name for name, keys in metadata.planner_data.items() if not planner.keys or keys[0] in planner.keys]
        return [(metadata.planner_data[name], None, value) for name, value in reader.read(chosen).items()]
    pieces = planner.pieces(states)
    stored = metadata.state_dict_metadata
    if planner.allow_partial_load:
        pieces = {name: piece for name, piece in pieces.items() if name in stored}
    regions = {}
    for name, (_, value) in pieces.items():
        if name not in stored:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        if isinstance(value, Tensor):
            shape, region = planning.region_of(value)
            if stored[name] != shape:
                raise ValueError(f"Size mismatch between saved {stored[name]} and current: {shape} for {name}")
            if region is not None:
                regions[name] = region
    values = reader.read([name for name in pieces if name not in regions])
    values.update(reader.read_regions(regions))
    return [
        (keys, value if isinstance(value, Tensor) else None, values[name]) for name, (keys, value) in pieces.items()
    ]


def latest(directory):
    """The path of the newest whole checkpoint among the directories in `directory`, or None if there is none.

    The newest is the one whose name ends with the largest number.

    >>> import tempfile, os, cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> directory = tempfile.mkdtemp()
    >>> for step in (9, 10):
    ...     _ = dcp.save({"step": step}, checkpoint_id=os.path.join(directory, f"step-{step}"))
    >>> os.path.basename(dcp.latest(directory))
    'step-10'
    """
    if not os.path.isdir(directory):
        return None
    found = []
    for name in os.listdir(directory):
        number = re.search(r"(\d+)$", name)
        if number and os.path.exists(os.path.join(directory, name, INDEX)):
            found.append((int(number[1]), os.path.join(directory, name)))
    return max(found)[1] if found else None


# --- Other names and files -----------------------------------------------------------------------


def _load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """`load` by an older name."""
    load(state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group, no_dist=no_dist)


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """`load` by an older name.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, checkpoint_id=folder.name)
    >>> state = {"x": cygrad.zeros(2)}
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     dcp.load_state_dict(state, dcp.FileSystemReader(folder.name), no_dist=True)
    >>> state["x"]
    tensor([1., 1.])
    >>> folder.cleanup()
    """
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """`save` by an older name.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     metadata = dcp.save_state_dict({"x": cygrad.ones(2)}, dcp.FileSystemWriter(folder.name), no_dist=True)
    >>> sorted(metadata.state_dict_metadata)
    ['x']
    >>> folder.cleanup()
    """
    return save(
        state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group, no_dist=no_dist
    )


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """Return {optimizer_key: the optimizer's state} from a checkpoint.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> metadata = dcp.save({"model": model.state_dict(), "optim": optimizer.state_dict()}, checkpoint_id=folder.name)
    >>> reader = dcp.FileSystemReader(folder.name)
    >>> sorted(dcp.load_sharded_optimizer_state_dict(model.state_dict(), "optim", reader)["optim"])
    ['param_groups', 'state']
    >>> folder.cleanup()
    """
    states: dict = {}
    load(states, storage_reader=storage_reader, planner=planning._EmptyStateDictLoadPlanner({optimizer_key}))
    return states


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write a checkpoint's whole state to one file, as `torch.save` does.

    >>> import cygrad
    >>> import os, tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "state.pt")
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, checkpoint_id=folder.name)
    >>> dcp.dcp_to_torch_save(folder.name, path)
    >>> cygrad.load(path)
    {'x': tensor([1., 1.])}
    >>> folder.cleanup()
    """
    states: dict = {}
    load(states, checkpoint_id=dcp_checkpoint_dir, planner=planning._EmptyStateDictLoadPlanner(), no_dist=True)
    save_file(states, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Write what is in a file of `torch.save` to a checkpoint.

    >>> import cygrad
    >>> import os, tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "state.pt")
    >>> cygrad.save({"x": cygrad.ones(2)}, path)
    >>> dcp.torch_save_to_dcp(path, os.path.join(folder.name, "checkpoint"))
    >>> state = {"x": cygrad.zeros(2)}
    >>> dcp.load(state, checkpoint_id=os.path.join(folder.name, "checkpoint"))
    >>> state
    {'x': tensor([1., 1.])}
    >>> folder.cleanup()
    """
    save(load_file(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
