"""What libraries rely on when they subclass distributions, constraints and transforms."""

import copy
import inspect
import pickle
import weakref

import pytest

import cygrad as torch
from cygrad import distributions as d
from cygrad import nn
from cygrad.distributions import biject_to, constraints, transform_to
from cygrad.distributions.utils import lazy_property

# -- constraints --


def test_each_kind_of_constraint_has_a_class():
    assert type(constraints.positive) is constraints.greater_than is constraints._GreaterThan
    assert type(constraints.positive)(lower_bound=2.0).check(torch.tensor([1.0, 3.0])).tolist() == [False, True]
    assert isinstance(constraints.real, constraints._Real)
    assert isinstance(constraints.real_vector, constraints._IndependentConstraint)
    assert type(constraints.unit_interval) is constraints.interval
    assert type(constraints.nonnegative_integer)(3).check(torch.tensor([2.0, 3.0, 3.5])).tolist() == [
        False,
        True,
        False,
    ]
    assert issubclass(constraints._LowerCholesky, constraints.Constraint)


def test_what_is_known_of_dependent_constraints():
    with pytest.raises(NotImplementedError, match="event_dim cannot be determined statically"):
        constraints.dependent.event_dim  # noqa: B018
    known = constraints.dependent(is_discrete=True)(event_dim=1)
    assert known.is_discrete and known.event_dim == 1 and constraints.is_dependent(known)
    with pytest.raises(ValueError, match="dependent constraint"):
        known.check(torch.ones(1))

    class Wide(d.Uniform):
        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.interval(self.low - 1, self.high + 1)

    assert constraints.is_dependent(Wide.support) and Wide.support.event_dim == 0
    assert Wide(0.0, 1.0).support.check(torch.tensor(1.5))


def test_constraints_on_parts():
    both = [constraints.positive, constraints.unit_interval]
    cat = constraints.cat(both, dim=-1, lengths=[2, 1])
    assert cat.check(torch.tensor([1.0, -1.0, 2.0])).tolist() == [True, False, False] and cat.event_dim == 0
    stack = constraints.stack(both, dim=-1)
    assert stack.check(torch.tensor([[1.0, 2.0], [-1.0, 0.5]])).tolist() == [[True, False], [False, True]]
    assert stack.event_dim == 1 and constraints.stack(both, dim=0).event_dim == 0
    for registry in (biject_to, transform_to):
        y = registry(cat)(torch.tensor([-3.0, 0.0, 0.0]))
        assert torch.allclose(y, torch.tensor([-3.0, 0.0, 0.0]).exp() * torch.tensor([1, 1, 0.5]))
        y = registry(stack)(torch.zeros(2))
        assert y.tolist() == [1.0, 0.5]


def test_transforms_are_registered_by_class():
    class Even(constraints.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    registry = d.constraint_registry.ConstraintRegistry()
    assert registry.register(Even, lambda c: "by class")(None) == "by class" and registry(Even()) == "by class"

    @registry.register(constraints.positive)
    def above(constraint):
        return constraint.lower_bound

    assert registry(constraints.greater_than(5.0)) == 5.0
    with pytest.raises(NotImplementedError, match="Cannot transform _Real constraints"):
        registry(constraints.real)
    with pytest.raises(TypeError, match="Constraint subclass or instance, but got 3"):
        registry.register(3, above)
    assert isinstance(transform_to(constraints.positive_semidefinite), d.PositiveDefiniteTransform)


# -- distributions --


def test_subclasses_without_an_init_expand():
    class Loud(d.Normal):
        def log_prob(self, value):
            return 2 * super().log_prob(value)

    wide = Loud(torch.zeros(2), 1.0).expand((3, 2))
    assert type(wide) is Loud and wide.loc.shape == wide.scale.shape == wide.batch_shape == (3, 2)
    assert torch.equal(wide.log_prob(torch.zeros(2)), 2 * d.Normal(torch.zeros(3, 2), 1.0).log_prob(torch.zeros(2)))


class Shifted(d.Normal):
    """A subclass that adds a parameter, as PyTorch asks for it."""

    def __init__(self, loc, scale, shift, validate_args=None):
        self.shift = shift
        super().__init__(loc, scale, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Shifted, _instance)
        new.shift = self.shift.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @lazy_property
    def total(self):
        return self.loc + self.shift


def test_subclasses_with_an_init_hand_on_the_new_object():
    base = Shifted(torch.zeros(2), torch.ones(2), torch.tensor([1.0, 2.0]), validate_args=False)
    assert base.total.tolist() == [1, 2]
    wide = base.expand((3, 2))
    assert type(wide) is Shifted and wide.shift.shape == wide.loc.shape == wide.total.shape == (3, 2)
    assert wide._validate_args is False and base.loc.shape == (2,)

    class Again(Shifted):
        pass

    assert type(Again(torch.zeros(2), torch.ones(2), torch.ones(2)).expand((4, 2))) is Again

    class Lacking(d.Gamma):
        def __init__(self, rate):
            super().__init__(1.0, rate)

    with pytest.raises(NotImplementedError, match="Subclass Lacking of Gamma that defines a custom __init__ method"):
        Lacking(torch.ones(1)).expand((2,))


EXAMPLES = {
    "Bernoulli": lambda: d.Bernoulli(logits=torch.randn(2)),
    "Beta": lambda: d.Beta(torch.rand(2) + 1, 2.0),
    "Binomial": lambda: d.Binomial(5, torch.rand(2)),
    "Categorical": lambda: d.Categorical(torch.rand(2, 3)),
    "Cauchy": lambda: d.Cauchy(torch.randn(2), 1.0),
    "Chi2": lambda: d.Chi2(torch.rand(2) + 1),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(torch.rand(2)),
    "Dirichlet": lambda: d.Dirichlet(torch.rand(2, 3) + 1),
    "Exponential": lambda: d.Exponential(torch.rand(2) + 1),
    "FisherSnedecor": lambda: d.FisherSnedecor(torch.rand(2) + 1, 3.0),
    "Gamma": lambda: d.Gamma(torch.rand(2) + 1, 2.0),
    "GeneralizedPareto": lambda: d.GeneralizedPareto(torch.zeros(2), 1.0, 0.1),
    "Geometric": lambda: d.Geometric(torch.rand(2)),
    "Gumbel": lambda: d.Gumbel(torch.randn(2), 1.0),
    "HalfCauchy": lambda: d.HalfCauchy(torch.rand(2) + 1),
    "HalfNormal": lambda: d.HalfNormal(torch.rand(2) + 1),
    "Independent": lambda: d.Independent(d.Normal(torch.randn(2, 3), 1.0), 1),
    "InverseGamma": lambda: d.InverseGamma(torch.rand(2) + 1, 1.0),
    "Kumaraswamy": lambda: d.Kumaraswamy(torch.rand(2) + 1, 2.0),
    "LKJCholesky": lambda: d.LKJCholesky(3, torch.rand(2) + 1),
    "Laplace": lambda: d.Laplace(torch.randn(2), 1.0),
    "LogNormal": lambda: d.LogNormal(torch.randn(2), 1.0),
    "LogisticNormal": lambda: d.LogisticNormal(torch.randn(2, 3), 1.0),
    "LowRankMultivariateNormal": lambda: d.LowRankMultivariateNormal(
        torch.randn(2, 3), torch.randn(3, 1), torch.rand(3) + 1
    ),
    "MixtureSameFamily": lambda: d.MixtureSameFamily(d.Categorical(torch.rand(2, 3)), d.Normal(torch.randn(2, 3), 1.0)),
    "Multinomial": lambda: d.Multinomial(4, torch.rand(2, 3)),
    "MultivariateNormal": lambda: d.MultivariateNormal(torch.randn(2, 3), precision_matrix=2 * torch.eye(3)),
    "NegativeBinomial": lambda: d.NegativeBinomial(torch.tensor([2.0, 3.0]), torch.rand(2)),
    "Normal": lambda: d.Normal(torch.randn(2), 1.0),
    "OneHotCategorical": lambda: d.OneHotCategorical(torch.rand(2, 3)),
    "OneHotCategoricalStraightThrough": lambda: d.OneHotCategoricalStraightThrough(torch.rand(2, 3)),
    "Pareto": lambda: d.Pareto(torch.rand(2) + 1, 3.0),
    "Poisson": lambda: d.Poisson(torch.rand(2) + 1),
    "RelaxedBernoulli": lambda: d.RelaxedBernoulli(torch.tensor(0.5), logits=torch.randn(2)),
    "RelaxedOneHotCategorical": lambda: d.RelaxedOneHotCategorical(torch.tensor(0.5), torch.rand(2, 3)),
    "StudentT": lambda: d.StudentT(torch.rand(2) + 3),
    "TransformedDistribution": lambda: d.TransformedDistribution(d.Normal(torch.randn(2), 1.0), d.ExpTransform()),
    "Uniform": lambda: d.Uniform(torch.rand(2), 3.0),
    "VonMises": lambda: d.VonMises(torch.zeros(2), torch.rand(2) + 1),
    "Weibull": lambda: d.Weibull(torch.rand(2) + 1, 2.0),
    "Wishart": lambda: d.Wishart(torch.tensor([4.0, 5.0]), torch.eye(3)),
}


def test_there_is_an_example_of_every_distribution():
    classes = {name for name in d.__all__ if isinstance(getattr(d, name), type)}
    classes = {name for name in classes if issubclass(getattr(d, name), d.Distribution)}
    assert classes - set(EXAMPLES) == {"Distribution", "ExponentialFamily"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_distribution_expands_into_the_object_it_is_given(name):
    base = EXAMPLES[name]()
    value = base.sample()

    class Own(type(base)):
        def __init__(self, extra):
            self.extra = extra

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Own, _instance)
            new.extra = "set first"
            return super().expand(batch_shape, _instance=new)

    own = Own("original")
    own.__dict__.update({key: each for key, each in vars(base).items() if key != "extra"})
    wide = own.expand((3, 2))
    assert type(wide) is Own and wide.extra == "set first" and own.extra == "original"
    assert wide.batch_shape == (3, 2) and wide.event_shape == base.event_shape and own.batch_shape == (2,)
    assert wide.sample((4,)).shape == (4, 3, 2) + base.event_shape
    assert torch.allclose(wide.log_prob(value), base.log_prob(value).expand(3, 2), equal_nan=True)
    for parameter in base.arg_constraints:
        assert getattr(wide, parameter).shape[:2] == (3, 2), parameter


def test_subclasses_pass_by_the_init_of_their_base():
    # Libraries give the base distributions of their own: `super(torch_class, self).__init__(base, transform)`.
    class Own(d.LogNormal):
        def __init__(self, base):
            super(d.LogNormal, self).__init__(base, d.ExpTransform())

    own = Own(Shifted(torch.zeros(2), torch.ones(2), torch.ones(2)))
    assert type(own.base_dist) is Shifted and own.loc.tolist() == [0, 0]

    class OwnNormal(d.MultivariateNormal):
        def __init__(self, loc, factor):
            super(d.MultivariateNormal, self).__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)
            self.loc, self._unbroadcasted_scale_tril = loc, factor

    own = OwnNormal(torch.zeros(2), 2 * torch.eye(2))
    assert own.covariance_matrix.tolist() == [[4, 0], [0, 4]] and own.rsample((3,)).shape == (3, 2)


def test_a_distribution_without_constraints_says_so():
    class Bare(d.Distribution):
        def log_prob(self, value):
            self._validate_sample(value)
            return torch.zeros(())

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare.log_prob(torch.zeros(()))
    for name in ("arg_constraints", "support", "mean", "variance"):
        with pytest.raises(NotImplementedError):
            getattr(Bare(validate_args=False), name)


def test_the_init_of_other_bases_is_called():
    class Noted:
        def __init__(self):
            self.noted = True

    class Both(d.Normal, Noted):
        pass

    assert Both(0.0, 1.0).noted


def test_lazy_properties():
    class Twice:
        count = 0

        def __init__(self, x):
            self.x = x

        @lazy_property
        def double(self):
            """Twice x."""
            self.count += 1
            return 2 * self.x

    one = Twice(torch.ones(1, requires_grad=True))
    with torch.no_grad():
        assert one.double.requires_grad  # it may be used with gradients later
    assert one.double is one.double and one.count == 1
    assert isinstance(Twice.double, lazy_property) and isinstance(Twice.double, property)
    assert Twice.double.__doc__ == "Twice x."
    assert isinstance(d.MultivariateNormal.precision_matrix, lazy_property)


# -- divergences --


def test_the_nearest_registered_divergence_is_taken():
    class A(d.Normal):
        pass

    class B(A):
        pass

    @d.register_kl(A, d.Normal)
    def from_a(p, q):
        return "A"

    try:
        assert d.kl_divergence(B(0.0, 1.0), d.Normal(0.0, 1.0)) == "A"
        assert d.kl_divergence(d.Normal(0.0, 1.0), B(0.0, 1.0)).item() == 0
    finally:
        d.kl._KL_REGISTRY.pop((A, d.Normal))
    for pair in ((d.Normal(0.0, 1.0), d.Normal), (d.Normal, 3)):
        with pytest.raises(TypeError, match="Expected type_[pq] to be a Distribution subclass"):
            d.register_kl(*pair)


# -- transforms --


class Scale(d.Transform):
    """A transform with the least that a subclass defines."""

    domain = codomain = constraints.real

    def __init__(self, factor, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.factor = factor

    def _call(self, x):
        return self.factor * x

    def _inverse(self, y):
        return y / self.factor

    def log_abs_det_jacobian(self, x, y):
        return torch.full_like(x, self.factor).log()


def test_transforms_of_programs():
    scale = Scale(2.0, cache_size=1)
    assert not scale.bijective and scale.event_dim == 0 and scale._cache_size == 1
    with pytest.raises(NotImplementedError):
        scale.sign  # noqa: B018
    x = torch.ones(2)
    y = scale(x)
    assert isinstance(scale.inv, d.transforms._InverseTransform) and scale.inv._inv is scale and scale.inv(y) is x
    assert scale._cached_x_y == (x, y)
    again = d.ComposeTransform([scale, scale.inv])
    assert torch.equal(again(x), x) and again.with_cache(1)._cache_size == 1
    inverse = scale.inv
    for copied in (copy.deepcopy(scale), pickle.loads(pickle.dumps(scale)), pickle.loads(pickle.dumps(inverse))):
        assert torch.equal(copied(x), scale(x)) or torch.equal(copied(x), inverse(x))
    assert d.TransformedDistribution(d.Normal(0.0, 1.0), scale).log_prob(torch.tensor(0.0)) < 0


def test_the_inverse_of_composed_transforms_is_composed():
    composed = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)])
    inverse = composed.inv
    assert isinstance(inverse, d.ComposeTransform) and inverse.inv is composed
    assert inverse == d.ComposeTransform([part.inv for part in reversed(composed.parts)])
    assert inverse(composed(torch.tensor(0.0))) == 0
    assert d.identity_transform == d.identity_transform.inv


def test_the_inverse_of_a_transform_keeps_it_alive():
    inverse = Scale(2.0).inv
    assert inverse(torch.tensor(4.0)) == 2 and inverse.inv(torch.tensor(4.0)) == 8
    assert inverse._cache_size == 0 and inverse.with_cache()._cache_size == 1
    alive = weakref.ref(inverse)
    del inverse
    assert alive() is None


def test_transforms_are_modules_too():
    class Learned(d.Transform, nn.Module):
        domain = codomain = constraints.real
        bijective = True

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor(2.0))

        def _call(self, x):
            return self.weight * x

        def _inverse(self, y):
            return y / self.weight

        def log_abs_det_jacobian(self, x, y):
            return self.weight.abs().log().expand(x.shape)

        def __hash__(self):
            return nn.Module.__hash__(self)

    learned = Learned()
    assert [name for name, _ in learned.named_parameters()] == ["weight"]
    d.TransformedDistribution(d.Normal(torch.zeros(2), 1.0), [learned]).log_prob(torch.ones(2)).sum().backward()
    # log N(y / w) - log w, differentiated by w = 2 at y = 1: y^2 / w^3 - 1 / w, for each of two numbers.
    assert learned.weight.grad.item() == pytest.approx(2 * (1 / 8 - 1 / 2))


# -- helpers --


def test_helpers_for_matrices():
    from cygrad.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, _precision_to_scale_tril
    from cygrad.distributions.utils import _standard_normal, _sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

    factor = torch.randn(3, 3, dtype=torch.float64).tril(-1) + 2 * torch.eye(3, dtype=torch.float64)
    precision = torch.linalg.inv(factor @ factor.mT)
    assert torch.allclose(_precision_to_scale_tril(precision), factor)
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    assert torch.allclose(_batch_mv(factor, x), x @ factor.mT)
    assert torch.allclose(_batch_mahalanobis(factor, x), ((x @ precision) * x).sum(-1))
    assert _sum_rightmost(x, 2).shape == (4,) and _sum_rightmost(x, 0) is x
    assert _standard_normal((2, 3), torch.float64, "cpu").dtype == torch.float64
    for diag in (-1, 0, 1):
        elements = tril_matrix_to_vec(factor, diag)
        assert torch.equal(vec_to_tril_matrix(elements, diag), factor.tril(diag))
    with pytest.raises(ValueError, match="cannot be expressed"):
        vec_to_tril_matrix(torch.ones(4))
    with pytest.raises(ValueError, match="outside"):
        tril_matrix_to_vec(factor, 3)
    extreme = d.transforms._clipped_sigmoid(torch.tensor([-1e3, 1e3]))
    assert 0 < extreme[0] and extreme[1] < 1


@pytest.mark.parametrize("name", [
    name for name in d.__all__
    if isinstance(getattr(d, name), type) and issubclass(getattr(d, name), d.Distribution)
    and name not in ("Distribution", "ExponentialFamily")
])  # fmt: skip
def test_supports_of_classes_are_constraints(name):
    support = getattr(d, name).support
    assert isinstance(support, d.constraints.Constraint)
    if d.constraints.is_dependent(support):
        assert isinstance(support, d.constraints.dependent_property)
        if name in ("Independent", "MixtureSameFamily"):
            with pytest.raises(NotImplementedError, match="cannot be determined statically"):
                support.is_discrete  # noqa: B018
        elif name != "TransformedDistribution":
            assert support.is_discrete is (name in ("Binomial", "Categorical", "Multinomial"))
            assert support.event_dim == (name == "Multinomial")


def test_what_a_distribution_lacks():
    poisson = d.Poisson(1.0)
    for method, kwargs in (("rsample", {"sample_shape": (2,)}), ("cdf", {"value": 1.0}), ("icdf", {"value": 0.5})):
        with pytest.raises(NotImplementedError):
            getattr(poisson, method)(**kwargs)
    shown = {name: str(inspect.signature(getattr(d.Distribution, name))) for name in ("cdf", "rsample")}
    mixture = d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.zeros(2), torch.ones(2)))
    assert mixture.log_prob(x=torch.tensor(0.0)).item() == pytest.approx(-0.9189385)
    assert mixture.cdf(x=torch.tensor(0.0)).item() == 0.5
    assert shown == {"cdf": "(self, value)", "rsample": "(self, sample_shape=torch.Size([]))"}
