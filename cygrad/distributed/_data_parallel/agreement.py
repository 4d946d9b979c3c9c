"""Whether all processes have the same module, and sending the parameters and buffers of one to all."""

import hashlib
import pickle

import cygrad

__all__ = ["check_same", "send"]


def check_same(named_tensors, group):
    """Raise RuntimeError in all processes, naming the first difference, unless all have the same tensors.

    Names, shapes, dtypes and whether they require grad are compared, through a hash; the list travels only if hashes
    differ.
    """
    mine = [(name, tuple(t.shape), str(t.dtype), t.requires_grad) for name, t in named_tensors]
    digest = hashlib.sha256(pickle.dumps(mine)).digest()
    digests = _gathered(digest, group)
    if all(each == digest for each in digests):
        return
    lists = _gathered(mine, group)
    for rank, other in enumerate(lists):
        if other != lists[0]:
            raise RuntimeError(_difference(lists[0], other, rank, group.rank()))


def _gathered(value, group):
    found = [None] * group.size()
    cygrad.distributed.all_gather_object(found, value, group=group)
    return found


def _difference(first, other, rank, me):
    """Describe the first difference between what rank 0 and another rank have."""
    here = (
        f"DDP expects same model across all ranks, but Rank 0 has {len(first)} params, while rank {rank} has "
        f"inconsistent {len(other)} params."
    )
    for place, (a, b) in enumerate(zip(first, other)):
        if a == b:
            continue
        if len(first) == len(other) and a[1] != b[1]:
            here = (
                f"[{rank}]: params[{place}] in this process with sizes {list(b[1])} appears not to match sizes of the "
                "same param in process 0."
            )
        return f"{here}\n  the first difference is at {place}: rank 0 has {_words(a)}\n  rank {rank} has {_words(b)}"
    longer, who = (first, 0) if len(first) > len(other) else (other, rank)
    more = longer[min(len(first), len(other))]
    return f"{here}\n  only rank {who} has {_words(more)}"


def _words(entry):
    name, shape, dtype, requires_grad = entry
    return f"{name!r}: shape {list(shape)}, {dtype}, requires_grad={requires_grad}"


def _verify_params_across_processes(process_group, params, logger=None):
    """Raise RuntimeError in all processes unless their parameters have the same shapes and dtypes."""
    check_same([(str(place), parameter) for place, parameter in enumerate(params)], process_group)


def _broadcast_coalesced(process_group, tensors, buffer_size, src=0):
    """Send the tensors of process `src` to all, in messages of about `buffer_size` bytes."""
    send(tensors, process_group, src, buffer_size)


@cygrad.no_grad()
def send(tensors, group, root, cap=2**28):
    """Send the tensors of rank `root` of the group to all, in few messages: those of one dtype together."""
    kinds: dict = {}
    for tensor in tensors:
        if tensor.is_sparse or tensor.is_meta:
            continue
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach())
    for together in kinds.values():
        while together:
            part: list = []
            size = 0
            while together and (not part or size + together[0].nbytes <= cap):
                size += together[0].nbytes
                part.append(together.pop(0))
            _send_together(part, group, root)


def _send_together(tensors, group, root):
    if len(tensors) == 1:
        group.broadcast([tensors[0]], root).wait()
        return
    flat = cygrad.cat([tensor.reshape(-1) for tensor in tensors])
    group.broadcast([flat], root).wait()
    if group.rank() != root:
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
            tensor.copy_(part.view(tensor.shape))
