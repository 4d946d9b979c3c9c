"""Saving and loading state dictionaries, piece by piece, in a directory.

A checkpoint consists of the file `.metadata`, which lists the pieces, and of `__0_0.distcp`, which holds them: the
tensors and other values of a nested state dictionary under dotted names. Both are written by `save`.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import cygrad
from cygrad import Tensor
from cygrad.serialization import load as load_file
from cygrad.serialization import save as save_file

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlanner", "Metadata", "SavePlanner", "Stateful",
    "StorageReader", "StorageWriter", "async_save", "consolidate_safetensors_files", "dcp_to_torch_save", "load",
    "load_sharded_optimizer_state_dict", "load_state_dict", "save", "save_state_dict", "torch_save_to_dcp",
]  # fmt: skip

_LIST, _DATA = ".metadata", "__0_0.distcp"


class CheckpointException(BaseException):
    """Saving or loading failed in a process; `failures` has the error of each such process by its rank."""

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self):
        """{rank: error}."""
        return self._failures

    def __str__(self):
        texts = "".join(f"\n  rank {rank}: {error}" for rank, error in self._failures.items())
        return f"CheckpointException ranks:{self._failures.keys()}{texts}"


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict()` and `load_state_dict(state)`; `save` and `load` call them."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""


@dataclass
class Metadata:
    """What a checkpoint contains: {dotted name: shape of the tensor, or None for another value}."""

    state_dict_metadata: dict[str, Any] = field(default_factory=dict)
    planner_data: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # {dotted name: keys that lead to it}


# --- Planners ------------------------------------------------------------------------------------


class SavePlanner:
    """Decides what is saved under which name; override `pieces`."""

    def pieces(self, state_dict):
        """Return {dotted name: (keys that lead to the value, value)}."""
        return flattened(state_dict)


class DefaultSavePlanner(SavePlanner):
    """Saves all tensors and values of a nested state dictionary."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, **_):
        self.flatten_state_dict = flatten_state_dict


class LoadPlanner:
    """Decides what of a state dictionary is loaded; override `pieces`."""

    allow_partial_load = False

    def pieces(self, state_dict):
        """Return {dotted name: (keys that lead to the value, value)}."""
        return flattened(state_dict)


class DefaultLoadPlanner(LoadPlanner):
    """Loads all tensors and values of a nested state dictionary; with `allow_partial_load` those that are there."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty dictionary all that a checkpoint contains, or what is below some keys."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys


def flattened(state_dict):
    """{dotted name: (keys, value)} of all values in nested dictionaries, and in lists with tensors."""
    found = {}

    def visit(keys, value):
        if isinstance(value, dict) and value:
            items = list(value.items())
        elif isinstance(value, (list, tuple)) and any(isinstance(each, (Tensor, dict)) for each in value):
            items = list(enumerate(value))
        else:
            found[".".join(map(str, keys))] = (keys, value)
            return
        for key, each in items:
            visit((*keys, key), each)

    for key, value in state_dict.items():
        visit((key,), value)
    return found


def _put(state, keys, value):
    """Store a value in nested dictionaries and lists, which are made where there are none."""
    for here, following in zip(keys, keys[1:]):
        if isinstance(state, list):
            while len(state) <= here:
                state.append([] if isinstance(following, int) else {})
            state = state[here]
        else:
            state = state.setdefault(here, {})
    if isinstance(state, list) and len(state) == keys[-1]:
        state.append(value)
    else:
        state[keys[-1]] = value


# --- Storage -------------------------------------------------------------------------------------


class StorageWriter:
    """Writes the pieces of a checkpoint; override `write`."""

    def write(self, metadata, pieces):
        """Write the list of pieces, and {dotted name: value}."""
        raise NotImplementedError(f"{type(self).__name__} has no write()")


class StorageReader:
    """Reads a checkpoint; override `read_metadata` and `read`."""

    def read_metadata(self):
        """Return the list of pieces, a `Metadata`."""
        raise NotImplementedError(f"{type(self).__name__} has no read_metadata()")

    def read(self, names):
        """Return {dotted name: value} for these names."""
        raise NotImplementedError(f"{type(self).__name__} has no read()")


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint to a directory, which is made if it is not there."""

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, overwrite=True, **_):
        self.path, self.sync_files, self.overwrite = os.fspath(path), sync_files, overwrite

    def write(self, metadata, pieces):
        """Write the list of pieces, and {dotted name: value}. The list comes last, so that what has one is whole."""
        os.makedirs(self.path, exist_ok=True)
        if not self.overwrite and os.path.exists(os.path.join(self.path, _LIST)):
            raise RuntimeError(f"Checkpoint already exists and overwrite=False: {self.path}")
        for name, value in ((_DATA, pieces), (_LIST, vars(metadata))):
            target = os.path.join(self.path, name)
            with open(f"{target}.part", "wb") as file:
                save_file(value, file)
                if self.sync_files:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(f"{target}.part", target)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a directory."""

    def __init__(self, path, **_):
        self.path = os.fspath(path)

    def read_metadata(self):
        """Return the list of pieces, a `Metadata`."""
        return Metadata(**load_file(os.path.join(self.path, _LIST)))

    def read(self, names):
        """Return {dotted name: value} for these names."""
        stored = load_file(os.path.join(self.path, _DATA), weights_only=False)
        return {name: stored[name] for name in names}


class HuggingFaceStorageWriter(StorageWriter):
    """Writes the tensors of a checkpoint to `model.safetensors` in a directory."""

    def __init__(self, path, fqn_to_index_mapping=None, **_):
        self.path = os.fspath(path)

    def write(self, metadata, pieces):
        """Write {dotted name: tensor}."""
        os.makedirs(self.path, exist_ok=True)
        tensors = {name: value for name, value in pieces.items() if isinstance(value, Tensor)}
        save_file(tensors, os.path.join(self.path, "model.safetensors"))


class HuggingFaceStorageReader(StorageReader):
    """Reads tensors from the `.safetensors` files of a directory."""

    def __init__(self, path, **_):
        self.path = os.fspath(path)

    def _tensors(self):
        found = {}
        for name in sorted(os.listdir(self.path)):
            if name.endswith(".safetensors"):
                found.update(load_file(os.path.join(self.path, name)))
        return found

    def read_metadata(self):
        """Return the list of tensors, a `Metadata`."""
        tensors = self._tensors()
        return Metadata(
            {name: tuple(each.shape) for name, each in tensors.items()}, {name: (name,) for name in tensors}
        )

    def read(self, names):
        """Return {name: tensor} for these names."""
        tensors = self._tensors()
        return {name: tensors[name] for name in names}


def consolidate_safetensors_files(input_dir, output_dir=None, fqn_to_index_mapping=None, num_threads=1):
    """Write the tensors in the `.safetensors` files of a directory to one file."""
    tensors = HuggingFaceStorageReader(input_dir)._tensors()
    HuggingFaceStorageWriter(output_dir or input_dir).write(None, tensors)


# --- Saving and loading --------------------------------------------------------------------------


def _failing_as_checkpoint(function, *args):
    """Call a function; its error is that of this process."""
    try:
        return function(*args)
    except Exception as error:
        raise CheckpointException("checkpoint", {0: error}) from error


def _states(state_dict):
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def _storage(kind, given, checkpoint_id, default):
    if given is not None:
        return given
    if checkpoint_id is None:
        raise RuntimeError(f"`checkpoint_id` must be specified if storage_{kind} is None.")
    return default(checkpoint_id)


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
    pieces = (planner or DefaultSavePlanner()).pieces(_states(state_dict))
    metadata = Metadata(
        {name: tuple(value.shape) if isinstance(value, Tensor) else None for name, (_, value) in pieces.items()},
        {name: keys for name, (keys, _) in pieces.items()},
    )
    values = {name: value.detach() if isinstance(value, Tensor) else value for name, (_, value) in pieces.items()}
    _failing_as_checkpoint(writer.write, metadata, values)
    return metadata


def async_save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, **_) -> Future:
    """Save a copy of the state in another thread; returns a `concurrent.futures.Future` of `save`'s result."""
    copy: dict = {}
    for keys, value in flattened(_states(state_dict)).values():
        _put(copy, keys, value.detach().clone() if isinstance(value, Tensor) else value)
    executor = ThreadPoolExecutor(1)
    future = executor.submit(save, copy, checkpoint_id=checkpoint_id, storage_writer=storage_writer, planner=planner)
    executor.shutdown(wait=False)
    return future


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Load into a nested dictionary, in place, what `save` has stored under the same names.

    Raises CheckpointException if a name is missing or a tensor has another shape; then nothing is changed.
    """
    reader = _storage("reader", storage_reader, checkpoint_id, FileSystemReader)
    planner = planner or DefaultLoadPlanner()
    states = _states(state_dict)
    _failing_as_checkpoint(_load_into, states, reader, planner)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]
    if not state_dict:
        state_dict.update(states)


def _load_into(states, reader, planner):
    metadata = reader.read_metadata()
    if isinstance(planner, _EmptyStateDictLoadPlanner):
        chosen = [name for name, keys in metadata.planner_data.items() if not planner.keys or keys[0] in planner.keys]
        for name, value in reader.read(chosen).items():
            _put(states, metadata.planner_data[name], value)
        return
    pieces = planner.pieces(states)
    stored = metadata.state_dict_metadata
    if planner.allow_partial_load:
        pieces = {name: piece for name, piece in pieces.items() if name in stored}
    for name, (_, value) in pieces.items():
        if name not in stored:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        if isinstance(value, Tensor) and stored[name] != tuple(value.shape):
            raise ValueError(f"Size mismatch between saved {stored[name]} and current: {tuple(value.shape)} for {name}")
    values = reader.read(list(pieces))
    with cygrad.no_grad():
        for name, (keys, value) in pieces.items():
            if isinstance(value, Tensor):
                value.detach().copy_(values[name])
            else:
                _put(states, keys, values[name])


def _load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """`load` by an older name."""
    load(state_dict, storage_reader=storage_reader, planner=planner)


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """`load` by an older name."""
    load(state_dict, storage_reader=storage_reader, planner=planner)


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """`save` by an older name."""
    return save(state_dict, storage_writer=storage_writer, planner=planner)


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """Return {optimizer_key: the optimizer's state} from a checkpoint."""
    states: dict = {}
    load(states, storage_reader=storage_reader, planner=_EmptyStateDictLoadPlanner({optimizer_key}))
    return states


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write a checkpoint's whole state to one file, as `torch.save` does."""
    states: dict = {}
    load(states, checkpoint_id=dcp_checkpoint_dir, planner=_EmptyStateDictLoadPlanner())
    save_file(states, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Write what is in a file of `torch.save` to a checkpoint."""
    save(load_file(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir)
