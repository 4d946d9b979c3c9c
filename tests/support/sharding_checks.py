"""What holds for sharded optimizers, meshes and synchronized batch norms: functions that every rank runs."""

import copy
import io

import pytest
from support import data_parallel_checks as base

import cygrad as torch
import cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed.optim import ZeroRedundancyOptimizer
from cygrad.nn.parallel import DistributedDataParallel


def check_zero():
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = base.mlp()
    opt = torch.optim.Adam(alone.parameters(), lr=0.01)
    model = DistributedDataParallel(base.mlp())
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    schedules = [torch.optim.lr_scheduler.StepLR(each, 2, 0.5) for each in (opt, zero)]
    for step in range(5):
        xs, ys = zip(*(base.data(alone, step, each) for each in range(size)))
        for each, module, x, y in ((opt, alone, torch.cat(xs), torch.cat(ys)), (zero, model, xs[rank], ys[rank])):
            each.zero_grad()
            base.loss_of(module(x), y).backward()
            each.step()
        for each in schedules:
            each.step()
    torch.testing.assert_close(base.weights(model.module), base.weights(alone), rtol=1e-5, atol=1e-5)
    assert zero.param_groups[0]["lr"] == opt.param_groups[0]["lr"] < 0.01
    owned = sum(p.numel() for p in zero.optim.param_groups[0]["params"])
    assert len(zero.optim.state) == len(zero.optim.param_groups[0]["params"]) and (size == 1 or owned < 300)
    if size > 1:
        with pytest.raises(RuntimeError, match="^Optimizer state has not been consolidated on this rank"):
            zero.state_dict()
    zero.consolidate_state_dict(to=size - 1)
    if rank == size - 1:
        state, expected = zero.state_dict(), opt.state_dict()
        assert state["param_groups"] == expected["param_groups"] and list(state["state"]) == list(expected["state"])
        for number, values in expected["state"].items():
            for key, value in values.items():
                torch.testing.assert_close(state["state"][number][key], value, rtol=1e-4, atol=1e-5)
    holder = [opt.state_dict()]
    zero.load_state_dict(copy.deepcopy(holder[0]))
    zero.consolidate_state_dict()
    if rank == 0:
        assert str(zero.state_dict()) == str(holder[0])
    zero.add_param_group({"params": [nn.Parameter(torch.full((3,), float(rank)))], "lr": 0.5})
    assert [group["lr"] for group in zero.param_groups] == [0.0025, 0.5]


def check_zero_joins():
    rank = dist.get_rank()
    from cygrad.distributed.algorithms.join import Join

    model = DistributedDataParallel(base.mlp())
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with Join([model, zero]):
        for step in range(rank + 1):
            zero.zero_grad()
            x, y = base.data(model.module, step, rank)
            base.loss_of(model(x), y).backward()
            zero.step()
    base.same_everywhere(base.digest(model.module))


def check_meshes():
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = dist.init_device_mesh("cpu", (size,))
    assert whole.get_group() is dist.group.WORLD and whole.get_local_rank() == rank and whole.get_coordinate() == [rank]
    with pytest.raises(RuntimeError, match=f"^Mesh should not be bigger than default world size {size}, but found"):
        dist.init_device_mesh("cpu", (size + 1,))
    if size != 4:
        return
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    assert mesh.get_coordinate() == [rank // 2, rank % 2] and mesh.size() == 4
    assert repr(mesh) == "DeviceMesh((data=2, model=2), 'cpu', stride=(2, 1))"
    data, model = mesh["data"], mesh["model"]
    assert data.mesh.tolist() == [rank % 2, rank % 2 + 2] and model.mesh.tolist() == [
        rank - rank % 2,
        rank - rank % 2 + 1,
    ]
    assert data.get_local_rank() == mesh.get_local_rank("data") == rank // 2
    assert dist.get_process_group_ranks(data.get_group()) == data.mesh.tolist()
    x = torch.tensor([float(rank)])
    dist.all_reduce(x, group=model.get_group())
    assert x.item() == sum(model.mesh.tolist())
    assert mesh["model", "data"].mesh.tolist() == [[0, 2], [1, 3]]
    flat = mesh._flatten("all")
    assert mesh["all"] is flat and flat.mesh.tolist() == [0, 1, 2, 3] and flat.get_group().size() == 4
    part = dist.DeviceMesh("cpu", [1, 3])
    assert part.get_coordinate() == ([[1, 3].index(rank)] if rank in (1, 3) else None)
    DistributedDataParallel(nn.Linear(1, 1), device_mesh=data)


def check_batch_norm():
    """As the batch norm of one process with the joined batch, forward and backward, and twice differentiable."""
    rank, size = dist.get_rank(), dist.get_world_size()
    sizes = [2 + each for each in range(size)]
    generator = torch.Generator().manual_seed(0)  # threads share the default one
    whole = torch.randn(sum(sizes), 3, 4, dtype=torch.float64, generator=generator)
    target = torch.randn(sum(sizes), 3, 4, dtype=torch.float64, generator=generator)
    plain = nn.BatchNorm1d(3).double()
    with torch.no_grad():
        plain.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
    x = whole.clone().requires_grad_()
    first = sum(sizes[:rank])
    mine = whole[first : first + sizes[rank]].clone().requires_grad_()
    expected, output = plain(x), synced(mine)
    torch.testing.assert_close(output, expected[first : first + sizes[rank]])
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        torch.testing.assert_close(getattr(synced, name), getattr(plain, name))
    (gx,) = torch.autograd.grad((expected * target).sin().sum(), x, create_graph=True)
    loss = (output * target[first : first + sizes[rank]]).sin().sum()
    (gm,) = torch.autograd.grad(loss, mine, create_graph=True)
    torch.testing.assert_close(gm, gx[first : first + sizes[rank]])
    gx.square().sum().backward()
    gm.square().sum().backward()
    torch.testing.assert_close(mine.grad, x.grad[first : first + sizes[rank]], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(synced.eval()(mine), plain.eval()(x)[first : first + sizes[rank]])
    layer = nn.SyncBatchNorm(3, affine=False, momentum=None)  # one process has nothing
    count = 0 if rank == size - 1 and size > 1 else 2
    y = torch.randn(count, 3, 2, requires_grad=True)
    layer(y).square().sum().backward()
    assert y.grad.shape == y.shape and layer.running_mean.isfinite().all()
    base.same_everywhere(layer.running_mean.tolist())
    if size > 1:
        with pytest.raises(ValueError, match="^Expected more than 1 value per channel when training"):
            layer(torch.ones(int(rank == 0), 3))


def check_sampler():
    rank, size = dist.get_rank(), dist.get_world_size()
    sampler = torch.utils.data.DistributedSampler(range(10))
    assert (sampler.rank, sampler.num_replicas) == (rank, size)
    found = [None] * size
    dist.all_gather_object(found, list(sampler))
    assert sorted({index for part in found for index in part}) == list(range(10))


# --- fully_shard -----------------------------------------------------------------------------------


def sharded(make, **options):
    from cygrad.distributed.fsdp import fully_shard

    model = make()
    layers = model.layers if isinstance(model, base.Transformer) else [model[0], model[2]]
    for layer in layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def full_weights(model):
    return torch.cat([p.full_tensor().reshape(-1) for p in model.parameters()])


def check_fully_shard():
    from cygrad.distributed.fsdp import FSDPModule

    rank, size = dist.get_rank(), dist.get_world_size()
    for make in (base.mlp, base.transformer):
        for options in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False}):
            model = sharded(make, **options)
            assert isinstance(model, FSDPModule)
            opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
            alone = make()
            plain = torch.optim.Adam(alone.parameters(), lr=0.01, eps=1e-3)
            for step in range(4):
                xs, ys = zip(*(base.data(alone, step, each) for each in range(size)))
                for each, module, x, y in (
                    (plain, alone, torch.cat(xs), torch.cat(ys)),
                    (opt, model, xs[rank], ys[rank]),
                ):
                    each.zero_grad()
                    base.loss_of(module(x), y).backward()
                    if step == 1:
                        a = torch.nn.utils.clip_grad_norm_(module.parameters(), 0.05)
                        if module is alone:
                            expected_norm = a
                        else:
                            torch.testing.assert_close(a, expected_norm, rtol=1e-4, atol=1e-6)
                    each.step()
                if step == 2:
                    with torch.no_grad():
                        torch.testing.assert_close(model(xs[0]), alone(xs[0]), rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(full_weights(model), base.weights(alone), rtol=1e-4, atol=2e-5)
            elements = sum(p.numel() for p in model.parameters())
            everything = sum(p.numel() for p in alone.parameters())
            assert elements <= everything / size + everything * 0.2
            assert sum(v.numel() for s in opt.state.values() for v in s.values() if v.dim()) == 2 * elements
            assert not model._fsdp_unit.state.places and all(u._wholes is None for u in units(model))
            assert [p.shape[1:] for p in model.parameters()] == [p.shape[1:] for p in alone.parameters()]


def units(model):
    from cygrad.distributed.fsdp._unit import units_in

    return units_in(model)


def check_sharded_accumulation():
    rank, size = dist.get_rank(), dist.get_world_size()
    model, alone = sharded(base.mlp), base.mlp()
    for step in range(2):
        for each in range(size):
            x, y = base.data(alone, step, each)
            (base.loss_of(alone(x), y) / size).backward()
    for way in range(2):
        model.zero_grad()
        for step in range(2):
            model.set_requires_gradient_sync(way == 0 or step == 1)
            x, y = base.data(alone, step, rank)
            base.loss_of(model(x), y).backward()
            if way and not step:
                assert all(p.grad is None for p in model.parameters())
        for p, q in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(
                p.grad, torch.narrow(q.grad, 0, *part(q.shape[0], size, rank)), rtol=1e-5, atol=1e-6
            )


def part(length, size, rank):
    from cygrad.distributed.tensor._shards import bounds

    first, last = bounds(length, size, rank)
    return first, last - first


def check_sharded_precision():
    from cygrad.distributed.fsdp import MixedPrecisionPolicy

    rank, size = dist.get_rank(), dist.get_world_size()
    seen = []
    model = base.mlp()
    model[3].register_forward_hook(lambda m, args, out: seen.append((out.dtype, model[2].weight.dtype)))
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32)
    from cygrad.distributed.fsdp import fully_shard

    fully_shard(model[2], mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    fully_shard(model, mp_policy=policy)
    x, y = base.data(model, 0, rank)
    output = model(x)
    assert output.dtype == torch.float32 and seen == [(torch.bfloat16, torch.float32)]
    base.loss_of(output, y).backward()
    assert all(p.grad.dtype == torch.float32 for p in model.parameters() if p.numel())
    alone = base.mlp().bfloat16()
    total = [torch.zeros(p.shape) for p in alone.parameters()]
    for each in range(size):
        x, y = base.data(model, 0, each)
        alone.zero_grad()
        base.loss_of(alone(x.bfloat16()).float(), y).backward()
        for sum_, p in zip(total, alone.parameters()):
            sum_.add_(p.grad.float() / size)
    for p, q in zip(model.parameters(), total):
        torch.testing.assert_close(p.grad, torch.narrow(q, 0, *part(q.shape[0], size, rank)), rtol=0.01, atol=1e-3)


def check_sharded_state():
    from cygrad.distributed.tensor import DTensor, Shard

    rank, size = dist.get_rank(), dist.get_world_size()
    model, whole = sharded(base.transformer), base.transformer(seed=3)
    model.load_state_dict(whole.state_dict())
    torch.testing.assert_close(full_weights(model), base.weights(whole), rtol=0, atol=0)
    state = model.state_dict()
    assert list(state) == list(whole.state_dict()) and all(isinstance(each, DTensor) for each in state.values())
    assert torch.equal(state["words.weight"].full_tensor(), whole.words.weight)
    if size > 1:
        with pytest.raises(RuntimeError, match="^add: cygrad computes with whole or local tensors only"):
            torch.add(state["words.weight"], 1)
    other = sharded(base.transformer)
    other.load_state_dict(state)
    torch.testing.assert_close(full_weights(other), base.weights(whole), rtol=0, atol=0)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    for loaded in (torch.load(file), copy.deepcopy(state)):
        found = loaded["words.weight"]
        assert found.device_mesh == state["words.weight"].device_mesh and found.placements == (Shard(0),)
        assert torch.equal(found.full_tensor(), whole.words.weight)
    model.unshard()
    assert torch.equal(model.words.weight, whole.words.weight) and model.words.weight.requires_grad
    model.reshard()
    assert model.words.weight.shape == (part(11, size, rank)[1], 16)


def check_sharded_unshard_early():
    """`unshard` before `forward` is one early gathering: steps are seen, and states show parts."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for options in ({}, {"reshard_after_forward": True}):
        model, alone = sharded(base.transformer, **options), base.transformer()
        pairs = [(torch.optim.SGD(each.parameters(), lr=0.1), each) for each in (model, alone)]
        for step in range(3):
            xs, ys = zip(*(base.data(alone, step, each) for each in range(size)))
            model.unshard()
            assert model.words.weight.shape == alone.words.weight.shape
            for (opt, module), x, y in zip(pairs, (xs[rank], torch.cat(xs)), (ys[rank], torch.cat(ys))):
                opt.zero_grad()
                base.loss_of(module(x), y).backward()
                opt.step()
            assert model.words.weight.shape == (part(11, size, rank)[1], 16)
        torch.testing.assert_close(full_weights(model), base.weights(alone), rtol=1e-4, atol=1e-5)
        model.unshard()
        shown = model.state_dict()["words.weight"]
        torch.testing.assert_close(shown.full_tensor(), alone.words.weight.detach(), rtol=1e-4, atol=1e-5)
        model.unshard()
        model.load_state_dict(alone.state_dict())
        assert torch.equal(full_weights(model), base.weights(alone))


def check_sharded_from_meta():
    """A model without memory gets it from a state: of DTensors with `assign=True`, or of whole tensors."""
    from cygrad.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from cygrad.distributed.tensor import distribute_tensor

    rank, size = dist.get_rank(), dist.get_world_size()
    saved = base.transformer(seed=3).state_dict()

    def on_meta():
        model = base.transformer()
        return sharded(lambda: model.to("meta"))

    by_parts, by_wholes = on_meta(), on_meta()
    shown = by_parts.state_dict()
    parts = {
        name: nn.Parameter(distribute_tensor(value, shown[name].device_mesh, shown[name].placements))
        for name, value in saved.items()
    }
    by_parts.load_state_dict(parts, assign=True)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(by_wholes, saved if rank == 0 else {}, options=options)
    for model in (by_parts, by_wholes):
        alone = base.transformer(seed=3)
        opts = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, alone)]
        xs, ys = zip(*(base.data(alone, 0, each) for each in range(size)))
        base.loss_of(model(xs[rank]), ys[rank]).backward()
        base.loss_of(alone(torch.cat(xs)), torch.cat(ys)).backward()
        for each in opts:
            each.step()
        torch.testing.assert_close(full_weights(model), base.weights(alone), rtol=1e-4, atol=1e-5)
        assert all(type(p).__name__ == "ShardedParameter" and not p.is_meta for p in model.parameters())


def check_sharded_optimizer_state():
    """`state_dict` of an optimizer has DTensors, and `load_state_dict` takes them and whole tensors."""
    from cygrad.distributed.tensor import DTensor

    rank, size = dist.get_rank(), dist.get_world_size()
    model, alone = sharded(base.mlp), base.mlp()
    opt, plain = (torch.optim.Adam(each.parameters(), lr=0.01, eps=1e-3) for each in (model, alone))
    xs, ys = zip(*(base.data(alone, 0, each) for each in range(size)))
    base.loss_of(model(xs[rank]), ys[rank]).backward()
    base.loss_of(alone(torch.cat(xs)), torch.cat(ys)).backward()
    opt.step()
    plain.step()
    state = opt.state_dict()
    for number, values in plain.state_dict()["state"].items():
        found = state["state"][number]
        assert isinstance(found["exp_avg"], DTensor) and type(found["step"]) is torch.Tensor
        torch.testing.assert_close(found["exp_avg"].full_tensor(), values["exp_avg"], rtol=1e-4, atol=1e-6)
    for saved in (state, plain.state_dict()):
        other = torch.optim.Adam(model.parameters(), lr=0.01)
        other.load_state_dict(copy.deepcopy(saved))
        for p, q in zip(model.parameters(), alone.parameters()):
            expected = torch.narrow(plain.state[q]["exp_avg_sq"], 0, *part(q.shape[0], size, rank))
            assert type(other.state[p]["exp_avg_sq"]) is torch.Tensor
            torch.testing.assert_close(other.state[p]["exp_avg_sq"], expected, rtol=1e-4, atol=1e-6)


def check_sharded_with_copies():
    from cygrad.distributed.fsdp import fully_shard

    rank, size = dist.get_rank(), dist.get_world_size()
    if size != 4:
        return
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))
    model, alone = fully_shard(base.mlp(), mesh=mesh), base.mlp()
    for each in range(size):
        x, y = base.data(alone, 0, each)
        (base.loss_of(alone(x), y) / size).backward()
    x, y = base.data(alone, 0, rank)
    base.loss_of(model(x), y).backward()
    for p, q in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(
            p.grad, torch.narrow(q.grad, 0, *part(q.shape[0], 2, rank % 2)), rtol=1e-5, atol=1e-6
        )


def check_sharded_checkpointing():
    """Recomputed layers, frozen and unused parameters, and an error in `forward`."""
    from cygrad.distributed.fsdp import fully_shard
    from cygrad.utils.checkpoint import checkpoint

    rank, size = dist.get_rank(), dist.get_world_size()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.unused = nn.Linear(3, 5), nn.Linear(5, 3), nn.Linear(2, 2)
            self.a.bias.requires_grad_(False)

        def forward(self, x, recompute=True, fail=False):
            h = checkpoint(self.a, x, use_reentrant=False) if recompute else self.a(x)
            if fail:
                raise ZeroDivisionError("in forward")
            return self.b(h.tanh())

    model, alone = base.seeded(0, Net), base.seeded(0, Net)
    for each in (model.a, model.b, model):
        fully_shard(each)
    x = torch.linspace(0, 1, 6).view(2, 3)
    with pytest.raises(ZeroDivisionError):
        model(x, fail=True)
    assert type(model.a.weight).__name__ == "ShardedParameter"
    model(x).square().sum().backward()
    alone(x, recompute=False).square().sum().backward()
    for (name, p), q in zip(model.named_parameters(), alone.parameters()):
        if q.grad is not None:
            torch.testing.assert_close(
                p.grad, torch.narrow(q.grad, 0, *part(q.shape[0], size, rank)), rtol=1e-5, atol=1e-6
            )
        else:
            assert p.grad is None or not p.grad.any(), name


def check_fsdp_wrapper():
    from cygrad.distributed.fsdp import FullOptimStateDictConfig, FullStateDictConfig, ShardingStrategy, StateDictType
    from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
    from cygrad.distributed.fsdp.wrap import ModuleWrapPolicy

    rank, size = dist.get_rank(), dist.get_world_size()
    names = list(base.mlp().state_dict())
    for strategy in (None, ShardingStrategy.SHARD_GRAD_OP):
        policy = ModuleWrapPolicy({nn.Linear})
        model = FSDP(base.mlp(), auto_wrap_policy=policy, sharding_strategy=strategy)
        alone = base.mlp()
        pair = [(torch.optim.Adam(module.parameters(), lr=0.01, eps=1e-3), module) for module in (model, alone)]
        for step in range(3):
            xs, ys = zip(*(base.data(alone, step, each) for each in range(size)))
            for (opt, module), x, y in zip(pair, (xs[rank], torch.cat(xs)), (ys[rank], torch.cat(ys))):
                opt.zero_grad()
                base.loss_of(module(x), y).backward()
                opt.step()
        state = model.state_dict()
        assert list(state) == names
        for name, value in alone.state_dict().items():
            torch.testing.assert_close(state[name], value, rtol=1e-4, atol=1e-5)
        optim = FSDP.optim_state_dict(model, pair[0][0])
        for name, p in alone.named_parameters():
            expected = pair[1][0].state[p]["exp_avg"]
            torch.testing.assert_close(optim["state"][name]["exp_avg"], expected, rtol=1e-4, atol=1e-6)
        pair[0][0].load_state_dict(FSDP.optim_state_dict_to_load(model, pair[0][0], optim))
        of_rank0 = FullStateDictConfig(rank0_only=True), FullOptimStateDictConfig(rank0_only=True)
        with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, *of_rank0):
            assert len(model.state_dict()) == (0 if rank else len(names))
            found = FSDP.optim_state_dict(model, pair[0][0])
            assert str(found) == ("{}" if rank else str(optim))
        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            parts = model.state_dict()
            assert list(parts) == names
            other = FSDP(base.mlp(seed=5), auto_wrap_policy=policy)
            other.load_state_dict(parts)
        other.load_state_dict(state)
        with FSDP.summon_full_params(other):
            assert [name for name, _ in other.named_parameters()] == names
            assert all(torch.equal(p, state[name]) for name, p in other.named_parameters())
            with torch.no_grad():
                for p in other.parameters():
                    p.add_(1)
        assert all(torch.equal(value, state[name] + 1) for name, value in other.state_dict().items())
        with model.no_sync():
            base.loss_of(model(xs[rank]), ys[rank]).backward()
        base.loss_of(model(xs[rank]), ys[rank]).backward()
    norm = model.clip_grad_norm_(0.1)
    base.same_everywhere(norm.item())


def check_replicate_and_averagers():
    from cygrad.distributed._composable import replicate
    from cygrad.distributed.algorithms.model_averaging.averagers import HierarchicalModelAverager, PeriodicModelAverager

    rank, size = dist.get_rank(), dist.get_world_size()
    model, alone = replicate(base.mlp(seed=rank)), base.mlp()
    for each in range(size):
        x, y = base.data(alone, 0, each)
        (base.loss_of(alone(x), y) / size).backward()
    x, y = base.data(alone, 0, rank)
    base.loss_of(model(x), y).backward()
    for (name, p), (other, q) in zip(model.named_parameters(), alone.named_parameters()):
        assert name == other and type(model) is nn.Sequential
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-6)
    p = nn.Parameter(torch.tensor([float(rank)]))
    p.grad = torch.zeros(1)
    PeriodicModelAverager(1).average_parameters([p])
    assert p.item() == (size - 1) / 2
    if size == 4:
        p = nn.Parameter(torch.tensor([float(rank)]))
        p.grad = torch.zeros(1)
        averager = HierarchicalModelAverager({1: 2, 2: 4})
        averager.average_parameters([p])  # step 0: of all
        assert p.item() == 1.5
        with torch.no_grad():
            p.fill_(rank)
        averager.average_parameters([p])  # step 1: of pairs
        assert p.item() == [0.5, 0.5, 2.5, 2.5][rank]


def check_overflow_in_one_rank():
    from cygrad.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    rank, size = dist.get_rank(), dist.get_world_size()
    p = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    for bad in (True, False):
        optimizer.zero_grad()
        factor = float("inf") if bad and rank == size - 1 else 1.0
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert p.item() == (1 if bad else 0) and scaler.get_scale() == 2.0


def check_what_is_not_divided():
    from cygrad.distributed.tensor import distribute_module

    size = dist.get_world_size()
    if size > 1:
        mesh = dist.init_device_mesh("cpu", (size,))
        with pytest.raises(RuntimeError, match="does not divide what a module computes"):
            distribute_module(nn.Linear(2, 2), mesh)


CHECKS = {name: value for name, value in list(globals().items()) if name.startswith("check_")}
