"""Properties of random tensors that do not depend on the numbers match PyTorch: dtypes, shapes, errors, warnings."""

import pytest
from oracle.answers import check, lines
from oracle.ops.test_creation import names

pytestmark = pytest.mark.oracle

RANDOM = """
torch.arange(0, 1, 0.3, dtype=torch.int64)
torch.linspace(0, 3j, 4, dtype=torch.float32)
torch.linspace(0, 3j, 4)
torch.logspace(0, 3, 4, torch.tensor(2.0))
torch.linspace(0, 1)
torch.linspace(0, 1, 2.5)
torch.linspace('a', 1, 2)
torch.normal(x, x * 1j)
torch.normal(x * 1j, 1.0).dtype
torch.bernoulli(x * 2)
torch.ones(2, 3).bernoulli_(torch.ones(2))
torch.ones(2, 3).bernoulli_(torch.ones(3))
torch.randint(0, 5, 3)
torch.randint(-3, (2,))
torch.randint(0, 5, (3,), requires_grad=True)
torch.Generator().manual_seed(-1).initial_seed()
torch.Generator().manual_seed('a')
torch.manual_seed(-1).initial_seed()
torch.get_rng_state().dtype
torch.poisson(x).shape
torch.poisson(x.half()).dtype
torch.poisson(x.requires_grad_()).grad_fn
torch.poisson(xi)
torch.poisson(-x)
torch.poisson(1.0)
torch.binomial(xi, x)
torch.binomial(x, xi)
torch.binomial(x, 0.5)
torch.binomial(x.double(), x)
torch.binomial(x * 3, x)
x.geometric_(0)
x.geometric_(1)
x.geometric_(1.5)
xi.geometric_(0.5).dtype
(xi > 0).geometric_(0.5)
x.geometric_(torch.ones(2))
x.requires_grad_().clone().geometric_(0.5).grad_fn
x.cauchy_().shape
x.cauchy_(1, 0)
x.cauchy_(1, -1)
xi.cauchy_()
x.cauchy_('a')
x.requires_grad_().clone().cauchy_().grad_fn
x.log_normal_().shape
x.log_normal_(mean=1, std=0)
x.log_normal_(1, -1)
xi.log_normal_()
x.log_normal_('a')
x.requires_grad_().clone().log_normal_().grad_fn
x.exponential_(float('inf'))
x.exponential_('a')
x.normal_('a')
x.uniform_('a')
x.uniform_(-3e38, 3e38)
x.random_(0, 2**24+2).shape
x.random_(-2**25, 0).shape
torch.randint(0, 2**30, (2,), dtype=torch.float32).shape
torch.randint(0, 10, (3,), dtype=torch.complex64)
torch.randperm(3, dtype=torch.bool)
torch.randperm(3, dtype=torch.complex64)
torch.randint_like(x, 3, generator=g).shape
torch.rand(2,3).shape
torch.rand((2,3)).shape
torch.rand()
torch.rand([]).shape
torch.rand(2, dtype=torch.int64)
torch.randn(2, dtype=torch.int64)
torch.rand(2, dtype=torch.complex64).dtype
torch.randn(2, dtype=torch.float16).dtype
torch.rand(2, generator=torch.Generator(), requires_grad=True).requires_grad
torch.rand(2, out=torch.ones(2)).shape
torch.randint(10, (2,)).dtype
torch.randint(3, 10, (2,)).dtype
torch.randint(10, 3, (2,)).dtype
torch.randint(10, (2,), dtype=torch.float32).dtype
torch.randint(0, (2,)).dtype
torch.randint(0, 300, (2,), dtype=torch.uint8).dtype
torch.randint(-5, 3, (2,), dtype=torch.uint8).dtype
torch.randint(10, 2)
torch.randint(2.5, (2,))
torch.randint(low=0, high=5, size=(2,)).dtype
torch.randint(high=5, size=(2,)).dtype
torch.randint(5)
torch.randint(5, (2,), generator=torch.Generator()).dtype
torch.randint(2, (3,), dtype=torch.bool).dtype
torch.randint(3, (3,), dtype=torch.bool).dtype
torch.randint(0, 5, size=(2,)).dtype
torch.randint(5, size=(2,)).dtype
torch.randperm(5).dtype
torch.randperm(-1)
torch.randperm(5, dtype=torch.float32).dtype
torch.randperm(0)
torch.randperm(2.5)
torch.randperm(300, dtype=torch.uint8)
torch.normal(0., 1., (2,)).shape
torch.normal(0, 1, (2,)).dtype
torch.normal(torch.zeros(2), 1.).shape
torch.normal(0., torch.ones(2)).shape
torch.normal(torch.zeros(2), torch.ones(2)).shape
torch.normal(torch.zeros(2), torch.ones(3)).shape
torch.normal(torch.zeros(2,1), torch.ones(3)).shape
torch.normal(torch.zeros(2), -1.).shape
torch.normal(torch.zeros(2), -torch.ones(2)).shape
torch.normal(0., 1.)
torch.normal(torch.zeros(2, dtype=torch.int64), 1.)
torch.normal(torch.zeros(2, requires_grad=True), 1.).grad_fn
torch.normal(0., torch.ones(2, requires_grad=True)).grad_fn
torch.normal(torch.zeros(2), torch.ones(2, requires_grad=True)).grad_fn
torch.normal(torch.zeros(2)).shape
torch.normal(mean=0., std=1., size=(2,)).shape
torch.normal(0., -1., (2,))
torch.bernoulli(torch.full((2,), .5)).dtype
torch.bernoulli(torch.full((2,), 1.5)).dtype
torch.bernoulli(torch.full((2,), .5), 0.9).dtype
torch.bernoulli(torch.ones(2,dtype=torch.int64))
torch.bernoulli(torch.full((2,), .5, requires_grad=True)).grad_fn
torch.full((2,), .5).bernoulli(0.3).shape
torch.full((2,), .5).bernoulli(p=1.3).shape
torch.full((2,), .5).bernoulli_(1.3).shape
torch.full((2,), .5).bernoulli_(torch.full((2,),.5)).shape
torch.full((2,), 5).bernoulli_(0.5).dtype
torch.full((2,), 5).bernoulli_(torch.full((2,),1)).dtype
torch.ones(2).uniform_(2,1)
torch.ones(2).uniform_(2,2)
torch.ones(2, dtype=torch.int64).uniform_()
torch.ones(2, dtype=torch.int64).normal_()
torch.ones(2).normal_(0,-1)
torch.ones(2).uniform_(0, float('inf'))
torch.ones(2).uniform_(0, float('nan'))
torch.ones(2).random_().dtype
torch.ones(2).random_(5).dtype
torch.ones(2).random_(5, 3).dtype
torch.ones(2).random_(5, 5).dtype
torch.ones(2).random_(0).dtype
torch.ones(2, dtype=torch.uint8).random_(300)
torch.ones(2, dtype=torch.uint8).random_(-3, 5)
torch.ones(2, dtype=torch.bool).random_().dtype
torch.ones(2).exponential_(0)
torch.ones(2).exponential_(-1)
torch.ones(2, dtype=torch.int64).exponential_()
torch.ones(2, requires_grad=True).uniform_()
torch.ones(2, requires_grad=True).normal_()
torch.ones(2, requires_grad=True).exponential_()
torch.ones(2, requires_grad=True).clone().uniform_().grad_fn
torch.ones(2, requires_grad=True).clone().normal_().grad_fn
torch.ones(2, requires_grad=True).clone().exponential_().grad_fn
torch.ones(2, requires_grad=True).clone().random_().grad_fn
torch.ones(2, requires_grad=True).clone().bernoulli_().grad_fn
torch.ones(2, requires_grad=True).clone().bernoulli_(torch.full((2,),.5)).grad_fn
torch.multinomial(torch.ones(3), 2).dtype
torch.multinomial(torch.ones(3), 4).dtype
torch.multinomial(torch.ones(3), 4, replacement=True).shape
torch.multinomial(torch.ones(2,3), 2).shape
torch.multinomial(torch.ones(2,3,4), 2).shape
torch.multinomial(torch.tensor([1.,-1]), 1)
torch.multinomial(torch.tensor([0.,0]), 1)
torch.multinomial(torch.tensor([1.,float('nan')]), 1)
torch.multinomial(torch.tensor([1.,float('inf')]), 1)
torch.multinomial(torch.tensor([1,2]), 1)
torch.multinomial(torch.ones(3), 0)
torch.multinomial(torch.ones(3,requires_grad=True), 1).shape
g.device
g.manual_seed(3)
g.initial_seed()
torch.Generator().initial_seed()
g.get_state().dtype
g.set_state(torch.zeros(3))
g.set_state(3)
g.manual_seed(-1).initial_seed()
g.manual_seed(2**64)
g.manual_seed(2**64-1).initial_seed()
g.manual_seed(1.5)
g.manual_seed("a")
g.manual_seed(-2**63).initial_seed()
g.manual_seed(-2**63-1)
torch.manual_seed(3)
torch.manual_seed(3) is torch.default_generator
torch.manual_seed(3.7).initial_seed()
torch.manual_seed("3").initial_seed()
torch.set_rng_state(3)
torch.Generator('cpu')
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", lines(RANDOM))
def test_gives_what_pytorch_gives(expression):
    check(expression, names)
