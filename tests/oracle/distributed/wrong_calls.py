"""wrong_calls.py LIBRARY FOLDER [RANK]: one of two ranks, which makes wrong calls and writes what it is told of each.

LIBRARY is "torch" (with gloo, and RANK) or "cygrad" (started by mpiexec). The answers are in FOLDER/LIBRARY-RANK.json:
{call: [type of the error, first line of its text]}, or [type of the result] if there was no error.
"""

import importlib
import json
import re
import sys
import warnings
from datetime import timedelta
from pathlib import Path

library, folder = sys.argv[1], Path(sys.argv[2])
torch = importlib.import_module(library)
dist = importlib.import_module(f"{library}.distributed")
functional = importlib.import_module(f"{library}.distributed.nn.functional")
warnings.simplefilter("ignore")
answers: dict[str, list[str]] = {}
SHORT = timedelta(milliseconds=50)


def ask(name, call):
    """Note what a call is answered."""
    assert name not in answers, name
    try:
        answers[name] = [type(call()).__name__]
    except Exception as error:
        line = (str(error).splitlines() or [""])[0].replace(library, "torch")
        line = re.sub(r"<[\w.]+ object at 0x[0-9a-f]+>", "<object>", line)
        line = re.sub(r"\[enforce fail at [^]]*\] ", "", line)  # gloo's own
        line = re.sub(r" \(expected (TensorOptions|torch).*", "", line)  # how dtypes are written
        line = re.sub(r"  This usually means .*", "", line)
        line = re.sub(r"for '\d+'", "for a group", line)
        line = re.sub(r"  +", " ", line)
        answers[name] = [type(error).__name__, line]


def without_a_group(when):
    """Calls before `init_process_group` and after `destroy_process_group`."""
    x = torch.ones(2)
    for name, call in {
        "all_reduce": lambda: dist.all_reduce(x),
        "reduce": lambda: dist.reduce(x, 0),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: dist.all_gather([x, x], x),
        "all_gather_single": lambda: dist.all_gather_single(torch.ones(4), x),
        "gather": lambda: dist.gather(x, [x, x]),
        "scatter": lambda: dist.scatter(x, [x, x]),
        "reduce_scatter": lambda: dist.reduce_scatter(x, [x, x]),
        "reduce_scatter_single": lambda: dist.reduce_scatter_single(x, torch.ones(4)),
        "all_to_all": lambda: dist.all_to_all([x, x], [x, x]),
        "all_to_all_single": lambda: dist.all_to_all_single(x, x),
        "send": lambda: dist.send(x, 1),
        "recv": lambda: dist.recv(x, 1),
        "isend": lambda: dist.isend(x, 1),
        "irecv": lambda: dist.irecv(x, 1),
        "P2POp": lambda: dist.P2POp(dist.isend, x, 1),
        "barrier": dist.barrier,
        "monitored_barrier": dist.monitored_barrier,
        "all_gather_object": lambda: dist.all_gather_object([None, None], 1),
        "gather_object": lambda: dist.gather_object(1, [None, None]),
        "broadcast_object_list": lambda: dist.broadcast_object_list([1], 0),
        "scatter_object_list": lambda: dist.scatter_object_list([None], [1, 2]),
        "send_object_list": lambda: dist.send_object_list([1], 1),
        "recv_object_list": lambda: dist.recv_object_list([1], 1),
        "new_group": dist.new_group,
        "new_subgroups": lambda: dist.new_subgroups(1),
        "split_group": lambda: dist.split_group(split_ranks=[[0]]),
        "destroy_process_group": dist.destroy_process_group,
        "get_rank": dist.get_rank,
        "get_world_size": dist.get_world_size,
        "get_backend": dist.get_backend,
        "get_backend_config": dist.get_backend_config,
        "get_process_group_ranks": lambda: dist.get_process_group_ranks(None),
        "get_pg_count": dist.get_pg_count,
        "functional.all_reduce": lambda: functional.all_reduce(x),
        "coalescing": lambda: dist._coalescing_manager().__enter__(),
    }.items():
        ask(f"{when}: {name}", call)


def making_groups():
    """Wrong calls of `init_process_group`, none of which may leave a group behind."""
    store = dist.HashStore()

    def init(*args, **kwargs):
        return lambda: dist.init_process_group(*args, **kwargs)

    ask("init: backend 3", init(3, store=store, rank=0, world_size=1))
    ask("init: unknown backend", init("carrier pigeon", store=store, rank=0, world_size=1))
    ask("init: pairs", init("cpu:gloo,cuda", store=store, rank=0, world_size=1))
    ask("init: store without rank", init("gloo", store=store, world_size=1))
    ask("init: store without size", init("gloo", store=store, rank=0))
    ask("init: store and method", init("gloo", "env://", store=store, rank=0, world_size=1))
    ask("init: timeout 3", init("gloo", store=store, rank=0, world_size=1, timeout=3))
    ask("init: rank too large", init("gloo", store=store, rank=1, world_size=1))
    ask("init: no such scheme", init("gloo", "pigeon://here", rank=0, world_size=1))
    ask("init: ucc", init("ucc", store=store, rank=0, world_size=1))
    ask("init: nothing left", dist.is_initialized)


def of_all(rank):
    """Wrong calls in the group of both processes."""
    x, y, long = torch.ones(2), torch.zeros(2), torch.ones(2, dtype=torch.int64)
    meta, z = torch.ones(2, device="meta"), torch.ones(2, dtype=torch.complex64)
    other, op = 1 - rank, dist.ReduceOp
    ask("init twice", lambda: dist.init_process_group("gloo"))

    for name, call in {
        "all_reduce": lambda t: dist.all_reduce(t),
        "reduce": lambda t: dist.reduce(t, 0),
        "broadcast": lambda t: dist.broadcast(t, 0),
        "all_gather": lambda t: dist.all_gather([x, x], t),
        "all_gather_single": lambda t: dist.all_gather_single(torch.ones(4), t),
        "reduce_scatter": lambda t: dist.reduce_scatter(t, [x, x]),
        "reduce_scatter_single": lambda t: dist.reduce_scatter_single(t, torch.ones(4)),
        "all_to_all": lambda t: dist.all_to_all([x, x], t),
        "all_to_all_single": lambda t: dist.all_to_all_single(x, t),
        "send": lambda t: dist.send(t, other),
        "recv": lambda t: dist.recv(t, other),
        "gather": lambda t: dist.gather(t, [x, x] if rank == 0 else None),
        "scatter": lambda t: dist.scatter(t, [x, x] if rank == 0 else None),
        "P2POp": lambda t: dist.P2POp(dist.isend, t, other),
    }.items():
        ask(f"{name} of a list", lambda: call([3]))
        ask(f"{name} of None", lambda: call(None))
        if name not in ("all_to_all", "P2POp"):
            ask(f"{name} on meta", lambda: call(meta))
    for kind in (op.MAX, op.MIN, op.PRODUCT, op.BAND):
        ask(f"all_reduce of complex by {kind}", lambda: dist.all_reduce(z, kind))
        if kind is not op.BAND:
            ask(f"all_reduce_coalesced of complex by {kind}", lambda: dist.all_reduce_coalesced([z], kind))
    for kind in (op.BAND, op.BOR, op.BXOR):
        ask(f"all_reduce of floats by {kind}", lambda: dist.all_reduce(x, kind))
    ask("all_reduce by a string", lambda: dist.all_reduce(x, "sum"))
    ask("reduce by a string", lambda: dist.reduce(x, 0, "sum"))
    ask("reduce_scatter by a string", lambda: dist.reduce_scatter(x, [x, x], "sum"))
    ask("ReduceOp of a string", lambda: op("sum"))
    ask("all_reduce_coalesced of dtypes", lambda: dist.all_reduce_coalesced([x, long]))
    ask("all_reduce_coalesced of numbers", lambda: dist.all_reduce_coalesced([3, 4]))
    ask("all_reduce_coalesced of nothing", lambda: dist.all_reduce_coalesced([]))
    ask("all_reduce_coalesced of a tuple", lambda: dist.all_reduce_coalesced((x, y)))

    ask("reduce to nobody", lambda: dist.reduce(x))
    ask("reduce to both", lambda: dist.reduce(x, 0, group_dst=0))
    ask("reduce to 2", lambda: dist.reduce(x, 2))
    ask("reduce to -1", lambda: dist.reduce(x, -1))
    ask("reduce to a string", lambda: dist.reduce(x, "0"))
    ask("broadcast from nobody", lambda: dist.broadcast(x))
    ask("broadcast from both", lambda: dist.broadcast(x, 0, group_src=0))
    ask("broadcast from 2", lambda: dist.broadcast(x, 2))
    ask("broadcast from -1", lambda: dist.broadcast(x, -1))
    ask("broadcast from 0.5", lambda: dist.broadcast(x, 0.5))
    ask("gather to 2", lambda: dist.gather(x, None, 2))
    ask("gather to -1", lambda: dist.gather(x, None, -1))
    ask("gather to both", lambda: dist.gather(x, None, 0, group_dst=0))
    ask("scatter from 2", lambda: dist.scatter(x, None, 2))
    ask("scatter from both", lambda: dist.scatter(x, None, 0, group_src=0))

    ask("all_gather into one", lambda: dist.all_gather([y], x))
    ask("all_gather into three", lambda: dist.all_gather([y, y, y], x))
    ask("all_gather into nothing", lambda: dist.all_gather([], x))
    ask("all_gather into a tensor", lambda: dist.all_gather(torch.ones(2, 2), x))
    ask("all_gather into a tuple", lambda: dist.all_gather((y, y), x))
    ask("all_gather into numbers", lambda: dist.all_gather([1, 2], x))
    ask("all_gather into another dtype", lambda: dist.all_gather([long, long], x))
    ask("all_gather into other sizes", lambda: dist.all_gather([torch.ones(3), torch.ones(3)], x))
    ask("all_gather into two sizes", lambda: dist.all_gather([torch.ones(2), torch.ones(3)], x))
    ask("all_gather_single of another dtype", lambda: dist.all_gather_single(torch.ones(4), long))
    ask("all_gather_single into too few", lambda: dist.all_gather_single(torch.ones(3), x))
    ask("all_gather_single into a list", lambda: dist.all_gather_single([y, y], x))
    ask("all_gather_coalesced into a tuple", lambda: dist.all_gather_coalesced(((y, y),), [x]))
    ask("all_gather_coalesced of dtypes", lambda: dist.all_gather_coalesced([[y, y], [long, long]], [x, long]))
    ask("all_gather_coalesced of a tensor", lambda: dist.all_gather_coalesced([[y, y]], x))
    ask("all_gather_coalesced into tensors", lambda: dist.all_gather_coalesced([y], [x]))
    ask("all_gather_coalesced into too few", lambda: dist.all_gather_coalesced([[y]], [x]))
    ask("gather without a list", lambda: dist.gather(x, dst=0) if rank == 0 else 1 / 0)
    ask("gather with a list elsewhere", lambda: dist.gather(x, [y, y], 0) if rank == 1 else 1 / 0)
    ask("gather into one", lambda: dist.gather(x, [y], 0) if rank == 0 else 1 / 0)
    ask("gather into another dtype", lambda: dist.gather(x, [long, long]))
    ask("gather into numbers", lambda: dist.gather(x, [1, 2]))
    ask("gather into other sizes", lambda: dist.gather(x, [torch.ones(3)] * 2, 0) if rank == 0 else 1 / 0)
    ask("scatter without a list", lambda: dist.scatter(x, src=0) if rank == 0 else 1 / 0)
    ask("scatter with a list elsewhere", lambda: dist.scatter(x, [y, y], 0) if rank == 1 else 1 / 0)
    ask("scatter of one", lambda: dist.scatter(x, [y], 0) if rank == 0 else 1 / 0)
    ask("scatter of another dtype", lambda: dist.scatter(x, [long, long]))
    ask("scatter of numbers", lambda: dist.scatter(x, [1, 2]))
    ask("scatter of other sizes", lambda: dist.scatter(x, [torch.ones(3)] * 2, 0) if rank == 0 else 1 / 0)
    ask("reduce_scatter of one", lambda: dist.reduce_scatter(x, [y]))
    ask("reduce_scatter of a tensor", lambda: dist.reduce_scatter(x, torch.ones(2, 2)))
    ask("reduce_scatter of another dtype", lambda: dist.reduce_scatter(x, [long, long]))
    ask("reduce_scatter of nothing", lambda: dist.reduce_scatter(x, []))
    ask("all_to_all of one", lambda: dist.all_to_all([y, y], [x]))
    ask("all_to_all into one", lambda: dist.all_to_all([y], [x, x]))
    ask("all_to_all of dtypes", lambda: dist.all_to_all([y, y], [long, long]))
    ask("all_to_all of tuples", lambda: dist.all_to_all((y, y), (x, x)))
    ask("all_to_all_single of dtypes", lambda: dist.all_to_all_single(y, long))
    ask("all_to_all_single of three", lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)))
    ask("all_to_all_single by one number", lambda: dist.all_to_all_single(y, x, [2], [2]))
    ask("all_to_all_single by a wrong sum", lambda: dist.all_to_all_single(y, x, [1, 2], [1, 1]))
    ask("all_to_all_single by strings", lambda: dist.all_to_all_single(y, x, ["1", "1"], [1, 1]))

    ask("send to itself", lambda: dist.send(x, rank))
    ask("send to nobody", lambda: dist.send(x))
    ask("send to both", lambda: dist.send(x, other, group_dst=other))
    ask("send with tag -1", lambda: dist.send(x, other, tag=-1))
    ask("send with tag 'a'", lambda: dist.send(x, other, tag="a"))
    ask("isend with tag -1", lambda: dist.isend(x, other, tag=-1))
    ask("recv from both", lambda: dist.recv(x, other, group_src=other))
    ask("recv with tag -1", lambda: dist.recv(x, other, tag=-1))
    ask("recv from anyone with tag -1", lambda: dist.recv(x, tag=-1))
    ask("P2POp of all_reduce", lambda: dist.P2POp(dist.all_reduce, x, other))
    ask("P2POp with nobody", lambda: dist.P2POp(dist.isend, x))
    ask("P2POp with both", lambda: dist.P2POp(dist.isend, x, other, group_peer=other))
    ask("batch of numbers", lambda: dist.batch_isend_irecv([1]))
    ask("batch of nothing", lambda: dist.batch_isend_irecv([]))
    ask("batch of a tuple", lambda: dist.batch_isend_irecv((dist.P2POp(dist.isend, x, other),)))

    ask("broadcast_object_list from both", lambda: dist.broadcast_object_list([1], 0, group_src=0))
    ask("broadcast_object_list from nobody of a number", lambda: dist.broadcast_object_list(3))
    ask("scatter_object_list into nothing", lambda: dist.scatter_object_list([], [1, 2]))
    ask("scatter_object_list into a number", lambda: dist.scatter_object_list(3, [1, 2]))
    ask("send_object_list to itself", lambda: dist.send_object_list([1], rank))
    ask("send_object_list to nobody", lambda: dist.send_object_list([1]))
    ask("broadcast of what cannot be pickled", lambda: dist.broadcast_object_list([lambda: 0], rank))
    ask("gather of what cannot be pickled", lambda: dist.all_gather_object([None, None], lambda: 0))
    ask("barrier with timeout", lambda: dist.barrier(device_ids=3))
    ask("monitored_barrier of 3", lambda: dist.monitored_barrier(timeout=3))


def of_groups(rank):
    """Wrong groups, and groups without this process."""
    x, other = torch.ones(2), 1 - rank
    ask("new_group of 2", lambda: dist.new_group([0, 2]))
    ask("new_group of -1", lambda: dist.new_group([-1]))
    ask("new_group of two equal ones", lambda: dist.new_group([0, 0]))
    ask("new_group of three", lambda: dist.new_group([0, 1, 2]))
    ask("new_group of a number", lambda: dist.new_group(1))
    ask("new_group with timeout 3", lambda: dist.new_group([0], timeout=3))
    ask("new_group with an unknown backend", lambda: dist.new_group([0], backend="carrier pigeon"))
    ask("new_subgroups of 0", lambda: dist.new_subgroups(0))
    ask("new_subgroups of 3", lambda: dist.new_subgroups(3))
    ask("new_subgroups of the default size", lambda: dist.new_subgroups())
    ask("subgroups of nothing", lambda: dist.new_subgroups_by_enumeration([]))
    ask("subgroups of None", lambda: dist.new_subgroups_by_enumeration(None))
    ask("subgroups that overlap", lambda: dist.new_subgroups_by_enumeration([[0], [0, 1]]))
    ask("split_group of nothing", lambda: dist.split_group(split_ranks=[]))
    ask("split_group", lambda: dist.split_group(split_ranks=[[0], [1]]))
    ask("shrink_group", lambda: dist.shrink_group([1]))
    first = dist.new_group([0])
    for name, call in {
        "all_reduce": lambda: dist.all_reduce(x, group=first),
        "broadcast": lambda: dist.broadcast(x, 0, group=first),
        "reduce": lambda: dist.reduce(x, 0, group=first),
        "all_gather": lambda: dist.all_gather([x], x, group=first),
        "gather": lambda: dist.gather(x, [x] if rank == 0 else None, group=first),
        "scatter": lambda: dist.scatter(x, [x] if rank == 0 else None, group=first),
        "reduce_scatter": lambda: dist.reduce_scatter(x, [x], group=first),
        "all_to_all": lambda: dist.all_to_all([x], [x], group=first),
        "isend": lambda: dist.isend(x, 1, group=first),
        "send": lambda: dist.send(x, 1, group=first),
        "recv": lambda: dist.recv(x, 1, group=first),
        "barrier": lambda: dist.barrier(first),
        "get_rank": lambda: [dist.get_rank(first)],
        "get_backend": lambda: str(dist.get_backend(first)),
        "get_process_group_ranks": lambda: dist.get_process_group_ranks(first),
        "get_group_rank": lambda: dist.get_group_rank(first, 1),
        "get_global_rank": lambda: dist.get_global_rank(first, 1),
        "all_gather_object": lambda: dist.all_gather_object([None], 1, group=first),
        "gather_object": lambda: dist.gather_object(1, [None] if rank == 0 else None, group=first),
        "broadcast_object_list": lambda: dist.broadcast_object_list([1], 0, group=first),
        "scatter_object_list": lambda: dist.scatter_object_list([None], [1], 0, group=first),
        "monitored_barrier": lambda: dist.monitored_barrier(first),
        "new_subgroups": lambda: dist.new_subgroups(2, first),
        "coalescing": lambda: dist._coalescing_manager(first).__enter__(),
    }.items():
        ask(f"{name} in the group of 0", call)
    for group in ("here", 3, [0, 1]):
        ask(f"all_reduce in group {group}", lambda: dist.all_reduce(x, group=group))
        ask(f"broadcast in group {group}", lambda: dist.broadcast(x, 0, group=group))
        ask(f"get_rank in group {group}", lambda: dist.get_rank(group))
        ask(f"get_world_size in group {group}", lambda: dist.get_world_size(group))
        ask(f"barrier in group {group}", lambda: dist.barrier(group))
        ask(f"destroy group {group}", lambda: dist.destroy_process_group(group))
    ask("destroy twice", lambda: [dist.destroy_process_group(first), dist.destroy_process_group(first)])
    ask("all_reduce in a destroyed group", lambda: dist.all_reduce(x, group=first) if rank == 0 else 1 / 0)
    ask("get_rank in a destroyed group", lambda: dist.get_rank(first))
    ask("backend of no device", lambda: dist.get_default_backend_for_device("abacus"))
    ask("is_backend_available of a number", lambda: dist.is_backend_available(3))
    ask("is_backend_available of pairs", lambda: [dist.is_backend_available("cpu:gloo")])
    ask("group of the other", lambda: dist.get_group_rank(dist.group.WORLD, other))


def of_stores():
    """Wrong calls of stores, in this process alone."""
    file = str(folder / f"wrong-{library}-{rank}")
    stores = {
        "HashStore": dist.HashStore(),
        "PrefixStore": dist.PrefixStore("prefix", dist.HashStore()),
        "TCPStore": dist.TCPStore("localhost", 0, 1, True),
    }
    for kind, store in stores.items():
        ask(f"{kind}: set 3", lambda: store.set("key", 3))
        ask(f"{kind}: set key 3", lambda: store.set(3, "value"))
        ask(f"{kind}: add a string", lambda: store.add("key", "one"))
        ask(f"{kind}: get 3", lambda: store.get(3))
        ask(f"{kind}: check a number", lambda: store.check(3))
        ask(f"{kind}: timeout 3", lambda: store.set_timeout(3))
        ask(f"{kind}: wait for a number", lambda: store.wait(3))
        ask(f"{kind}: wait for 3", lambda: store.wait(["key"], 3))
        ask(f"{kind}: append a number", lambda: store.append("word", 3))
        ask(f"{kind}: multi_get a number", lambda: store.multi_get(3))
        ask(f"{kind}: queue_push a number", lambda: store.queue_push("queue", 3))
        ask(f"{kind}: delete 3", lambda: store.delete_key(3))
        ask(f"{kind}: extended", lambda: [store.has_extended_api()])
        store.set_timeout(SHORT)
        ask(f"{kind}: set", lambda: store.set("word", "one"))
        ask(f"{kind}: bytes", lambda: store.set("bytes", b"one"))
        ask(f"{kind}: delete", lambda: store.delete_key("never"))
        if kind == "TCPStore":  # the others of PyTorch run out of memory
            ask(f"{kind}: multi_set", lambda: store.multi_set(["a", "b"], ["1"]))
        else:  # the server of PyTorch's ends
            ask(f"{kind}: add to a word", lambda: store.add("word", 1))
        ask(f"{kind}: num_keys", store.num_keys)
        ask(f"{kind}: list_keys", store.list_keys)
        ask(f"{kind}: wait", lambda: store.wait(["never"]))
        ask(f"{kind}: wait shortly", lambda: store.wait(["never"], SHORT))
        ask(f"{kind}: get", lambda: store.get("never"))
        ask(f"{kind}: multi_get", lambda: store.multi_get(["never"]))
        ask(f"{kind}: queue_len", lambda: store.queue_len("queue"))
        ask(f"{kind}: queue_pop", lambda: store.queue_pop("queue", block=False))
        ask(f"{kind}: queue_pop in time", lambda: store.queue_pop("queue"))
    store = dist.FileStore(file, 1)
    store.set_timeout(SHORT)
    ask("FileStore: set 3", lambda: store.set("key", 3))
    ask("FileStore: wait", lambda: store.wait(["never"]))
    ask("FileStore: get", lambda: store.get("never"))
    ask("FileStore: queue_len", lambda: store.queue_len("queue"))
    ask("FileStore: extended", lambda: [store.has_extended_api()])
    ask("Store: add", lambda: dist.Store().add("key", 1))
    ask("Store: delete", lambda: dist.Store().delete_key("never"))
    ask("Store: num_keys", lambda: dist.Store().num_keys())
    ask("Store: list_keys", lambda: dist.Store().list_keys())
    ask("FileStore of a number", lambda: dist.FileStore(3, 1))
    ask("PrefixStore of a dict", lambda: dist.PrefixStore("prefix", {}))


without_a_group("before")
making_groups()
if library == "torch":
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), 2), rank=int(sys.argv[3]), world_size=2)
else:
    dist.init_process_group("gloo")
rank = dist.get_rank()
of_all(rank)
of_groups(rank)
of_stores()
right = torch.ones(2)
dist.all_reduce(right)
assert right.tolist() == [2, 2]  # nothing wrong has had an effect on the group
dist.barrier()
dist.destroy_process_group()
without_a_group("after")
(folder / f"{library}-{rank}.json").write_text(json.dumps(answers, indent=1))
