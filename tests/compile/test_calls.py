"""Kernels that are called again as a whole: other values, other results, errors in the middle of a replay."""

import numpy as np
import pytest
from compile.replays import bits, tensors_in
from compile.twins import Twins, World

import cygrad
from cygrad import nn
from cygrad._core.replay.capture import capture
from cygrad._core.replay.parts import Refusal
from cygrad._core.replay.program import MISS

F = nn.functional


def captured(step, *given):
    """The program of a step, captured and checked."""
    step(*given)
    _, program = capture(lambda: step(*given), list(given), tensors_in)
    assert not isinstance(program, Refusal), program
    _, difference = program.check(lambda: step(*given), list(given), tensors_in)
    assert difference is None
    return program


def kinds(program):
    return [line.kind for line in program.entries]


def test_kernel_in_python_is_called_again_on_other_arguments():
    program = captured(lambda x: F.layer_norm(x * 2, (4,)).sum(0), cygrad.randn(3, 4))
    for _ in range(3):
        x = cygrad.randn(3, 4)
        (found,) = program.replay([x])
        assert bits(found) == bits(F.layer_norm(x * 2, (4,)).sum(0))


def test_results_of_calls_are_new_in_each_replay():
    program = captured(lambda x: cygrad.cumsum(x, 0), cygrad.randn(3, 4))
    one, two = cygrad.randn(3, 4), cygrad.randn(3, 4)
    first, second = program.replay([one])[0], program.replay([two])[0]
    assert bits(first) == bits(cygrad.cumsum(one, 0))
    assert bits(second) == bits(cygrad.cumsum(two, 0))


def test_call_whose_result_nobody_reads_is_left_out():
    def step(x):
        cygrad.cumsum(x, 0)
        return x * 2

    assert "cumsum" not in str(kinds(captured(step, cygrad.randn(3, 4))))


def test_index_out_of_bounds_is_eagers_error():
    table = cygrad.randn(5, 2)
    step = cygrad.compile(lambda i: F.embedding(i, table) * 2)
    for n in range(6):
        places = cygrad.tensor([n % 5, 4 - n % 5])
        assert bits(step(places)) == bits(F.embedding(places, table) * 2)
    assert step._cygrad_step.replays() > 0
    for wrong in (5, -1):
        with pytest.raises(IndexError, match="index out of range in self"):
            step(cygrad.tensor([0, wrong]))
    assert bits(step(cygrad.tensor([0, 1]))) == bits(F.embedding(cygrad.tensor([0, 1]), table) * 2)


def test_a_failed_replay_leaves_nothing_behind():
    norm, total = nn.BatchNorm1d(2), cygrad.zeros(2)

    def step(x, i):
        y = norm(x)
        total.add_(y.sum(0).detach())
        return cygrad.gather(y.detach(), 0, i)

    x, good, wrong = cygrad.randn(4, 2), cygrad.zeros(1, 2, dtype=cygrad.int64), cygrad.full((1, 2), 7)
    compiled = cygrad.compile(step)
    for _ in range(6):
        compiled(x, good)
    assert compiled._cygrad_step.replays() > 0
    program = compiled._cygrad_step.plans.plans[0].program
    before = [bits(t) for t in (norm.running_mean, norm.running_var, total)]
    versions = [t._version for t in (norm.running_mean, total)]
    assert program.replay([x, wrong]) is MISS
    assert "gather" in program.why_missed()
    assert [bits(t) for t in (norm.running_mean, norm.running_var, total)] == before
    assert [t._version for t in (norm.running_mean, total)] == versions
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(x, wrong)


@pytest.mark.parametrize(
    "pick",
    [
        lambda x: x[x > 0],
        cygrad.nonzero,
        cygrad.argwhere,
        lambda x: cygrad.where(x > 0)[0],
        lambda x: cygrad.masked_select(x, x > 0),
        cygrad.unique,
    ],
)
def test_replays_end_where_values_tell_another_number_of_elements(pick):
    x, same, fewer = cygrad.tensor([1.0, 2.0, -1.0]), cygrad.tensor([4.0, -3.0, 5.0]), cygrad.tensor([1.0, -1.0, -1.0])
    fewer = fewer if pick is not cygrad.nonzero and pick is not cygrad.argwhere else cygrad.tensor([1.0, 0.0, 0.0])
    program = captured(pick, x)
    assert bits(program.replay([same])[0]) == bits(pick(same))
    assert program.replay([fewer]) is MISS
    assert "of another shape, at " in program.why_missed()
    counted = captured(lambda x: x * len(pick(x)), x)  # nobody reads the elements
    assert bits(counted.replay([same])[0]) == bits(same * len(pick(same)))
    assert counted.replay([fewer]) is MISS


@pytest.mark.parametrize(
    "ask", [lambda x: bool((x > 0).any()), lambda x: int(x[0].long()), lambda x: cygrad.equal(x, x * 1)]
)
def test_replays_end_where_a_condition_is_another_one(ask):
    total = cygrad.zeros(3)

    def step(x):
        total.add_(x)
        return x * 2 if ask(x) else x * 3

    x, same, other = cygrad.tensor([1.0, 2.0, 3.0]), cygrad.tensor([1.5, 7.0, 5.0]), cygrad.tensor([-5.0, -1.0, np.nan])
    program = captured(step, x)
    assert bits(program.replay([same])[0]) == bits(same * 2)
    before = bits(total), total._version
    assert program.replay([other]) is MISS
    assert "found other values, at " in program.why_missed()
    assert (bits(total), total._version) == before


def test_reading_a_value_is_refused():
    for step in (lambda x: x.item(), float, cygrad.Tensor.tolist, lambda x: cygrad.allclose(x, x)):
        x = cygrad.randn(1)
        _, program = capture(lambda step=step, x=x: step(x), [x], lambda value: [])
        assert isinstance(program, Refusal)


def test_random_numbers_are_refused_in_calls_too():
    x = cygrad.rand(6)
    _, program = capture(lambda: cygrad.binomial(x * 10, x), [x], tensors_in)
    assert isinstance(program, Refusal)


def test_calls_of_the_same_shapes_with_other_numbers_differ():
    x = cygrad.randn(3, 4)
    programs = [captured(lambda x, dim=dim: cygrad.flip(x, (dim,)), x) for dim in (0, 1)]
    assert programs[0].difference(programs[1]) is not None
    assert programs[0].difference(captured(lambda x: cygrad.flip(x, (0,)), x)) is None


LAYERS = {
    "layer norm": lambda: (nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)),
    "batch norm": lambda: (nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)),
    "group norm": lambda: (nn.Linear(4, 8), nn.GroupNorm(2, 8), nn.SiLU(), nn.Linear(8, 3)),
    "softmax": lambda: (nn.Linear(4, 8), nn.LogSoftmax(1), nn.Linear(8, 3), nn.Softmax(1)),
    "convolution": lambda: (
        *(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 4, 2, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        nn.Linear(4, 3),
    ),
    "average pooling": lambda: (nn.Unflatten(1, (1, 2, 2)), nn.AvgPool2d(2, 1, 1), nn.Flatten(), nn.Linear(9, 3)),
    "activations": lambda: (nn.Linear(4, 8), nn.Softplus(), nn.ELU(), nn.Hardswish(), nn.Linear(8, 3)),
}


@pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_layers_train_alike(layers, optimizer):
    make = {"SGD": lambda p: cygrad.optim.SGD(p, lr=0.05, momentum=0.5), "Adam": lambda p: cygrad.optim.Adam(p, 0.01)}
    twins = Twins(lambda: World(make[optimizer], layers))
    twins.run(8)
    assert twins.replays >= 3


class Sequences(World):
    """Sequences through a recurrent layer, or attention."""

    def __init__(self, make):
        super().__init__(layers=lambda: (make(),))
        self.x, self.y = cygrad.randn(3, 5, 4), cygrad.randn(3, 5, 4)

    def step(self, x, y):
        self.optimizer.zero_grad()
        found = self.net[0](x) if isinstance(self.net[0], nn.TransformerEncoderLayer) else self.net[0](x)[0]
        loss = ((found - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss


SEQUENCES = {
    "lstm": lambda: nn.LSTM(4, 4, batch_first=True),
    "gru": lambda: nn.GRU(4, 4, batch_first=True),
    "rnn": lambda: nn.RNN(4, 4, batch_first=True),
    "transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
}


@pytest.mark.parametrize("make", SEQUENCES.values(), ids=SEQUENCES)
def test_sequences_train_alike(make):
    twins = Twins(lambda: Sequences(make))
    twins.run(8)
    assert twins.replays >= 3


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_convolution_trains_alike_on_threads(threads):
    before = cygrad.get_num_threads()
    cygrad.set_num_threads(threads)
    try:
        conv = nn.Conv2d(8, 16, 3, padding=1)
        x = cygrad.randn(4, 8, 16, 16)

        def step(x):
            conv.zero_grad()
            loss = F.max_pool2d(F.relu(conv(x)), 2).square().mean()
            loss.backward()
            return loss

        compiled = cygrad.compile(step)
        for _ in range(6):
            expected = bits(step(x)), [bits(p.grad) for p in conv.parameters()]
            assert (bits(compiled(x)), [bits(p.grad) for p in conv.parameters()]) == expected
        assert compiled._cygrad_step.replays() > 0
    finally:
        cygrad.set_num_threads(before)


def test_numpy_arrays_given_to_kernels_are_not_kept():
    x = cygrad.randn(64, 64)
    program = captured(lambda x: cygrad.cumsum(x, 0), x)
    kept = np.asarray(x)
    copy = kept.copy()
    program.replay([cygrad.randn(64, 64)])
    assert (kept == copy).all()


@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_with_a_mask(is_causal):
    """A mask that hides a row for the first time runs as it is written, and then has a plan of its own."""
    query, key, value = (cygrad.randn(2, 6, 4, requires_grad=True) for _ in range(3))
    some, row = cygrad.zeros(6, 6), cygrad.zeros(6, 6)
    some[:, 4:] = row[2] = -float("inf")

    def step(mask):
        given = {"is_causal": True} if is_causal else {"attn_mask": mask}
        out = cygrad.nn.functional.scaled_dot_product_attention(query, key, value, **given)
        (out * out).sum().backward()
        found = [t.grad.clone() for t in (query, key, value)]
        query.grad = key.grad = value.grad = None
        return found

    compiled = cygrad.compile(step)
    for mask in (some, some, row, some, row):
        for _ in range(4):
            assert [bits(t) for t in compiled(mask)] == [bits(t) for t in step(mask)]
    assert compiled._cygrad_step.replays() >= 8, compiled.explain()
