"""vmap of ops that draw random numbers."""

import pytest

import cygrad
from cygrad import func

F = cygrad.nn.functional

PLACES = cygrad.full((40, 6), 0.5)
DRAWS = {
    "rand": lambda x: x + cygrad.rand(6),
    "randn": lambda x: cygrad.randn(6),
    "rand_like": cygrad.rand_like,
    "randint": lambda x: cygrad.randint(1000, (6,)),
    "randint_like": lambda x: cygrad.randint_like(x, 1000),
    "randperm": lambda x: cygrad.randperm(6) + x,
    "normal of numbers": lambda x: cygrad.normal(0.0, 1.0, (6,)),
    "normal of a mean": lambda x: cygrad.normal(x, 1.0),
    "normal of a deviation": lambda x: cygrad.normal(0.0, x),
    "normal of both": lambda x: cygrad.normal(x, x[:1]),
    "bernoulli": lambda x: cygrad.bernoulli(x.repeat(6)),
    "bernoulli of a number": lambda x: cygrad.bernoulli(x.repeat(6), 0.5),
    "poisson": lambda x: cygrad.poisson(x * 1000),
    "binomial": lambda x: cygrad.binomial(cygrad.full((6,), 1000.0), x),
    "multinomial": lambda x: cygrad.multinomial(x.repeat(200), 3),
    "multinomial of rows": lambda x: cygrad.multinomial(x.repeat(400).view(2, -1), 3, replacement=True),
    "dropout": lambda x: F.dropout(x.repeat(6)),
    "dropout in place": lambda x: F.dropout(x.repeat(6), inplace=True),
    "dropout of channels": lambda x: F.dropout1d(x.repeat(36).view(1, 36, 6)),
    "alpha_dropout": lambda x: F.alpha_dropout(x.repeat(6), 0.5, True),
    "uniform_": lambda x: x.clone().uniform_(-1, 1),
    "normal_": lambda x: x.clone().normal_(3),
    "exponential_": lambda x: x.clone().exponential_(2),
    "cauchy_": lambda x: x.clone().cauchy_(),
    "log_normal_": lambda x: x.clone().log_normal_(),
    "geometric_": lambda x: x.clone().geometric_(0.01),
    "random_": lambda x: x.clone().random_(1000),
    "bernoulli_": lambda x: x.repeat(6).bernoulli_(0.5),
    "bernoulli_ of a tensor": lambda x: x.repeat(6).bernoulli_(x.repeat(6)),
    "gradient": func.grad(lambda x: (F.dropout(x.repeat(6)) * cygrad.arange(36.0)).sum()),
    "tangent": lambda x: func.jvp(lambda y: F.dropout(y.repeat(6)), (x,), (x,))[1],
    "batch in a batch": lambda x: func.vmap(lambda y: y + cygrad.rand(2), randomness="different")(x),
    "the same in a batch": lambda x: func.vmap(lambda y: y + cygrad.rand(2), randomness="same")(x),
}
OF_PARAMETERS = ["bernoulli", "poisson", "binomial", "multinomial", "multinomial of rows", "bernoulli_ of a tensor"]
OF_PARAMETERS += ["normal of a mean", "normal of a deviation", "normal of both"]


@pytest.mark.parametrize("name", DRAWS)
def test_each_sample_has_random_numbers_of_its_own(name):
    calls = []

    def draw(x):
        calls.append(x)
        return DRAWS[name](x)

    rows = func.vmap(draw, randomness="different")(PLACES)
    assert len(calls) == 1
    assert rows.shape == (40, *DRAWS[name](PLACES[0]).shape)
    assert len({tuple(row.flatten().tolist()) for row in rows}) > 35
    if name == "batch in a batch":
        assert len(set(rows.flatten().tolist())) > 400
    if name == "the same in a batch":
        assert rows[:, 0].equal(rows[:, 5])


@pytest.mark.parametrize("name", DRAWS)
def test_all_samples_have_the_same_random_numbers(name):
    if name in OF_PARAMETERS:
        with pytest.raises(RuntimeError, match="Vmap does not currently support same randomness with a batched tensor"):
            func.vmap(DRAWS[name], randomness="same")(PLACES)
    elif name != "batch in a batch":
        rows = func.vmap(DRAWS[name], randomness="same")(PLACES)
        assert rows.equal(rows[:1].expand(rows.shape))


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_refused_by_default(name):
    if " in a batch" not in name:
        state = cygrad.get_rng_state()
        with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
            func.vmap(DRAWS[name])(PLACES)
        assert cygrad.get_rng_state().equal(state)


def test_random_numbers_follow_the_parameters_of_their_sample():
    chance = cygrad.tensor([[0.0], [1.0]]).expand(2, 50)
    assert func.vmap(cygrad.bernoulli, randomness="different")(chance).equal(chance)
    assert func.vmap(lambda p: p.new_empty(50).copy_(p).bernoulli_(p), randomness="different")(chance).equal(chance)
    mean = cygrad.tensor([0.0, 1e6])
    drawn = func.vmap(lambda m: cygrad.normal(m, cygrad.ones(50)), randomness="different")(mean)
    assert drawn[0].abs().max() < 100 and (drawn[1] - 1e6).abs().max() < 100
    weights = cygrad.eye(3).expand(2, 3, 3)
    assert (
        func.vmap(lambda w: cygrad.multinomial(w, 1), randomness="different")(weights).flatten().tolist()
        == [0, 1, 2] * 2
    )


def test_numbers_that_can_not_be_drawn_at_once_are_drawn_in_a_loop():
    """With parameters shared by all samples, with `out`, and beside an op without samples."""
    p = cygrad.full((36,), 0.5)
    for draw in lambda x: cygrad.bernoulli(p) + x[0], lambda x: cygrad.rand(6, out=cygrad.empty(6)), F.gumbel_softmax:
        rows = func.vmap(draw, randomness="different")(PLACES)
        assert len({tuple(row.tolist()) for row in rows}) == 40


def test_a_generator_is_drawn_from():
    generators = [cygrad.Generator().manual_seed(3) for _ in range(2)]
    first, second = (func.vmap(lambda x, g=g: cygrad.bernoulli(x, generator=g), randomness="different")(PLACES)
                     for g in generators)  # fmt: skip
    assert first.equal(second)


def test_random_numbers_are_refused_before_a_loop_begins():
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        func.vmap(cygrad.bernoulli)(cygrad.full((2, 3), 0.5))  # without a warning about a missing rule


@pytest.mark.parametrize("named", [False, True])
def test_different_samples_get_the_next_numbers_and_no_others(named):
    """None is drawn for one sample alone."""
    generator = cygrad.default_generator if not named else cygrad.Generator()
    given = {"generator": generator} if named else {}
    generator.manual_seed(3)
    found = func.vmap(
        lambda x: (x + cygrad.rand(20, **given), cygrad.bernoulli(x + PLACES[0], **given), cygrad.randn(20, **given)),
        randomness="different",
    )(cygrad.zeros(30))
    behind = cygrad.rand(4, **given)
    generator.manual_seed(3)
    expected = (
        cygrad.rand(30, 20, **given),
        cygrad.bernoulli(PLACES[0].expand(30, 6), **given),
        cygrad.randn(30, 20, **given),
    )
    assert all(a.equal(b) for a, b in zip(found, expected, strict=True)) and behind.equal(cygrad.rand(4, **given))


def test_nested_batches_get_the_next_numbers_and_no_others():
    def inner(x):
        return func.vmap(lambda y: y + cygrad.rand(5), randomness="different")(x)

    cygrad.manual_seed(4)
    found = func.vmap(inner, randomness="different")(cygrad.zeros(7, 6))
    behind = cygrad.rand(4)
    cygrad.manual_seed(4)
    assert found.equal(cygrad.rand(7, 6, 5)) and behind.equal(cygrad.rand(4))
