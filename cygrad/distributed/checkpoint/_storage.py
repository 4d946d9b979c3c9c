"""The files of a checkpoint.

A checkpoint is a directory. Process r writes its tensors to `<r>-<token>.safetensors`, and what is not a tensor to
`<r>-<token>.values`, where the token is new for each call of `save`. Last, process 0 writes `index.json`, which lists
the pieces of all tensors with their files, in place of an older one, by an atomic replacement: a directory therefore
always holds a whole checkpoint, the one before or the new one, even if processes are killed meanwhile. Files that the
index does not name are removed by the next complete `save`.
"""

import json
import os

from cygrad.distributed.checkpoint._planning import Metadata, Place
from cygrad.serialization import load as load_file
from cygrad.serialization import save as save_file

__all__ = [
    "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "StorageReader",
    "StorageWriter", "consolidate_safetensors_files",
]  # fmt: skip

INDEX = "index.json"
_TENSORS, _VALUES = ".safetensors", ".values"


def _as_json(keys):
    """Keys as JSON keeps them apart: places in lists are lists themselves. Raises TypeError for others than numbers."""
    for key in keys:
        if not isinstance(key, (str, int)):
            raise TypeError(f"a checkpoint has keys that are strings or numbers, not {key!r}")
    return [[int(key)] if isinstance(key, Place) else key for key in keys]


def _from_json(keys):
    return tuple(Place(key[0]) if isinstance(key, list) else key for key in keys)


class StorageWriter:
    """Writes a checkpoint; override all three methods. Errors are reported in all processes.

    >>> import cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> class InMemory(dcp.StorageWriter):
    ...     def prepare(self):
    ...         self.parts = {}
    ...     def write_part(self, rank, token, tensors, values):
    ...         self.parts[rank] = {**tensors, **values}
    ...         return dict.fromkeys(self.parts[rank], f"part {rank}")
    ...     def finish(self, metadata, token):
    ...         print("saved", sorted(self.parts[0]))
    >>> metadata = dcp.save({"x": cygrad.ones(2), "step": 3}, storage_writer=InMemory())
    saved ['step', 'x']
    """

    def prepare(self):
        """Called in process 0 before anything is written."""

    def write_part(self, rank, token, tensors, values):
        """Write {dotted name: tensor} and {dotted name: other value}; returns {dotted name: file}."""
        raise NotImplementedError(f"{type(self).__name__} has no write_part()")

    def finish(self, metadata, token):
        """Called in process 0 once all parts are written: from now on the checkpoint is there."""
        raise NotImplementedError(f"{type(self).__name__} has no finish()")


class StorageReader:
    """Reads a checkpoint; override `read_metadata` and `read`.

    >>> import cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> class InMemory(dcp.StorageReader):
    ...     saved = {"x": cygrad.ones(2)}
    ...     def read_metadata(self):
    ...         return dcp.Metadata(dict.fromkeys(self.saved))
    ...     def read(self, names):
    ...         return {name: self.saved[name] for name in names}
    ...     def read_regions(self, regions):
    ...         return {name: self.saved[name].narrow(dim, i, j - i) for name, (dim, i, j) in regions.items()}
    >>> InMemory().read_regions({"x": (0, 0, 1)})
    {'x': tensor([1.])}
    """

    def read_metadata(self):
        """Return what there is, a `Metadata`."""
        raise NotImplementedError(f"{type(self).__name__} has no read_metadata()")

    def read(self, names):
        """Return {dotted name: whole value} for these names."""
        raise NotImplementedError(f"{type(self).__name__} has no read()")

    def read_regions(self, regions):
        """Return {dotted name: tensor} for {dotted name: (dimension, first index, the one behind the last)}."""
        whole = self.read(list(regions))
        return {name: whole[name].narrow(dim, first, last - first) for name, (dim, first, last) in regions.items()}


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint to a directory that all processes see, which is made if it is not there.

    `save` calls `prepare`, `write_part` and `finish`.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> writer = dcp.FileSystemWriter(folder.name, overwrite=False)
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, storage_writer=writer)
    >>> writer.prepare()
    Traceback (most recent call last):
        ...
    RuntimeError: Checkpoint already exists and overwrite=False: ...
    >>> folder.cleanup()
    """

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, overwrite=True, **_):
        self.path, self.sync_files, self.overwrite = os.fspath(path), sync_files, overwrite

    def prepare(self):
        """Make the directory. Raises RuntimeError if it holds a checkpoint that must not be replaced."""
        os.makedirs(self.path, exist_ok=True)
        if not self.overwrite and os.path.exists(os.path.join(self.path, INDEX)):
            raise RuntimeError(f"Checkpoint already exists and overwrite=False: {self.path}")

    def write_part(self, rank, token, tensors, values):
        """Write the tensors and values of one process."""
        where = {}
        for things, ending in ((tensors, _TENSORS), (values, _VALUES)):
            if things:
                name = f"{rank}-{token}{ending}"
                save_file(things, os.path.join(self.path, name))  # flushed to disk, and replaced at once
                where.update(dict.fromkeys(things, name))
        return where

    def finish(self, metadata, token):
        """Write the index, and remove files of older checkpoints."""
        index = {
            "format": 1,
            "token": token,
            "names": {
                name: {
                    "shape": shape,
                    "keys": _as_json(metadata.planner_data[name]),
                    "pieces": metadata.storage_data[name],
                }
                for name, shape in metadata.state_dict_metadata.items()
            },
        }
        target = os.path.join(self.path, INDEX)
        with open(f"{target}.part", "w", encoding="utf-8") as file:
            json.dump(index, file)
            file.flush()
            if self.sync_files:
                os.fsync(file.fileno())
        os.replace(f"{target}.part", target)
        if self.sync_files and hasattr(os, "O_DIRECTORY"):
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        kept = {piece["file"] for pieces in metadata.storage_data.values() for piece in pieces}
        for name in os.listdir(self.path):
            if name.endswith((_TENSORS, _VALUES)) and name not in kept and name.split("-")[0].isdigit():
                os.remove(os.path.join(self.path, name))


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a directory: of each file only what is asked for.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"x": cygrad.arange(4)}, checkpoint_id=folder.name)
    >>> reader = dcp.FileSystemReader(folder.name)
    >>> list(reader.read_metadata().state_dict_metadata)
    ['x']
    >>> reader.read(["x"]), reader.read_regions({"x": (0, 1, 3)})
    ({'x': tensor([0, 1, 2, 3])}, {'x': tensor([1, 2])})
    >>> folder.cleanup()
    """

    def __init__(self, path, **_):
        self.path = os.fspath(path)
        self._metadata = None
        self._files: dict = {}

    def read_metadata(self):
        """Return what there is, a `Metadata`. Raises RuntimeError for a directory without a whole checkpoint."""
        target = os.path.join(self.path, INDEX)
        if not os.path.exists(target):
            raise RuntimeError(f"there is no checkpoint in {self.path}: {INDEX}, which is written last, is missing")
        with open(target, encoding="utf-8") as file:
            names = json.load(file)["names"]
        self._metadata = Metadata(
            {name: None if each["shape"] is None else tuple(each["shape"]) for name, each in names.items()},
            {name: _from_json(each["keys"]) for name, each in names.items()},
            {name: each["pieces"] for name, each in names.items()},
        )
        return self._metadata

    def _file(self, name):
        if name not in self._files:
            path = os.path.join(self.path, name)
            self._files[name] = load_file(path) if name.endswith(_TENSORS) else load_file(path, weights_only=False)
        return self._files[name]

    def read(self, names):
        """Return {dotted name: whole value} for these names."""
        metadata = self._metadata or self.read_metadata()
        found = {}
        for name in names:
            pieces, shape = metadata.storage_data[name], metadata.state_dict_metadata[name]
            first = self._file(pieces[0]["file"])[name]
            found[name] = first if len(pieces) == 1 else self._joined(name, pieces, [0] * len(shape), shape)
        return found

    def read_regions(self, regions):
        """Return {dotted name: tensor} of parts along a dimension."""
        metadata = self._metadata or self.read_metadata()
        found = {}
        for name, (dim, first, last) in regions.items():
            begin, shape = [0] * len(metadata.state_dict_metadata[name]), list(metadata.state_dict_metadata[name])
            begin[dim], shape[dim] = first, last - first
            found[name] = self._joined(name, metadata.storage_data[name], begin, shape)
        return found

    def _joined(self, name, pieces, begin, shape):
        """The box of this shape that begins there in the whole tensor, from all pieces that overlap it."""
        like = self._file(pieces[0]["file"])[name]
        target = like.new_empty(tuple(shape))
        for piece in pieces:
            low = [max(a, b) for a, b in zip(begin, piece["offset"])]
            high = [min(a + n, b + m) for a, n, b, m in zip(begin, shape, piece["offset"], piece["shape"])]
            if all(a < b for a, b in zip(low, high)):
                source = self._file(piece["file"])[name]
                there = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, piece["offset"]))
                here = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, begin))
                target[here] = source[there]
        return target


class HuggingFaceStorageWriter(StorageWriter):
    """Writes the tensors of a checkpoint to `model.safetensors` in a directory. They must be whole.

    `save` calls `prepare`, `write_part` and `finish`.

    >>> import cygrad
    >>> import os, tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, storage_writer=dcp.HuggingFaceStorageWriter(folder.name))
    >>> sorted(name for name in os.listdir(folder.name) if name.endswith("safetensors"))
    ['model.safetensors']
    >>> folder.cleanup()
    """

    def __init__(self, path, fqn_to_index_mapping=None, **_):
        self.path = os.fspath(path)

    def prepare(self):
        """Make the directory."""
        os.makedirs(self.path, exist_ok=True)

    def _name(self, rank):
        return "model.safetensors" if rank == 0 else f"model-{rank:05}.safetensors"

    def write_part(self, rank, token, tensors, values):
        """Write {dotted name: tensor}."""
        if tensors:
            save_file(tensors, os.path.join(self.path, self._name(rank)))
        return dict.fromkeys([*tensors, *values], self._name(rank))

    def finish(self, metadata, token):
        """Check that no tensor is in pieces, and list the files if there are several."""
        split = [name for name, pieces in metadata.storage_data.items() if len(pieces) > 1]
        if split:
            raise RuntimeError(
                f"{split[0]} is spread over processes\n  to fix it: save what `get_model_state_dict` gives with "
                "`StateDictOptions(full_state_dict=True)`"
            )
        files = {name: pieces[0]["file"] for name, pieces in metadata.storage_data.items()}
        if len(set(files.values())) > 1:
            with open(os.path.join(self.path, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
                json.dump({"metadata": {}, "weight_map": files}, file)


class HuggingFaceStorageReader(StorageReader):
    """Reads tensors from the `.safetensors` files of a directory.

    >>> import cygrad
    >>> import tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, storage_writer=dcp.HuggingFaceStorageWriter(folder.name))
    >>> reader = dcp.HuggingFaceStorageReader(folder.name)
    >>> reader.tensors(), reader.read(["x"]), list(reader.read_metadata().state_dict_metadata)
    ({'x': tensor([1., 1.])}, {'x': tensor([1., 1.])}, ['x'])
    >>> folder.cleanup()
    """

    def __init__(self, path, **_):
        self.path = os.fspath(path)

    def tensors(self):
        """{name: tensor} of all files."""
        found: dict = {}
        for name in sorted(os.listdir(self.path)):
            if name.endswith(".safetensors"):
                found.update(load_file(os.path.join(self.path, name)))
        return found

    def read_metadata(self):
        """Return the list of tensors, a `Metadata`."""
        tensors = self.tensors()
        return Metadata(
            {name: tuple(each.shape) for name, each in tensors.items()}, {name: (name,) for name in tensors}
        )

    def read(self, names):
        """Return {name: tensor} for these names."""
        tensors = self.tensors()
        return {name: tensors[name] for name in names}


def consolidate_safetensors_files(input_dir, output_dir=None, fqn_to_index_mapping=None, num_threads=1):
    """Write the tensors in the `.safetensors` files of a directory to one file.

    >>> import cygrad
    >>> import os, tempfile
    >>> import cygrad.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> parts, whole = os.path.join(folder.name, "parts"), os.path.join(folder.name, "whole")
    >>> metadata = dcp.save({"x": cygrad.ones(2)}, storage_writer=dcp.HuggingFaceStorageWriter(parts))
    >>> dcp.consolidate_safetensors_files(parts, whole)
    >>> os.listdir(whole)
    ['model.safetensors']
    >>> folder.cleanup()
    """
    tensors = HuggingFaceStorageReader(input_dir).tensors()
    writer = HuggingFaceStorageWriter(output_dir or input_dir)
    writer.prepare()
    writer.write_part(0, "", tensors, {})
