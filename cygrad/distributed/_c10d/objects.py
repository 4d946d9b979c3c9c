"""Collectives of objects, which are pickled; large arrays in them travel as they are, without a copy in the pickle."""

import pickle

import numpy as np

from cygrad.distributed._c10d.arguments import member, partner, root_of
from cygrad.distributed._c10d.membership import _get_group

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip

_ALIGNMENT = 64
_TAG = 30001  # of the messages of `send_object_list`


def all_gather_object(object_list, obj, group=None):
    """Gather the object of each process into `object_list`, in all processes.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> results = [None] * dist.get_world_size()
    >>> dist.all_gather_object(results, {"loss": 0.5})
    >>> results
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    group = member(group, "all_gather_object")
    if group is None:
        return
    _check_length(group, object_list, "object_list")
    for index, packed in enumerate(_gathered(group, _pack(obj), None)):
        object_list[index] = _unpack(packed)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Gather the object of each process into `object_gather_list` of process `dst` (0 by default).

    Objects travel as pickles. The list has a place for each process in process `dst`, and is None in the others.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = [None] * dist.get_world_size()
    >>> dist.gather_object({"loss": 0.5}, found if dist.get_rank() == 0 else None, dst=0)
    >>> found
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    group = member(group, "gather_object")
    if group is None:
        return
    root = 0 if dst is None and group_dst is None else root_of(group, dst, group_dst)
    group._check_root("gather", root)
    is_root = group.rank() == root
    if is_root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not is_root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if is_root:
        _check_length(group, object_gather_list, "object_gather_list")
    for index, packed in enumerate(_gathered(group, _pack(obj), root)):
        object_gather_list[index] = _unpack(packed)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Send the objects in the list of process `src` to all, which receive them in theirs, of the same length.

    Objects travel as pickles, of which unpickling runs code: only between processes that trust each other.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> objects = ["text", {"lr": 0.1}] if dist.get_rank() == 0 else [None, None]
    >>> dist.broadcast_object_list(objects, src=0)
    >>> objects
    ['text', {'lr': 0.1}]
    >>> dist.destroy_process_group()
    """
    group = member(group, "broadcast_object_list")
    if group is None:
        return
    root = 0 if src is None and group_src is None else root_of(group, src, group_src)
    group._check_root("broadcast", root)
    is_root = group.rank() == root
    packed, places = (_pack(list(object_list)), 0) if is_root else (None, len(object_list))
    received = _unpack(_broadcast(group, packed, root))
    if is_root:
        return
    if len(received) != places:
        raise RuntimeError(
            f"broadcast_object_list: rank {group._ranks[root]} has sent {len(received)} objects, and the list of this "
            f"process has {places}"
        )
    object_list[:] = received


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """Send each process its object of the list of process `src` (0 by default), as the first of its output list.

    Objects travel as pickles. The input has an object for each process, and matters in process `src` alone.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = [None]
    >>> dist.scatter_object_list(found, ["for rank 0"] if dist.get_rank() == 0 else None, src=0)
    >>> found
    ['for rank 0']
    >>> dist.destroy_process_group()
    """
    group = member(group, "scatter_object_list")
    if group is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = 0 if src is None and group_src is None else root_of(group, src, group_src)
    group._check_root("scatter", root)
    size = group.size()
    sizes, data = [0] * size, np.empty(0, np.uint8)
    if group.rank() == root:
        if not scatter_object_input_list:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        group._check_length("scatter", "input", scatter_object_input_list)
        parts = [_pack(each) for each in scatter_object_input_list]
        sizes, data = [len(part) for part in parts], np.concatenate(parts)
    length = np.zeros(1, np.int64)
    lengths = np.array(sizes, np.int64).view(np.uint8) if group.rank() == root else None
    group._bytes("scatter_object_list", lambda engine: engine.scatter(length.view(np.uint8), lengths, root))
    output = np.empty(length[0], np.uint8)
    incoming = [len(output) if rank == root else 0 for rank in range(size)]
    group._bytes("scatter_object_list", lambda engine: engine.all_to_all(output, data, incoming, sizes))
    scatter_object_output_list[0] = _unpack(output)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send objects to process `dst`, which calls `recv_object_list`.

    Raises ValueError if `dst` is this process.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> if dist.get_world_size() > 1 and dist.get_rank() == 0:
    ...     dist.send_object_list(["text", {"lr": 0.1}], dst=1)
    >>> dist.send_object_list(["text"], dst=dist.get_rank())
    Traceback (most recent call last):
        ...
    ValueError: Invalid destination rank: destination rank should not be the same as the rank of the current process.
    >>> dist.destroy_process_group()
    """
    group = member(group, "send_object_list")
    if group is None:
        return
    peer = partner(group, dst, group_dst, "destination")
    group._check_peer("send", peer)
    packed = _pack(list(object_list))
    length = np.array([len(packed)], np.int64).view(np.uint8)
    for part in (length, packed):
        group._bytes(f"send_object_list to rank {peer}", lambda engine, part=part: engine.send(part, peer, _TAG))


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive objects from process `src`, by default any, into the list; returns its rank among all processes.

    Raises ValueError if `src` is this process.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> if dist.get_world_size() > 1 and dist.get_rank() == 1:
    ...     objects = [None, None]
    ...     dist.recv_object_list(objects, src=0)
    >>> dist.recv_object_list([None], src=dist.get_rank())
    Traceback (most recent call last):
        ...
    ValueError: Invalid source rank: source rank should not be the same as the rank of the current process.
    >>> dist.destroy_process_group()
    """
    group = member(group, "recv_object_list")
    if group is None:
        return -1
    peer = None if src is None and group_src is None else partner(group, src, group_src, "source")
    if peer is not None:
        group._check_peer("recv", peer)
    length = np.zeros(1, np.int64)
    work = group._bytes("recv_object_list", lambda engine: engine.recv(length.view(np.uint8), peer, _TAG))
    source = work.source_rank()
    packed = np.empty(length[0], np.uint8)
    group._bytes("recv_object_list", lambda engine: engine.recv(packed, source, _TAG))
    received = _unpack(packed)
    if len(received) != len(object_list):
        raise RuntimeError(
            f"recv_object_list: {len(received)} objects have come, and the list of this process has {len(object_list)}"
        )
    object_list[:] = received
    return _get_group(group)._ranks[source]


def _check_length(group, objects, name):
    if len(objects) < group.size():
        raise IndexError(
            "list assignment index out of range\n"
            f"  {name} has {len(objects)} places for the objects of {group.size()} processes"
        )


# --- Objects as bytes, and bytes between processes -----------------------------------------------


def _pack(value):
    """An object as an array of bytes: the number of parts, their lengths, the pickle, and the buffers it refers to."""
    buffers: list = []
    parts = [pickle.dumps(value, protocol=5, buffer_callback=buffers.append)]
    parts += [buffer.raw() for buffer in buffers]
    head = np.array([len(parts), *(len(part) for part in parts)], np.int64).view(np.uint8)
    places = _places(len(head), [len(part) for part in parts])
    packed = np.zeros(places[-1] + len(parts[-1]), np.uint8)
    packed[: len(head)] = head
    for place, part in zip(places, parts):
        packed[place : place + len(part)] = np.frombuffer(part, np.uint8)
    return packed


def _unpack(packed):
    """The object; its arrays are views of the bytes."""
    count = int(packed[:8].view(np.int64)[0])
    lengths = packed[8 : 8 * (count + 1)].view(np.int64).tolist()
    places = _places(8 * (count + 1), lengths)
    pickled, *buffers = (packed[place : place + length].data for place, length in zip(places, lengths))
    return pickle.loads(pickled, buffers=buffers)


def _places(begin, lengths):
    """Where the parts begin, each at a multiple of the alignment."""
    places = []
    for length in lengths:
        places.append(-(-begin // _ALIGNMENT) * _ALIGNMENT)
        begin = places[-1] + length
    return places


def _gathered(group, packed, root):
    """The bytes of all processes, in all or in `root` only (elsewhere nothing), which are padded on their way."""
    size = group.size()
    length, lengths = np.array([len(packed)], np.int64), np.zeros(size, np.int64)
    group._bytes("gather_object", lambda engine: engine.all_gather(lengths.view(np.uint8), length.view(np.uint8)))
    longest = -(-int(lengths.max()) // _ALIGNMENT) * _ALIGNMENT
    padded = np.zeros(longest, np.uint8)
    padded[: len(packed)] = packed
    output = np.empty(size * longest, np.uint8) if root in (None, group.rank()) else None
    if root is None:
        group._bytes("all_gather_object", lambda engine: engine.all_gather(output, padded))
    else:
        group._bytes("gather_object", lambda engine: engine.gather(output, padded, root))
    if output is None:
        return []
    return [output[rank * longest : rank * longest + lengths[rank]] for rank in range(size)]


def _broadcast(group, packed, root):
    """The bytes of `root`."""
    length = np.array([0 if packed is None else len(packed)], np.int64)
    group._bytes("broadcast_object_list", lambda engine: engine.broadcast(length.view(np.uint8), root))
    if packed is None:
        packed = np.empty(length[0], np.uint8)
    group._bytes("broadcast_object_list", lambda engine: engine.broadcast(packed, root))
    return packed
