"""Saves and loads objects in PyTorch's files, and in safetensors files.

`save` writes PyTorch's zip format, and safetensors where the path ends so (_tree.py describes how these hold more than
a dictionary of tensors). `load` reads both, and PyTorch's older format. Unless `weights_only=False` is passed, nothing
in a file is executed.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import sys
from typing import Any

from cygrad.serialization import _legacy, _safetensors, _tree
from cygrad.serialization._archive_files import _is_zipfile as _is_zipfile
from cygrad.serialization._archive_files import _open_zipfile_reader as _open_zipfile_reader
from cygrad.serialization._archive_files import _open_zipfile_writer as _open_zipfile_writer
from cygrad.serialization._files import MAPPED_FILES_CAN_BE_REPLACED, map_file, replacing
from cygrad.serialization._locations import (
    MAP_LOCATION,
    STORAGE,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
)
from cygrad.serialization._options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
    skips_data,
)
from cygrad.serialization._pickler import StoredMemory, pickled
from cygrad.serialization._rebuilding import StorageType
from cygrad.serialization._rebuilding import _get_layout as _get_layout
from cygrad.serialization._safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from cygrad.serialization._storages import read_archive
from cygrad.serialization._trusting import trusting_unpickler
from cygrad.serialization._unpickler import unpickle, unsafe_globals_of
from cygrad.serialization._versions import SourceChangeWarning, check_module_version_greater_or_equal
from cygrad.serialization._zip_reader import PyTorchFileReader
from cygrad.serialization._zip_writer import PyTorchFileWriter, root_of
from cygrad.utils.warning import warn

__all__ = [
    "DEFAULT_PROTOCOL",
    "LoadEndianness",
    "MAP_LOCATION",
    "STORAGE",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to `f`, a path or a file open for writing, in PyTorch's zip format, which PyTorch reads too.

    `obj` is anything that can be pickled: tensors, state dicts, whole modules and optimizers, and what else Python can
    pickle. Classes that PyTorch has are written by PyTorch's names. Tensors that share memory still do so when loaded,
    and the memory is written once; of a view, the memory of its base is written. History and `grad` are not.

    To a path that ends with `.safetensors` it writes a safetensors file instead, which holds tensors, numbers, strings,
    bytes, None, dtypes, devices, `Size`, and dicts, lists, tuples and sets of them; tensors that share memory are
    written separately.

    Files are replaced atomically, after everything has been written and flushed to disk: if the program is killed or
    the disk is full, the old file remains intact. `pickle_module` may be another one, such as cloudpickle, which writes
    cygrad's names. `_use_new_zipfile_serialization=False` writes the format before PyTorch 1.6.

    Raises `pickle.PicklingError` and others of the pickle module for what cannot be pickled, TypeError for what a
    safetensors file cannot hold, RuntimeError for a missing directory, and for tensors of different dtypes that share
    memory, OSError naming the file if it cannot be written.

    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.save({"weight": cygrad.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> cygrad.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    write: Any
    if is_path and os.fspath(f).endswith(".safetensors"):
        arrays, metadata = _tree.take_apart(obj)
        write = lambda file: _safetensors.write(file, arrays, metadata)  # noqa: E731
    elif _use_new_zipfile_serialization:
        program, storages = pickled(obj, pickle_module or pickle, pickle_protocol)
        root = root_of(f) if is_path else root_of(None)
        write = lambda file: _write_zip(file, root, program, storages, not _disable_byteorder_record)  # noqa: E731
    else:
        if skips_data():
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        program, storages = pickled(obj, pickle_module or pickle, pickle_protocol, is_legacy=True)
        write = lambda file: _legacy.write(file, program, storages, pickle_protocol)  # noqa: E731
    if is_path:
        with replacing(os.fspath(f)) as file:
            write(file)
    else:
        write(f)
        if hasattr(f, "flush"):  # what opens the file by its name finds it complete
            f.flush()


def _write_zip(file: Any, root: str, program: bytes, storages: list[StoredMemory], names_order: bool) -> None:
    writer = PyTorchFileWriter(file, get_crc32_options())
    writer.root = root
    writer.write_record("data.pkl", program)
    writer.write_record(".format_version", "1")
    writer.write_record(".storage_alignment", "64")
    if names_order:
        writer.write_record("byteorder", sys.byteorder)
    for storage in storages:
        if skips_data():
            writer.write_record_metadata(f"data/{storage.key}", storage.nbytes)
        else:
            writer.write_record(f"data/{storage.key}", storage.content())
    writer.write_end_of_file()


def load(
    f: Any,
    map_location: MAP_LOCATION = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load the object in `f`, a path or a seekable file that `save`, PyTorch's or a safetensors library wrote.

    With `weights_only=True`, the default, nothing in the file is executed: it may hold tensors, parameters, numbers,
    strings, dtypes, devices and plain containers, and instances of the classes in `add_safe_globals`. With
    `weights_only=False` it may hold any object, and **can run any code**: do that only with files that you trust.
    PyTorch's names of classes give cygrad's.

    Tensors that were on a GPU return to it. `map_location` sends them elsewhere: a device or its name for all, a dict
    from old locations (`"cpu"`, `"cuda:0"`) to new ones, or a function of a storage and its location that returns
    `storage`, `storage.cpu()`, `storage.cuda(1)` or None, which keeps the old location. `"meta"` gives tensors of the
    same shapes without memory.

    With `mmap=True`, `f` is a path, and tensors use the memory of the file, which is only read on use; in-place changes
    are copy-on-write, so that the file stays as it is (`serialization.set_default_mmap_options`). This is the default
    for safetensors files, except on Windows, where nobody could replace the file while a tensor uses it.
    `pickle_module` and `pickle_load_args` are for `weights_only=False`, except `encoding`, that of strings of Python 2.

    The environment variables `TORCH_FORCE_WEIGHTS_ONLY_LOAD` and `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` overrule
    `weights_only`, the latter only where it is not passed.

    Raises RuntimeError for a damaged file and for a missing device, `pickle.UnpicklingError` for content that is not
    allowed, EOFError for an empty file.

    >>> import cygrad, os, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "model.pt")
    ...     cygrad.save(cygrad.nn.Linear(2, 1).state_dict(), path)
    ...     list(cygrad.load(path))
    ['weight', 'bias']
    """
    if _is_restricted(weights_only, pickle_module):
        if pickle_module is not None:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        if pickle_load_args:
            warn("pickle_load_args only works if `weights_only=False`.")
        run: Any = functools.partial(unpickle, encoding=pickle_load_args.get("encoding", "utf-8"))
    else:
        run = trusting_unpickler(pickle_module or pickle, pickle_load_args)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load_from(file, os.fspath(f), map_location, mmap, run)
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {name!r}. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    return _load_from(f, None, map_location, mmap, run)


def _is_restricted(weights_only: bool | None, pickle_module: Any) -> bool:
    """Whether only weights may be loaded, given the arguments of `load` and the environment."""
    forced, forced_not = (
        os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if forced and forced_not:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if forced:
        return True
    if weights_only is None and forced_not:
        warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False."
        )
        return False
    return pickle_module is None if weights_only is None else bool(weights_only)


def _load_from(file: Any, path: Any, map_location: Any, mmap: bool | None, run: Any) -> Any:
    start = file.tell()
    head = file.read(len(_legacy.MAGIC))
    file.seek(start)
    called = f"the file {path!r}" if path is not None else "this file"
    if not head:
        raise EOFError(f"Ran out of input\n  {called} is empty")
    if head.startswith(b"PK"):
        content = file.read() if path is None else map_file(file, bool(mmap), path)
        return read_archive(content, called, map_location, bool(mmap), run)
    if head[8:9] == b"{":
        is_mapped = path is not None and (MAPPED_FILES_CAN_BE_REPLACED if mmap is None else mmap)
        arrays, metadata = _safetensors.read(file, called, is_mapped, whole=path is not None)
        return _tree.put_together(arrays, metadata, called, map_location)
    if _legacy.begins(head):
        if mmap:
            raise RuntimeError(
                f"mmap can only be used with files saved with `torch.save({path}, "
                "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this option in order to "
                "use mmap."
            )
        return _legacy.read(file, called, map_location, run)
    raise pickle.UnpicklingError(
        f"{called} is neither a safetensors file nor a zip file of PyTorch\n  it begins with {head!r}"
    )


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names of classes and functions that a zip file uses and `load` does not allow.

    `f` is a path or a file. The file is not loaded, and nothing in it is executed. Raises ValueError if it is not a zip
    file of `save`.

    >>> import cygrad, datetime, io
    >>> file = io.BytesIO()
    >>> cygrad.save(datetime.timedelta(1), file)
    >>> _ = file.seek(0)
    >>> cygrad.serialization.get_unsafe_globals_in_checkpoint(file)
    ['datetime.timedelta']
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(io.BytesIO(file.read()))
    if not _is_zipfile(f):
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    reader = PyTorchFileReader(f)
    if reader.has_record("constants.pkl"):
        raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
    return unsafe_globals_of(reader.get_record("data.pkl"))
