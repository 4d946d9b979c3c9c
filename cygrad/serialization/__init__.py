"""Saves and loads checkpoints, including PyTorch's files. Nothing in a file is ever executed.

`save` writes safetensors, a widely supported format; _tree.py describes how it stores more than a dictionary of
tensors. `load` reads safetensors and the zip files that PyTorch writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad.serialization import _safetensors, _tree
from cygrad.serialization._files import map_file, replacing

__all__ = ["load", "save"]

_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # magic number of PyTorch files before version 1.6


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: Any = None) -> None:
    """Write a state dict or checkpoint to `f`, a path or a file open for writing, in safetensors format.

    `obj` is a tensor, number, string, bytes, None, dtype, device or `Size`, or dicts (OrderedDicts, Counters), lists,
    tuples and sets of them. A dict of tensors by name becomes a plain file, which the safetensors package and others
    can read as well. In other objects the tensors are named by their position (`model.0.weight`), and the rest of the
    structure is stored alongside them. Tensors that share memory are written separately and share none when loaded.

    Files are replaced atomically, after everything has been written and flushed to disk: if the program is killed or
    the disk is full, the old file remains intact. `pickle_module` and `pickle_protocol` are ignored: nothing is
    pickled.

    Raises TypeError for other objects, and for complex128, which the format lacks (save `view_as_real(x)`),
    RuntimeError for a missing directory, OSError naming the file if it cannot be written.

    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.save({"weight": cygrad.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> cygrad.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    arrays, metadata = _tree.take_apart(obj)
    if isinstance(f, (str, os.PathLike)):
        with replacing(os.fspath(f)) as file:
            _safetensors.write(file, arrays, metadata)
    elif hasattr(f, "write"):
        _safetensors.write(f, arrays, metadata)
    else:
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def load(
    f: Any,
    map_location: Callable[..., Any] | cygrad.device | str | dict[str, str] | None = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load the object in `f`, a path or a seekable file: a safetensors file, or a zip file written by `torch.save`.

    The tensors of a safetensors file given by its path are memory-mapped and only read on use. In-place changes are
    copy-on-write, so that the file stays as it is. With `mmap=False` they are read immediately. PyTorch's files are
    read immediately, unless `mmap=True`.

    Tensors that were on a GPU return to it. `map_location` sends them elsewhere: a device or its name for all, a dict
    from old locations (`"cpu"`, `"cuda:0"`) to new ones, or a function of a storage and its location that returns
    `storage`, `storage.cpu()`, `storage.cuda(1)` or None, which keeps the old location.
    Only tensors, numbers, strings and plain containers of them are loaded, regardless of `weights_only`: classes named
    in a file are never imported, and nothing is executed. `pickle_module` and other arguments are ignored.

    Raises RuntimeError for a damaged file and for a missing device, `pickle.UnpicklingError` for unsupported content,
    EOFError for an empty file.

    >>> import cygrad, os, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "model.safetensors")
    ...     cygrad.save(cygrad.nn.Linear(2, 1).state_dict(), path)
    ...     list(cygrad.load(path))
    ['weight', 'bias']
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load_from(file, os.fspath(f), map_location, mmap)
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {name!r}. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    return _load_from(f, None, map_location, mmap)


def _load_from(file: Any, path: Any, map_location: Any, mmap: bool | None) -> Any:
    start = file.tell()
    head = file.read(len(_LEGACY))
    file.seek(start)
    called = f"the file {path!r}" if path is not None else "this file"
    if not head:
        raise EOFError(f"Ran out of input\n  {called} is empty")
    if head.startswith(b"PK"):
        from cygrad.serialization._archive import read_archive  # needed only for archives

        content = file.read() if path is None else map_file(file, bool(mmap))
        return read_archive(content, called, map_location, bool(mmap))
    if head[8:9] == b"{":
        is_mapped = path is not None and mmap is not False
        arrays, metadata = _safetensors.read(file, called, is_mapped, whole=path is not None)
        return _tree.put_together(arrays, metadata, called, map_location)
    raise RuntimeError(
        f"{called} is neither a safetensors file nor a zip file of PyTorch\n"
        + (
            "  it is in PyTorch's format before version 1.6: load it with PyTorch, and save it again"
            if head == _LEGACY
            else f"  it begins with {head!r}"
        )
    )
