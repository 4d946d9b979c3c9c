"""FSDP, device meshes, DTensors, optimizers, checkpoints and launchers in one process."""

import subprocess
import sys
from concurrent.futures import Future

import pytest

import cygrad as torch
import cygrad.distributed as dist
import cygrad.distributed.checkpoint as dcp
from cygrad import nn
from cygrad.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from cygrad.distributed.device_mesh import init_device_mesh
from cygrad.distributed.fsdp import FSDPModule, MixedPrecision, MixedPrecisionPolicy, StateDictType, fully_shard
from cygrad.distributed.fsdp import FullyShardedDataParallel as FSDP
from cygrad.distributed.fsdp.wrap import ModuleWrapPolicy, enable_wrap, size_based_auto_wrap_policy, wrap
from cygrad.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from cygrad.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

ONE = "one process for now"


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2))


def gradients(model):
    model(torch.ones(2, 3)).square().sum().backward()
    return [p.grad.tolist() for p in model.parameters()]


# --- FSDP ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("group")
def test_fsdp_trains_as_the_module_itself():
    expected, names = gradients(network()), list(network().state_dict())
    for policy in (None, ModuleWrapPolicy({nn.Linear})):
        model = FSDP(network(), auto_wrap_policy=policy, device_id=torch.device("cpu"))
        assert len(FSDP.fsdp_modules(model)) == (4 if policy else 1)
        assert gradients(model) == expected and list(model.state_dict()) == names
        assert all(name.startswith("_fsdp_wrapped_module.") for name, _ in model.named_parameters())
        with FSDP.summon_full_params(model):
            assert [name for name, _ in model.named_parameters()] == names
        norm = torch.stack([p.grad.square().sum() for p in model.parameters()]).sum().sqrt()
        torch.testing.assert_close(model.clip_grad_norm_(0.1), norm)
        assert model[0].in_features == 3


@pytest.mark.usefixtures("group")
def test_fsdp_loads_what_it_and_the_module_save():
    plain = network()
    model = FSDP(network(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    with torch.no_grad():
        for p in plain.parameters():
            p.fill_(2)
    model.load_state_dict(plain.state_dict())
    assert all((p == 2).all() for p in model.parameters())
    network().load_state_dict(model.state_dict())
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        assert FSDP.get_state_dict_type(model).state_dict_type is StateDictType.SHARDED_STATE_DICT
    assert FSDP.get_state_dict_type(model).state_dict_type is StateDictType.FULL_STATE_DICT


@pytest.mark.usefixtures("group")
def test_the_state_of_an_optimizer_of_fsdp_by_names():
    model = FSDP(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    gradients(model)
    optimizer.step()
    state = FSDP.optim_state_dict(model, optimizer)
    assert set(state["state"]) == set(model.state_dict()) == set(state["param_groups"][0]["params"])
    back = FSDP.optim_state_dict_to_load(model, optimizer, state)
    assert list(back["state"]) == list(range(6))
    optimizer.load_state_dict(back)


@pytest.mark.usefixtures("group")
def test_fsdp_in_half_precision():
    seen = []
    model = network()
    model[1].register_forward_hook(lambda module, args, output: seen.append((args[0].dtype, module[0].weight.dtype)))
    model = FSDP(model, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))
    output = model(torch.ones(2, 3))
    output.float().sum().backward()
    assert seen == [(torch.bfloat16, torch.bfloat16)] and output.dtype == torch.bfloat16
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.parameters())


@pytest.mark.usefixtures("group")
def test_fully_shard():
    expected, model = gradients(network()), network()
    assert fully_shard(model[0]) is model[0] and fully_shard(model) is model
    assert isinstance(model, FSDPModule) and isinstance(model, nn.Sequential)
    assert type(model).__name__ == "FSDPSequential" and gradients(model) == expected
    assert model.unshard() is None and model.unshard(async_op=True).wait() is None
    model.reshard()
    model.set_requires_gradient_sync(False)
    half = fully_shard(network(), mp_policy=MixedPrecisionPolicy(torch.bfloat16, output_dtype=torch.float64))
    output = half(torch.ones(2, 3))
    output.sum().backward()
    assert output.dtype == torch.float64 and half[0].weight.grad.dtype == torch.float32
    with pytest.raises(ValueError, match="do not implement forward"):
        fully_shard(nn.ModuleList())


@pytest.mark.usefixtures("group")
def test_compiled_modules_are_sharded():
    """As programs do that compile each layer before they shard it."""
    model, alone = network(), network()
    alone.load_state_dict(model.state_dict())
    for index in (0, 2):
        model[index] = fully_shard(torch.compile(model[index]))
    fully_shard(model)
    x = torch.randn(4, 3)
    for module in (model, alone):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close([p.full_tensor() for p in model.parameters()], [p.detach() for p in alone.parameters()])
    assert list(model.state_dict())[0] == "0._orig_mod.weight"
    model[0].set_requires_gradient_sync(False)


def test_policies():
    wrapped = []

    def wrapper(module, **options):
        wrapped.append((module, options))
        return nn.Sequential(module)

    with enable_wrap(wrapper_cls=wrapper, flag=1):
        layer = nn.Linear(2, 2)
        assert isinstance(wrap(layer), nn.Sequential) and wrapped == [(layer, {"flag": 1})]
    assert wrap(layer) is layer
    assert size_based_auto_wrap_policy(layer, False, 10, min_num_params=10)
    assert not size_based_auto_wrap_policy(layer, False, 9, min_num_params=10)


# --- Meshes and DTensors -------------------------------------------------------------------------


@pytest.mark.usefixtures("group")
def test_meshes():
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert (mesh.shape, mesh.ndim, mesh.size(), mesh.get_coordinate(), mesh.mesh.tolist()) == (
        (1, 1),
        2,
        1,
        [0, 0],
        [[0]],
    )
    assert repr(mesh) == "DeviceMesh((data=1, model=1), 'cpu', stride=(1, 1))"
    part = mesh["data"]
    assert part.shape == (1,) and part.get_local_rank() == 0 and dist.get_world_size(part.get_group()) == 1
    assert mesh["data", "model"] is mesh and mesh._flatten("all").shape == (1,) and mesh["all"].ndim == 1
    assert mesh.get_group("model") is mesh.get_group(1) and len(mesh.get_all_groups()) == 2
    with pytest.raises(RuntimeError, match="Optional kwarg `mesh_dim` needs to be specified"):
        mesh.get_group()
    with pytest.raises(KeyError, match="Invalid mesh_dim_name"):
        mesh["other"]
    with pytest.raises(RuntimeError, match="^Mesh should not be bigger than default world size 1"):
        init_device_mesh("cpu", (2,))
    with pytest.raises(RuntimeError, match="same length"):
        init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b"))


@pytest.mark.usefixtures("group")
def test_dtensors():
    mesh, x = init_device_mesh("cpu", (1,)), torch.arange(4.0).view(2, 2)
    spread = distribute_tensor(x, mesh, [Shard(0)])
    result = (spread * spread).sum(0)
    assert isinstance(result, DTensor) and result.placements == (Shard(0),) and result.device_mesh is mesh
    assert type(result.to_local()) is torch.Tensor and result.full_tensor().tolist() == [4, 10]
    assert spread.redistribute(mesh, [Replicate()]).placements == (Replicate(),)
    assert Shard(1).is_shard(1) and not Shard(1).is_shard(0) and Replicate().is_replicate()
    leaf = x.clone().requires_grad_()
    local = DTensor.from_local(leaf, mesh, [Replicate()])
    (local * local).sum().to_local().backward()
    assert leaf.grad.tolist() == (2 * x).tolist()
    assert dist.tensor.zeros(2, 2, device_mesh=mesh).full_tensor().tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="same length as `device_mesh.ndim`"):
        distribute_tensor(x, mesh, [Shard(0), Shard(1)])


@pytest.mark.usefixtures("group")
def test_tensor_parallel_plans_leave_layers_whole():
    from cygrad.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = network()
    plan = {"0": ColwiseParallel(), "1.*": RowwiseParallel()}
    assert parallelize_module(model, init_device_mesh("cpu", (1,)), plan) is model
    assert gradients(model) == gradients(network())


@pytest.mark.usefixtures("group")
def test_collectives_that_autograd_sees():
    from cygrad.distributed import _functional_collectives as fc
    from cygrad.distributed.nn import functional as F

    x = torch.arange(4.0, requires_grad=True)
    results = [
        F.all_reduce(x),
        F.all_gather(x)[0],
        F.broadcast(x, 0),
        F.reduce_scatter(torch.zeros(4), [x]),
        F.all_to_all_single(torch.zeros(4), x),
        fc.all_reduce(x, "sum", dist.group.WORLD),
        fc.wait_tensor(fc.all_gather_tensor(x, 0, dist.group.WORLD)),
    ]
    for factor, result in enumerate(results):
        assert result is not x and result.tolist() == [0, 1, 2, 3]
        (gradient,) = torch.autograd.grad((factor * result).sum(), x)
        assert gradient.tolist() == [factor] * 4
    with pytest.raises(ValueError, match="Unsupported reduce op"):
        fc.all_reduce(x, "other", dist.group.WORLD)


# --- Optimizers ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("group")
def test_zero_steps_as_the_optimizer_within():
    models = network(), network()
    optimizers = (
        torch.optim.SGD(models[0].parameters(), lr=0.1, momentum=0.9),
        ZeroRedundancyOptimizer(models[1].parameters(), torch.optim.SGD, lr=0.1, momentum=0.9),
    )
    for _ in range(3):
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            gradients(model)
            optimizer.step()
    for a, b in zip(*(model.parameters() for model in models)):
        assert a.equal(b)
    zero = optimizers[1]
    with pytest.raises(RuntimeError, match="^Optimizer state has not been consolidated on this rank"):
        zero.state_dict()
    zero.consolidate_state_dict()
    state = zero.state_dict()
    assert str(state) == str(optimizers[0].state_dict())
    zero.load_state_dict(state)
    zero.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 0.5})
    assert [group["lr"] for group in zero.param_groups] == [0.1, 0.5]


@pytest.mark.usefixtures("group")
def test_local_sgd():
    from cygrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

    model = network()
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(2))
    gradients(model)
    optimizer.step()
    assert optimizer.state_dict()["step"] == 1
    optimizer.load_state_dict(optimizer.state_dict())


def test_optimizers_that_step_in_backward():
    from cygrad.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers

    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.5})
    model(torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(model.weight.detach(), before - 0.5)
    assert model.weight.grad is None and len(_get_in_backward_optimizers(model)) == 1


# --- Checkpoints ---------------------------------------------------------------------------------


def trained():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    gradients(model)
    optimizer.step()
    return model, optimizer


def test_a_checkpoint_comes_back(tmp_path):
    model, optimizer = trained()
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optim": states[1], "step": 3, "list": [torch.ones(1)]}, checkpoint_id=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name[:2] + name[-7:] for name in names] == ["0-tensors", "0-.values", "index.json"[:2] + "ex.json"] and len(
        names
    ) == 3
    other = network()
    fresh = torch.optim.Adam(other.parameters(), lr=0.5)
    gradients(other)
    fresh.step()
    empty = get_state_dict(other, fresh)
    loaded = {"model": empty[0], "optim": empty[1], "step": 0, "list": [torch.zeros(1)]}
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert loaded["step"] == 3 and loaded["list"][0].tolist() == [1]
    set_state_dict(other, fresh, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"])
    assert str(fresh.state_dict()) == str(optimizer.state_dict())
    for a, b in zip(other.parameters(), model.parameters()):
        assert a.equal(b)


@pytest.mark.parametrize("rate", [0.5, torch.tensor(0.5)], ids=["number", "tensor"])
def test_a_checkpoint_is_loaded_into_a_new_optimizer(tmp_path, rate):
    model, optimizer = trained()
    optimizer.param_groups[0]["lr"] = rate
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optim": states[1]}, checkpoint_id=tmp_path)
    other = network()
    before = [p.clone() for p in other.parameters()]
    fresh = torch.optim.AdamW(other.parameters(), lr=rate, weight_decay=0.1)
    empty = get_state_dict(other, fresh)
    assert all(a.equal(b) for a, b in zip(other.parameters(), before))
    assert all(p.grad is None for p in other.parameters()) and fresh.param_groups[0]["lr"] is rate
    loaded = {"model": empty[0], "optim": empty[1]}
    dcp.load(loaded, checkpoint_id=tmp_path)
    set_state_dict(other, fresh, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"])
    assert str(fresh.state_dict()["state"]) == str(optimizer.state_dict()["state"])


def test_asking_for_the_state_makes_no_step_where_there_are_gradients_or_a_closure_is_needed():
    model = network()
    newton = torch.optim.LBFGS(model.parameters())
    assert get_state_dict(model, newton)[1]["state"] == {}
    optimizer = torch.optim.Adam(model.parameters())
    gradients(model)
    assert get_state_dict(model, optimizer)[1]["state"] == {}
    assert all(p.grad is not None for p in model.parameters())


def test_what_does_not_fit_changes_nothing(tmp_path):
    dcp.save({"a": torch.ones(2), "b": torch.ones(3)}, checkpoint_id=tmp_path)
    for state, message in (
        ({"a": torch.zeros(2), "c": torch.zeros(1)}, "Missing key in checkpoint state_dict: c"),
        ({"a": torch.zeros(2), "b": torch.zeros(2)}, "Size mismatch"),
    ):
        with pytest.raises(dcp.CheckpointException, match=message):
            dcp.load(state, checkpoint_id=tmp_path)
        assert state["a"].tolist() == [0, 0]
    partial = {"a": torch.zeros(2), "c": torch.zeros(1)}
    dcp.load(partial, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert partial["a"].tolist() == [1, 1] and partial["c"].tolist() == [0]
    with pytest.raises(dcp.CheckpointException, match="ranks:dict_keys"):
        dcp.load({"a": torch.zeros(2)}, checkpoint_id=tmp_path / "none")


def test_modules_save_and_load_themselves(tmp_path):
    model, other = network(), network()
    with torch.no_grad():
        model[0].weight.fill_(7)
    future = dcp.async_save({"app": model}, checkpoint_id=tmp_path)
    assert isinstance(future, Future) and future.result()
    dcp.load({"app": other}, checkpoint_id=tmp_path)
    assert (other[0].weight == 7).all()


def test_one_file_and_safetensors(tmp_path):
    from cygrad.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

    state = {"model": {"w": torch.ones(2)}, "step": 3}
    dcp.save(state, checkpoint_id=tmp_path / "a")
    dcp_to_torch_save(tmp_path / "a", tmp_path / "all.pt")
    assert str(torch.load(tmp_path / "all.pt")) == str(state)
    torch_save_to_dcp(tmp_path / "all.pt", tmp_path / "b")
    dcp.save({"w": torch.ones(2)}, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path / "c"))
    loaded = {"w": torch.zeros(2)}
    dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(tmp_path / "c"))
    assert loaded["w"].tolist() == [1, 1]


@pytest.mark.usefixtures("group")
def test_states_have_no_names_of_wrappers():
    plain, optimizer = trained()
    expected = get_state_dict(plain, optimizer)
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    for wrapper in (nn.parallel.DistributedDataParallel, FSDP):
        model = wrapper(network())
        own = torch.optim.Adam(model.parameters(), lr=0.5)
        set_state_dict(model, own, model_state_dict=expected[0], optim_state_dict=expected[1])
        assert str(get_state_dict(model, own)) == str(expected)
        flat = get_state_dict(model, own, options=options)
        assert "state.0.weight.exp_avg" in flat[1] and flat[1]["param_groups.0.bias.lr"] == 0.1
        set_state_dict(model, own, model_state_dict=flat[0], optim_state_dict=flat[1])
        assert str(get_state_dict(model, own)) == str(expected)


# --- Launchers and what needs several processes --------------------------------------------------


def run(*options, text, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "cygrad.distributed.run", *options, str(script), "argument"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_script_is_run_as_the_only_process(tmp_path):
    text = (
        "import os, sys, cygrad.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "print(dist.get_rank(), dist.get_world_size(), os.environ['LOCAL_RANK'], sys.argv[1:])\n"
        "print(dist.is_torchelastic_launched())\n"
    )
    done = run("--standalone", "--nproc-per-node=1", "--rdzv-backend", "c10d", text=text, tmp_path=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 1 0 ['argument']\nTrue\n"


def test_functions_are_launched_in_this_process(monkeypatch):
    import os

    from cygrad.distributed.launcher.api import LaunchConfig, elastic_launch

    monkeypatch.delenv("RANK", raising=False)
    launch = elastic_launch(LaunchConfig(1, 1, 1), lambda x: (x, os.environ["RANK"], os.environ["WORLD_SIZE"]))
    assert launch("x") == {0: ("x", "0", "1")} and "RANK" not in os.environ


def test_errors_are_recorded(tmp_path, monkeypatch):
    from cygrad.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record

    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))

    @record
    def main():
        raise KeyError("why")

    with pytest.raises(KeyError):
        main()
    failure = ProcessFailure(0, 1, 1, str(file))
    assert failure.message["message"] == "KeyError: 'why'" and failure.timestamp > 0
    error = ChildFailedError("train", {0: failure})
    assert error.get_first_failure() == (0, failure) and "train FAILED" in str(error)


def test_a_pipeline_of_one_stage():
    from cygrad.distributed.pipelining import PipelineStage, ScheduleGPipe

    model, x, y = network(), torch.randn(4, 3), torch.randn(4, 2)
    loss = nn.functional.mse_loss
    expected = torch.autograd.grad(loss(model(x), y), list(model.parameters()))
    losses = []
    output = ScheduleGPipe(PipelineStage(model, 0, 1, "cpu"), 2, loss).step(x, target=y, losses=losses)
    torch.testing.assert_close(output, model(x).detach())
    torch.testing.assert_close([p.grad for p in model.parameters()], list(expected))
    torch.testing.assert_close(torch.stack(losses).mean(), loss(model(x), y).detach())
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        PipelineStage(model, 0, 2, "cpu")


def test_what_needs_several_processes_says_so():
    from cygrad.distributed import autograd, rpc
    from cygrad.distributed._shard.sharded_tensor import ShardedTensor
    from cygrad.distributed.optim import DistributedOptimizer

    assert not rpc.is_available()
    for call in (
        lambda: rpc.init_rpc("worker"),
        autograd.context,
        lambda: DistributedOptimizer(torch.optim.SGD, []),
        ShardedTensor,
    ):
        with pytest.raises(RuntimeError, match=ONE):
            call()
