"""What holds for data parallel training in a world of any size: functions that every rank runs."""

import copy
import hashlib
import pickle
import threading
from contextlib import nullcontext

import numpy as np

import cygrad as torch
import cygrad.distributed as dist
from cygrad import nn
from cygrad.nn.parallel import DistributedDataParallel

_LOCK = threading.Lock()


def seeded(seed, make):
    """What `make()` returns after seeding: threads share the random numbers, so that one at a time may."""
    with _LOCK:
        torch.manual_seed(seed)
        return make()


def mlp(seed=0):
    return seeded(seed, _mlp)


def _mlp():
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


class Transformer(nn.Module):
    """A small language model with shared weights in embedding and output."""

    def __init__(self, width=16, words=11, length=6):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True) for _ in range(2)
        )

    def forward(self, x):
        h = self.words(x) + self.places
        for layer in self.layers:
            h = layer(h)
        return h @ self.words.weight.T


def transformer(seed=0):
    return seeded(seed, Transformer)


def data(model, step, rank, n=3):
    """A batch of one rank."""
    g = np.random.default_rng((step, rank))
    if isinstance(model, Transformer):
        return torch.from_numpy(g.integers(0, 11, (n, 6))), torch.from_numpy(g.integers(0, 11, n * 6))
    return torch.from_numpy(g.standard_normal((n, 12), dtype=np.float32)), torch.from_numpy(g.integers(0, 4, n))


def loss_of(output, target):
    return nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), target)


def weights(module):
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def digest(module):
    return hashlib.sha256(weights(module).numpy().tobytes()).hexdigest()[:16]


def trained_alone(make, steps, size, optimizer=torch.optim.SGD, lr=0.1):
    """The weights after steps with the joined batch of all ranks."""
    model = make()
    opt = optimizer(model.parameters(), lr=lr)
    for step in range(steps):
        xs, ys = zip(*(data(model, step, rank) for rank in range(size)))
        opt.zero_grad()
        loss_of(model(torch.cat(xs)), torch.cat(ys)).backward()
        opt.step()
    return weights(model)


def trained(make, steps, rank, set_to_none=True, hook=None, optimizer=torch.optim.SGD, lr=0.1, **options):
    """The module after steps with a part of the data. Modules are made differently in each rank."""
    inner = make(seed=rank)
    if rank == 0:
        inner.load_state_dict(make().state_dict())
    model = DistributedDataParallel(inner, **options)
    if hook is not None:
        model.register_comm_hook(*hook)
    opt = optimizer(model.parameters(), lr=lr)
    for step in range(steps):
        x, y = data(inner, step, rank)
        opt.zero_grad(set_to_none=set_to_none)
        loss_of(model(x), y).backward()
        opt.step()
    return model


def same_everywhere(value):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    assert all(each == found[0] for each in found), found
    return True


def check_equals_one_process():
    rank, size = dist.get_rank(), dist.get_world_size()
    for make in (mlp, transformer):
        expected = trained_alone(make, 4, size)
        for options in (
            {},
            {"bucket_cap_mb_list": [0.0005, 0.002]},
            {"bucket_cap_mb_list": [0.0005, 0.002], "gradient_as_bucket_view": True},
            {"bucket_cap_mb_list": [0.0005], "gradient_as_bucket_view": True, "set_to_none": False},
            {"find_unused_parameters": True, "bucket_cap_mb_list": [0.001]},
            {"static_graph": True, "bucket_cap_mb_list": [0.001]},
        ):
            model = trained(make, 4, rank, **options)
            torch.testing.assert_close(weights(model.module), expected, rtol=1e-6, atol=1e-6)
            same_everywhere(digest(model.module))
            assert len(model._reducer.buckets) == 1 or "bucket_cap_mb_list" in options


def check_modules_that_differ():
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        return
    for other, first, more in (
        (nn.Linear(3, 4), "[1]: params[0] in this process with sizes [4, 3] appears not to match", "'weight'"),
        (nn.Sequential(nn.Linear(3, 3)), "DDP expects same model across all ranks, but Rank 0 has 2", "'0.weight'"),
        (nn.Linear(3, 3, bias=False), "DDP expects same model across all ranks, but Rank 0 has 2 params, "
         "while rank 1 has inconsistent 1 params.", "only rank 0 has 'bias'"),
        (nn.Linear(3, 3).double(), "DDP expects same model", "torch.float64"),
    ):  # fmt: skip
        try:
            DistributedDataParallel(other if rank == 1 else nn.Linear(3, 3))
        except RuntimeError as error:
            assert str(error).startswith(first) and more in str(error), error
        else:
            raise AssertionError("no error")


def check_low_level_names():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensors = [torch.full((3,), rank + 1.0), torch.tensor([rank]), torch.full((2,), rank + 2.0)]
    dist._broadcast_coalesced(dist.group.WORLD, tensors, 16, size - 1)
    assert [each.tolist() for each in tensors] == [[size + 0.0] * 3, [size - 1], [size + 1.0] * 2]
    dist._verify_params_across_processes(dist.group.WORLD, tensors)
    if size > 1:
        try:
            dist._verify_params_across_processes(dist.group.WORLD, [torch.ones(1 + rank // (size - 1))])
        except RuntimeError as error:
            assert "appears not to match sizes" in str(error), error
        else:
            raise AssertionError("no error")


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x, heads):
        h = self.body(x)
        return sum(getattr(self, name)(h) for name in heads)


def check_unused_parameters():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(2, 3)
    for options in ({}, {"bucket_cap_mb_list": [1e-6]}):
        model = DistributedDataParallel(seeded(0, TwoHeads), **options)
        model(x, ["left", "right"]).sum().backward()
        for heads, where in (
            (["left"], "on every rank"),
            (
                ["left"] if rank == size - 1 else ["left", "right"],
                f"on rank {size - 1}" if size > 1 else "on every rank",
            ),
        ):
            try:
                model(x, heads).sum().backward()
            except RuntimeError as error:
                text = str(error)
                assert text.startswith("Expected to have finished reduction in the prior iteration before starting")
                assert f"right.weight: {where}\n  right.bias: {where}" in text and "left" not in text, text
                assert f"the forward call of rank {rank}: {__file__}:" in text
            else:
                raise AssertionError("no error")
        model(x, ["left", "right"]).sum().backward()  # and it goes on

        model = DistributedDataParallel(seeded(0, TwoHeads), find_unused_parameters=True, **options)
        model(x, ["left"]).sum().backward()
        assert model.module.right.weight.grad is None
        mine = ["left"] if rank else ["left", "right"]
        model.zero_grad()
        model(x, mine).sum().backward()
        plain = seeded(0, TwoHeads)
        plain(x, ["left", "right"]).sum().backward()
        torch.testing.assert_close(model.module.right.weight.grad, plain.right.weight.grad / size)
        torch.testing.assert_close(model.module.left.weight.grad, plain.left.weight.grad)


def check_accumulation():
    """`no_sync`, several backward passes, and passes through parts."""
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(mlp(), bucket_cap_mb_list=[0.0005])
    alone = mlp()
    batches = [[data(alone, step, each) for each in range(size)] for step in range(3)]
    for all_of_step in batches:
        for x, y in all_of_step:
            (loss_of(alone(x), y) / size).backward()
    expected = [p.grad for p in alone.parameters()]

    def compare():
        for p, gradient in zip(model.parameters(), expected):
            torch.testing.assert_close(p.grad, gradient, rtol=1e-5, atol=1e-6)
        model.zero_grad()

    with model.no_sync():
        for step in range(2):
            x, y = batches[step][rank]
            loss_of(model(x), y).backward()
    x, y = batches[2][rank]
    loss_of(model(x), y).backward()
    compare()
    for step in range(3):  # each pass is reduced: the mean of means is the mean
        x, y = batches[step][rank]
        loss_of(model(x), y).backward()
    compare()
    losses = [loss_of(model(x), y) for x, y in (batches[step][rank] for step in range(3))]
    for loss in losses[:2]:
        loss.backward()
    losses[2].backward()
    compare()
    sum(loss_of(model(x), y) for x, y in (batches[step][rank] for step in range(3))).backward()
    compare()


class Words(nn.Module):
    """A layer, two heads, of which a pass uses one or both, and an embedding with a sparse gradient."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 12, sparse=True)
        self.heads = TwoHeads()
        self.body = nn.Linear(12, 3)

    def forward(self, x, heads=("left", "right")):
        return self.heads(self.body(x @ self.words(torch.arange(5)[:1]).T * x), heads)


def check_means_of_all_elements():
    """`mean_loss` and `average="sum"`: the mean over the elements of all ranks, which have 1, 2, ... each."""
    rank, size = dist.get_rank(), dist.get_world_size()
    parts = [[data(None, 10 * step + each, each, n=each + 1)[0] for each in range(size)] for step in range(4)]
    alone = seeded(0, Words)
    heads = [("left", "right"), ("left",), ("right",), ("left", "right")]
    for joined, used in zip(parts, heads):
        (alone(torch.cat(joined), used) ** 2).mean().backward()
    expected = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in alone.parameters()]
    for average in ("ranks", "sum"):
        for views in (False, True):
            model = DistributedDataParallel(
                seeded(0, Words), average=average, find_unused_parameters=True, bucket_cap_mb_list=[1e-4],
                gradient_as_bucket_view=views,
            )  # fmt: skip
            total = 0.0
            for step, used in enumerate(heads):  # the second is sent with the third; the first and the last alone
                x = parts[step][rank]

                with model.no_sync() if step == 1 else nullcontext():
                    losses = model(x, used) ** 2
                    loss = dist.mean_loss(losses.sum(), losses.numel(), average=average)
                    loss.backward()
                loss = loss.detach()
                dist.all_reduce(loss, dist.ReduceOp.AVG if average == "ranks" else dist.ReduceOp.SUM)
                total += loss
            found = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in model.module.parameters()]
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
            with torch.no_grad():
                means = sum((alone(torch.cat(joined), used) ** 2).mean() for joined, used in zip(parts, heads))
            torch.testing.assert_close(total, means)


def check_counts():
    rank, size = dist.get_rank(), dist.get_world_size()
    half = dist.mean_loss(torch.ones(3, dtype=torch.float16), torch.tensor([rank * 1000]), average="sum")
    expected = 1 / (1000 * sum(range(size))) if size > 1 else float("inf")
    torch.testing.assert_close(half, torch.full((3,), expected, dtype=torch.float16))
    assert dist.mean_loss(torch.zeros(()), 0).isnan()
    for call, error, text in (
        (lambda: dist.mean_loss(3.0, 1), TypeError, "must be a floating-point tensor, but got float"),
        (lambda: dist.mean_loss(torch.ones(2, dtype=torch.int64), 1), TypeError, "got one of torch.int64"),
        (lambda: dist.mean_loss(torch.ones(1), torch.ones(2)), ValueError, "count must have one element, but has the"),
        (lambda: dist.mean_loss(torch.ones(1), 1, average="mean"), ValueError, "'mean'"),
        (lambda: DistributedDataParallel(nn.Linear(1, 1), average="mean"), ValueError, "'mean'"),
        (
            lambda: DistributedDataParallel(nn.Linear(1, 1), average="sum").register_comm_hook(None, print),
            ValueError, "a hook decides itself",
        ),
    ):  # fmt: skip
        try:
            call()
        except error as found:
            assert text in str(found), found
        else:
            raise AssertionError(text)


def check_sums_while_others_have_no_batch():
    """`join` with `average="sum"`: two passes a step, of which the second comes to the sum of the first."""
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False), average="sum")
    with model.join():
        for step in range(rank + 1):
            model.zero_grad()
            for _ in range(2):
                model(torch.ones(1, 2)).sum().backward()
            assert model.module.weight.grad.tolist() == [[2.0 * (size - step)] * 2], (step, model.module.weight.grad)


def check_buffers_and_ignored():
    rank = dist.get_rank()
    norm = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    norm[1].running_mean.fill_(rank)
    model = DistributedDataParallel(norm)
    assert norm[1].running_mean.tolist() == [0] * 4
    norm[1].running_mean.fill_(rank + 5)
    model.eval()(torch.ones(2, 3))
    assert norm[1].running_mean.tolist() == [5] * 4
    alone = seeded(rank, lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4)))
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(alone, ["1.weight"])
    with torch.no_grad():
        alone[1].weight.fill_(rank)
    model = DistributedDataParallel(alone)
    assert (alone[1].weight == rank).all()
    (model(torch.ones(1, 3)).sum() * (rank + 1)).backward()
    same_everywhere(alone[0].weight.grad.tolist())
    torch.testing.assert_close(alone[1].weight.grad, (rank + 1) * alone[0](torch.ones(1, 3)).detach().expand(4, 4))


def check_kinds():
    """Several dtypes, frozen and complex parameters, half precision, sparse gradients."""
    rank, size = dist.get_rank(), dist.get_world_size()

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.single_ = nn.Parameter(torch.ones(3))
            self.double_ = nn.Parameter(torch.ones(3, dtype=torch.float64))
            self.half_ = nn.Parameter(torch.ones(3, dtype=torch.float16))
            self.brain = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
            self.complex_ = nn.Parameter(torch.ones(3, dtype=torch.complex64))
            self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
            self.table = nn.Embedding(5, 2, sparse=True)

        def forward(self, factor, index):
            total = self.single_ * self.double_ * self.half_ * self.brain * self.frozen * self.complex_.abs()
            return (total * factor).sum() + self.table(index).sum() * factor

    model = DistributedDataParallel(Mixed())
    assert len(model._reducer.buckets) == 6
    for _ in range(2):
        model.zero_grad()
        model(rank + 1, torch.tensor([0, rank + 1 if rank < 4 else 4])).backward()
        mean = (size + 1) / 2
        for name in ("single_", "double_", "half_", "brain"):
            parameter = getattr(model.module, name)
            assert parameter.grad.dtype == parameter.dtype and parameter.grad.tolist() == [mean] * 3, name
        assert model.module.complex_.grad.tolist() == [mean] * 3 and model.module.frozen.grad is None
        dense = model.module.table.weight.grad.to_dense()
        assert model.module.table.weight.grad.is_sparse
        torch.testing.assert_close(dense[0], torch.full((2,), mean))
        if size < 4:
            assert [round(each * size, 4) for each in dense[1:, 0].tolist()] == [
                float(r + 1) if r < size else 0.0 for r in range(4)
            ]


def check_hooks():
    from cygrad.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook

    rank, size = dist.get_rank(), dist.get_world_size()
    expected = trained_alone(mlp, 4, size)
    caps = {"bucket_cap_mb_list": [0.0005]}
    for hook, tolerance in (
        (default_hooks.allreduce_hook, 1e-6),
        (default_hooks.fp16_compress_hook, 2e-3),
        (default_hooks.bf16_compress_hook, 1e-2),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 2e-3),
    ):
        for options in (caps, {"gradient_as_bucket_view": True, **caps}):
            model = trained(mlp, 4, rank, hook=(None, hook), **options)
            torch.testing.assert_close(weights(model.module), expected, rtol=tolerance, atol=tolerance)
            same_everywhere(digest(model.module))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    model = trained(mlp, 6, rank, hook=(state, powerSGD_hook.powerSGD_hook), **caps)
    same_everywhere(digest(model.module))
    assert state.compression_stats()[0] > 1
    assert torch.linalg.matrix_rank(model.module[2].weight.grad, rtol=1e-4) == 2
    subgroup, _ = dist.new_subgroups(1)
    state = post_localSGD_hook.PostLocalSGDState(None, subgroup, start_localSGD_iter=2)
    model = trained(mlp, 2, rank, hook=(state, post_localSGD_hook.post_localSGD_hook), **caps)
    same_everywhere(digest(model.module))
    found = [None] * size
    model = trained(mlp, 4, rank, hook=(state, post_localSGD_hook.post_localSGD_hook), **caps)
    dist.all_gather_object(found, digest(model.module))
    assert len(set(found)) == size
    for power in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
        full, half = (
            trained(mlp, 5, rank, hook=(powerSGD_hook.PowerSGDState(None, 2, 2, random_seed=1), each), **caps)
            for each in (power, default_hooks.fp16_compress_wrapper(power))
        )
        torch.testing.assert_close(weights(half.module), weights(full.module), rtol=2e-2, atol=2e-2)
        same_everywhere(digest(half.module))
    model = DistributedDataParallel(mlp())
    model.register_comm_hook(None, lambda state, bucket: 3)
    try:
        model(torch.ones(1, 12)).sum().backward()
    except RuntimeError as error:
        assert str(error).startswith("callback must return a torch.futures.Future object, but got int")
    else:
        raise AssertionError("no error")
    seen = []

    def hook(state, bucket):
        seen.append((bucket.index(), bucket.is_last(), [p.shape for p in bucket.parameters()]))
        return default_hooks.allreduce_hook(None, bucket)

    trained(mlp, 3, rank, hook=("state", hook), **caps)
    same_everywhere(seen)
    count = len(seen) // 3
    assert [index for index, _, _ in seen] == list(range(count)) * 3 and [last for _, last, _ in seen][count - 1]


def with_norm():
    return nn.Sequential(nn.Linear(12, 5), nn.BatchNorm1d(5, affine=False), nn.Linear(5, 4)).eval()


def check_join():
    """Ranks with 1, 2, ... batches: as if those without had sent zeros."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for by_all in (True, False):
        inner = seeded(1, with_norm)
        model = DistributedDataParallel(inner, bucket_cap_mb_list=[0.0001])
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        with model.join(divide_by_initial_world_size=by_all):
            for step in range(rank + 1):
                x, y = data(model, step, rank)
                opt.zero_grad()
                loss_of(model(x), y).backward()
                opt.step()
        same_everywhere(digest(model.module))
        alone = seeded(1, with_norm)
        opt = torch.optim.SGD(alone.parameters(), lr=0.1)
        for step in range(size):
            active = range(step, size)
            opt.zero_grad()
            for each in active:
                x, y = data(alone, step, each)
                (loss_of(alone(x), y) / (size if by_all else len(active))).backward()
            opt.step()
        torch.testing.assert_close(weights(model.module), weights(alone), rtol=1e-5, atol=1e-6)
    if size > 1:
        try:
            with model.join(throw_on_early_termination=True):
                for _ in range(rank + 1):
                    loss_of(model(x), y).backward()
        except RuntimeError as error:
            text = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
            assert str(error).startswith("Rank 0 exhausted all inputs." if rank == 0 else text), error
        else:
            raise AssertionError("no error")


def check_penalties_on_gradients():
    """`autograd.grad` of an output begins no reduction."""
    rank, size = dist.get_rank(), dist.get_world_size()

    def penalty(model, step, each):
        x, y = data(model, step, each)
        x.requires_grad_()
        output = model(x)
        (slope,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        return loss_of(output, y) + slope.square().mean()

    model, alone = DistributedDataParallel(mlp(), bucket_cap_mb_list=[0.0005]), mlp()
    for step in range(3):  # buckets are ordered anew after the first
        model.zero_grad()
        penalty(model, step, rank).backward()
        alone.zero_grad()
        sum(penalty(alone, step, each) / size for each in range(size)).backward()
        for ours, expected in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, expected.grad, rtol=1e-5, atol=1e-6)


def check_travels():
    """A pickled or copied wrapper averages anew, in the group of all."""
    rank, size = dist.get_rank(), dist.get_world_size()
    original = DistributedDataParallel(mlp(), bucket_cap_mb_list=[0.0005], gradient_as_bucket_view=True)
    original(torch.ones(1, 12)).sum().backward()
    for model in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        assert model.process_group is dist.group.WORLD
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            x, y = data(model, step, rank)
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()
        torch.testing.assert_close(weights(model.module), trained_alone(mlp, 3, size), rtol=1e-5, atol=1e-6)


def check_optimizers_in_backward():
    """They step after gradients have been averaged, whether they came before the wrapper or not."""
    from cygrad.distributed.optim import _apply_optimizer_in_backward

    rank, size = dist.get_rank(), dist.get_world_size()
    expected = trained_alone(mlp, 3, size)
    for registers in (True, False):
        module = mlp()
        _apply_optimizer_in_backward(torch.optim.SGD, module.parameters(), {"lr": 0.1}, register_hook=registers)
        model = DistributedDataParallel(module, bucket_cap_mb_list=[0.0005], gradient_as_bucket_view=registers)
        for step in range(3):
            x, y = data(model, step, rank)
            loss_of(model(x), y).backward()
            assert all(parameter.grad is None for parameter in module.parameters())
        torch.testing.assert_close(weights(module), expected, rtol=1e-5, atol=1e-6)
        same_everywhere(digest(module))


def check_wrapped_anew():
    """A former wrapper does nothing any more; one that is used once is enough."""
    rank, size = dist.get_rank(), dist.get_world_size()
    module = mlp()
    old = DistributedDataParallel(module)
    count = len(module[0].weight._post_accumulate_grad_hooks)
    del old
    DistributedDataParallel(module)(torch.ones(1, 12) * (rank + 1)).sum().backward()
    same_everywhere(module[0].weight.grad.tolist())
    model = DistributedDataParallel(module)
    assert len(module[0].weight._post_accumulate_grad_hooks) == count == 1
    module.zero_grad()
    try:
        output = model(torch.ones(1, 12))
        output.register_hook(lambda gradient: 1 / 0)
        output.sum().backward()
    except ZeroDivisionError:
        pass
    model(torch.ones(1, 12) * (rank + 1)).sum().backward()  # a pass that has failed is forgotten
    same_everywhere(module[0].weight.grad.tolist())
    assert size == dist.get_world_size()


def check_sums_in_order():
    gradients = {}
    for average in ("ranks", "sum"):
        with dist.deterministic(True, shards=4):
            model = DistributedDataParallel(mlp(), average=average)
            mine = dist.my_shards()
            try:
                dist.mean_loss(torch.ones(()), 1)
            except RuntimeError as error:
                assert "different numbers of micro-batches" in str(error), error
            else:
                raise AssertionError("no error")
        for _ in range(2):  # the second step adds to the first
            for shard in mine:
                x, y = data(model.module, 0, shard)
                loss_of(model(x), y).backward()
        gradients[average] = [p.grad for p in model.parameters()]
    assert all((4 * mean).equal(total) for mean, total in zip(*gradients.values()))


def weights_in_order(shards=4, steps=4, dropout=0.0):
    """Digests of weights and statistics under `deterministic`. Threads share random numbers: there, no dropout."""

    def make():
        return nn.Sequential(
            nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 16), nn.ReLU(),
            nn.Linear(16, 4),
        )  # fmt: skip

    inner = seeded(0, make)
    g = np.random.default_rng(0)
    xs = torch.from_numpy(g.standard_normal((shards * steps * 4, 12), dtype=np.float32))
    ys = torch.from_numpy(g.integers(0, 4, shards * steps * 4))
    dataset = torch.utils.data.TensorDataset(xs, ys)
    with dist.deterministic(True, shards=shards):
        model = DistributedDataParallel(inner)
        sampler = dist.MicroBatchSampler(dataset, 4)
    batches = iter(torch.utils.data.DataLoader(dataset, batch_sampler=sampler))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(sampler.steps):
        opt.zero_grad()
        for _ in range(len(sampler._mine)):
            x, y = next(batches)
            loss_of(model(x), y).backward()
        opt.step()
    state = inner.state_dict()
    return {name: hashlib.sha256(value.numpy().tobytes()).hexdigest()[:12] for name, value in state.items()}


CHECKS = {name: value for name, value in list(globals().items()) if name.startswith("check_")}
