"""GPU memory: statistics, limits, and out-of-memory errors; on a GPU or the stand-in."""

import gc
import pickle
import random

import cupy_standin
import pytest

import cygrad as torch
from cygrad._kernels.gpu.runtime import allocator

MIB = 1 << 20


@pytest.fixture(autouse=True)
def gpu(cupy, monkeypatch):
    """A GPU with a pool of its own: what other tests have cached may lie in large pieces of the usual one."""
    torch.cuda.init()
    gc.collect()
    former = cupy.cuda.get_allocator()
    monkeypatch.setattr(allocator.connected, "pool", cupy.cuda.MemoryPool())
    cupy.cuda.set_allocator(allocator._allocator(cupy, allocator.pool()))
    torch.cuda.reset_peak_memory_stats()
    yield cupy
    cupy.cuda.set_allocator(former)


def megabytes(count):
    return torch.zeros(count * MIB // 4, device="cuda")


def test_what_is_in_use_is_exact():
    before = torch.cuda.memory_allocated()
    kept = [torch.zeros(n, device="cuda") for n in (1, 128, 129, 100_000)]
    assert torch.cuda.memory_allocated() - before == 512 + 512 + 1024 + 400_384
    large = megabytes(3)
    view = large[5:].view(-1)
    del large
    assert torch.cuda.memory_allocated() - before == 402_432 + 3 * MIB
    del view, kept
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("size", [1000, 300_000, 3 * MIB])
def test_the_peak_is_seen_though_nobody_asks(size):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = [torch.zeros(size // 4, device="cuda") for _ in range(200)]
    del kept
    for _ in range(50):
        torch.zeros(size // 4, device="cuda")
    peak = torch.cuda.max_memory_allocated() - before
    wanted = 200 * -(-size // 512) * 512
    assert peak == wanted
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated() == before
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == stats["allocated_bytes.all.peak"] == before


def test_limits():
    assert torch.cuda.set_memory_limit(10 * MIB) == 0
    assert torch.cuda.get_memory_limit("cuda:0") == 10 * MIB
    megabytes(9)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        megabytes(11)
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert torch.cuda.get_memory_limit() == torch.cuda.get_device_properties().total_memory // 2
    assert torch.cuda.set_memory_limit(None) > 0
    assert torch.cuda.get_memory_limit() == 0
    with pytest.raises(TypeError, match="limit must be int or None, not str"):
        torch.cuda.set_memory_limit("1G")
    with pytest.raises(ValueError, match="-1 is not a number of bytes"):
        torch.cuda.set_memory_limit(-1)


def test_a_full_gpu_names_the_lines_that_hold_the_most():
    before = torch.cuda.memory_stats()
    torch.cuda.set_memory_limit(torch.cuda.memory_allocated() + 20 * MIB)
    weights = megabytes(6)
    kept = [torch.ones(MIB, device="cuda", requires_grad=True) for _ in range(2)]  # the most
    with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        weights.repeat(3)
    text = str(caught.value)
    assert type(caught.value) is torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    first, second, *lines = text.splitlines()
    assert first.startswith("CUDA out of memory. Tried to allocate 18.00 MiB. GPU 0 has a total capacity of ")
    assert "the limit is " in second
    assert lines[0] == "  The largest holders are"
    assert lines[1].strip().startswith("8 MB in 2 arrays made at ")
    assert lines[1].endswith("# the most`")
    assert "6 MB in 1 array made at " in lines[2]
    after = torch.cuda.memory_stats()
    assert after["num_ooms"] == before["num_ooms"] + 1
    assert after["num_alloc_retries"] == before["num_alloc_retries"] + 1
    assert "# the most`" in torch.cuda.memory_summary()
    assert "# the most`" not in torch.cuda.memory_summary(abbreviated=True)
    # All state is unchanged, and work continues.
    assert weights.sum() == 0
    assert weights._version == 0
    torch.cuda.set_memory_limit(None)
    (kept[0] * kept[1]).sum().backward()
    assert kept[0].grad.sum().item() == MIB


def test_a_tensor_that_could_not_be_changed_is_as_it_was():
    x = torch.ones(2 * MIB, device="cuda")
    torch.cuda.set_memory_limit(torch.cuda.memory_allocated() + 4 * MIB)
    with pytest.raises(torch.OutOfMemoryError):
        x.copy_(torch.cat([x[MIB:] * 2, x[:MIB]]))
    assert x._version == 0
    assert x.sum().item() == 2 * MIB


def test_what_the_pool_keeps_is_given_back_before_it_is_full():
    torch.cuda.set_memory_limit(torch.cuda.memory_allocated() + 10 * MIB)
    for count in (2, 3, 5, 9, 4, 8):
        megabytes(count)


def test_allocators_of_users_are_left_alone(gpu):
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        x = megabytes(2)
    assert pool.used_bytes() == 2 * MIB
    del x
    assert pool.used_bytes() == 0


def test_without_a_gpu_nothing_is_in_use(monkeypatch):
    monkeypatch.setattr("cygrad._kernels.device.cupy_library._found", None)
    assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == torch.cuda.max_memory_reserved() == 0
    assert torch.cuda.get_memory_limit() == 0
    assert torch.cuda.memory_summary().startswith("Memory of the GPU")


def test_a_snapshot_names_the_line_of_each_block(tmp_path):
    def mine(name):
        blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
        return [b for b in blocks if any(f["name"] == name for f in b["frames"])]

    def unseen():
        return torch.zeros(200, device="cuda")

    def small():
        return torch.zeros(200, device="cuda")

    def large():
        return torch.zeros(MIB, device="cuda")

    kept = [unseen(), large()]
    torch.cuda.memory._record_memory_history()
    kept.append(small())
    torch.cuda.memory._record_memory_history(enabled=None)
    kept.append(unseen())
    assert [len(mine(name)) for name in ("unseen", "small", "large")] == [0, 1, 1]
    ((block,), (frame,)) = mine("large"), mine("large")[0]["frames"]
    assert block["size"] == 4 * MIB and block["address"] == kept[1].data_ptr() and block["state"] == "active_allocated"
    assert frame == {"name": "large", "filename": __file__, "line": large.__code__.co_firstlineno + 1}
    torch.cuda.memory._dump_snapshot(tmp_path / "memory.pickle")
    with open(tmp_path / "memory.pickle", "rb") as file:
        read = pickle.load(file)
    assert {"segments", "device_traces", "allocator_settings"} <= set(read) and len(read["segments"]) >= 2
    assert all(s["total_size"] >= s["allocated_size"] == sum(b["size"] for b in s["blocks"]) for s in read["segments"])
    del kept
    assert not mine("large") and not mine("small")


def steps_of_random_shapes(count, seed):
    """Allocate what steps of a transformer with three layers keep and drop, for sequences of random lengths."""
    draw = random.Random(seed)
    for _ in range(count):
        batch, length = draw.randint(1, 40), draw.randint(4, 60)
        kept = []
        for width in (24, 72, 24, 96, 96, 24) * 3:
            kept.append(torch.empty(batch, length, width, device="cuda"))
            torch.empty(batch, length, width // 2, device="cuda")
        kept.append(torch.empty(batch, 3, length, length, device="cuda"))
        grads = []
        while kept:
            grads = [*grads[-2:], torch.empty_like(kept.pop())]
        del grads
        yield


@pytest.mark.parametrize("seed", range(3))
def test_changing_shapes_do_not_break_memory_into_pieces(monkeypatch, seed):
    """What the pool reserves at most is near to what is needed at most, and it asks the driver ever less often."""
    monkeypatch.setattr(allocator, "_LITTLE", 1 << 16)
    torch.cuda.reset_peak_memory_stats()
    for _ in steps_of_random_shapes(60, seed):
        pass
    assert torch.cuda.max_memory_reserved() < 1.3 * torch.cuda.max_memory_allocated()


def test_pieces_are_kept_while_shapes_stay_the_same(monkeypatch, gpu):
    monkeypatch.setattr(allocator, "_LITTLE", 1 << 16)
    released, release = [], gpu.get_default_memory_pool().free_all_blocks
    monkeypatch.setattr(
        type(gpu.get_default_memory_pool()), "free_all_blocks", lambda self: (released.append(1), release())
    )
    for round in range(4):
        for _ in steps_of_random_shapes(3, seed=7):
            pass
        if round == 1:
            released.clear()
    assert not released


def test_what_is_in_use_is_seldom_added_up(monkeypatch, gpu):
    """CuPy adds up all blocks to find out."""
    if not cupy_standin.is_installed():
        pytest.skip("CuPy's methods cannot be replaced")
    asked, pool = [], type(gpu.get_default_memory_pool())
    used_bytes = pool.used_bytes
    monkeypatch.setattr(pool, "used_bytes", lambda self: (asked.append(1), used_bytes(self))[1])
    kept = [torch.zeros(1000, device="cuda") for _ in range(20)]
    del kept[5:]
    asked.clear()
    for _ in range(300):
        torch.zeros(1000, device="cuda")
    assert len(asked) < 30


@pytest.mark.parametrize("setting", ["expandable_segments:True", "backend:cudaMallocAsync", "max_split_size_mb:64", ""])
def test_pieces_from_the_asynchronous_allocator(monkeypatch, gpu, setting):
    if not cupy_standin.is_installed():
        pytest.skip("the allocator of a process is chosen once")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", f"garbage_collection_threshold:0.8,{setting}")
    monkeypatch.setattr(allocator.connected, "pool", None)
    before, made, malloc_async = gpu.cuda.get_allocator(), [], gpu.cuda.malloc_async
    monkeypatch.setattr(gpu.cuda, "malloc_async", lambda size: (made.append(size), malloc_async(size))[1])
    gpu.cuda.set_allocator(gpu.get_default_memory_pool().malloc)
    try:
        allocator.install(gpu)
        standing = torch.cuda.memory_reserved()
        x = megabytes(3)
        is_asynchronous = "Async" in setting or "expandable" in setting
        assert made == ([3 * MIB] if is_asynchronous else [])
        assert torch.cuda.memory_allocated() >= 3 * MIB
        torch.cuda.set_memory_limit(torch.cuda.memory_reserved() + MIB)
        with pytest.raises(torch.OutOfMemoryError):
            megabytes(80)
        torch.cuda.set_memory_limit(None)
        del x
        torch.cuda.empty_cache()
        assert not is_asynchronous or torch.cuda.memory_reserved() == standing
    finally:
        gpu.cuda.set_allocator(before)
