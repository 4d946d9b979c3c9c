"""Functions that make tensors give what PyTorch's give: values, types, strides, errors, warnings."""

import pytest
from oracle.answers import check, lines

pytestmark = pytest.mark.oracle


def names(library):
    """What the expressions may use besides the library."""
    return {
        "x": library.ones(2, 3),
        "xi": library.ones(2, 3, dtype=library.int64),
        "g": library.Generator(),
    }


# Numbers, sequences, arrays, tensors
DATA = """
torch.tensor([np.float64(1)])
torch.tensor([np.float32(1)])
torch.tensor([np.float32(1), 2.0])
torch.tensor([np.float64(1), 2.0])
torch.tensor([2.0, np.float64(1)])
torch.tensor(np.float64(1))
torch.tensor(np.float32(1))
torch.tensor([np.int32(1)])
torch.tensor([np.int32(1), 2])
torch.tensor([2, np.int32(1)])
torch.tensor([torch.tensor(1.0, dtype=torch.float64), 2.0])
torch.tensor([torch.tensor(1), 2.0])
torch.tensor([torch.tensor([1,2]), [2.0,3]])
torch.tensor([])
torch.tensor([[],[]])
torch.tensor([True, 2])
torch.tensor([True, 2.5])
torch.tensor([1, 2j])
torch.tensor("a")
torch.tensor(["a"])
torch.tensor([None])
torch.tensor(None)
torch.tensor({1:2})
torch.tensor([[1,2],[3]])
torch.tensor([[1,2],3])
torch.tensor([1,[2,3]])
torch.tensor([[1,2],[3,"a"]])
torch.tensor(object())
torch.tensor([object()])
torch.tensor(2**70)
torch.tensor(2**63)
torch.tensor([2**63])
torch.tensor(2**63, dtype=torch.uint64)
torch.tensor(-1, dtype=torch.uint8)
torch.tensor(300, dtype=torch.uint8)
torch.tensor([300], dtype=torch.int8)
torch.tensor(1.5, dtype=torch.int64)
torch.tensor([1.5, 2], dtype=torch.int32)
torch.tensor(1j, dtype=torch.float32)
torch.tensor(1.0, dtype=torch.bool)
torch.tensor([1,2], requires_grad=True)
torch.tensor([1.,2], requires_grad=True)
torch.tensor(torch.ones(2))
torch.tensor(torch.ones(2, requires_grad=True))
torch.tensor(range(3))
torch.tensor((1,2))
torch.tensor(np.array(['a']))
torch.tensor(np.array([None]))
torch.tensor([1,2], dtype=float)
torch.tensor([1,2], dtype='float32')
torch.tensor([1], foo=2)
torch.tensor(b"ab")
torch.tensor(bytearray(b"ab"))
torch.tensor(memoryview(b"ab"))
torch.tensor({1,2})
torch.tensor(1.0, pin_memory=False)
torch.tensor(np.float16(1))
torch.tensor(np.bool_(True))
torch.tensor([np.bool_(True)])
torch.tensor(np.longdouble(1))
torch.tensor(1e400)
torch.tensor(float('nan'), dtype=torch.int64)
torch.tensor([[1,2],[3,4]], dtype=torch.float16)
torch.tensor([1,2], dtype=torch.complex64)
torch.tensor([[[]]])
torch.tensor(torch.Size([1,2]))
torch.tensor(x for x in [1])
torch.tensor(np.array([1,2],dtype=np.uint16))
torch.as_tensor([1,2.])
torch.as_tensor(np.ones(2), dtype=torch.float32)
torch.as_tensor(torch.ones(2,requires_grad=True))
torch.asarray([1,2])
torch.asarray(np.ones(2), copy=True)
torch.asarray(torch.ones(2,requires_grad=True), requires_grad=True)
torch.asarray(torch.ones(2), copy=False, dtype=torch.float64)
torch.asarray([1.,2.], copy=False)
torch.from_numpy([1])
torch.from_numpy(np.float32(1))
torch.from_numpy(np.array(['a']))
torch.from_numpy(np.array([1,2], dtype='>i4'))
torch.from_numpy(np.arange(3)[::-1])
torch.from_numpy(np.array([1,2], dtype=np.longlong))
torch.from_numpy(np.array([1,2], dtype=np.longdouble))
torch.from_numpy(np.array([1,2], dtype=object))
torch.from_numpy(np.array([(1,2.0)], dtype=[('a','i4'),('b','f4')])['b'])
torch.from_numpy(np.array([(1,2.0,3)], dtype=[('a','i1'),('b','f4'),('c','i2')])['b'])
torch.tensor([1.0,[2,3]])
torch.tensor([1.0,"a"])
torch.tensor([[1.0],2.0])
torch.tensor([[1.0],[[2.0]]])
torch.tensor([[1.0,2],[[2.0],3]])
torch.tensor([torch.ones(2), torch.ones(2)])
torch.tensor([torch.ones(1), torch.ones(1)])
torch.tensor([[torch.ones(1)], [torch.ones(1)]])
torch.tensor([torch.ones(1), 2.0])
torch.tensor([True, None])
torch.tensor([1, True])
torch.tensor([1j, 1.0], dtype=torch.float32)
torch.tensor([2**40], dtype=torch.int32)
torch.tensor([-200], dtype=torch.uint8)
torch.tensor([-256], dtype=torch.uint8)
torch.tensor([2**64-1], dtype=torch.uint64)
torch.tensor([2**40], dtype=torch.float32)
torch.tensor([2**70], dtype=torch.float32)
torch.tensor([2**70, 1.0])
torch.tensor(2**70, dtype=torch.float64)
torch.tensor([1e300], dtype=torch.float32)
torch.tensor([1e300], dtype=torch.float16)
torch.tensor([1e300], dtype=torch.int64)
torch.tensor([300.5], dtype=torch.int8)
torch.tensor(["a"], dtype=torch.float32)
torch.tensor([None], dtype=torch.float32)
torch.tensor([None], dtype=torch.bool)
torch.tensor("a", dtype=torch.bool)
torch.tensor([[]], dtype=torch.int64)
torch.tensor(np.ones((2,2)), dtype=torch.int32)
torch.scalar_tensor(3)
torch.scalar_tensor(3.5)
torch.scalar_tensor(3, dtype=torch.int64)
torch.scalar_tensor([1])
torch.as_tensor(3)
torch.as_tensor(3, dtype=torch.float16)
torch.as_tensor("a")
torch.as_tensor(np.float64(3))
torch.as_tensor(torch.ones(2,requires_grad=True), dtype=torch.float64)
torch.asarray(3, requires_grad=True)
torch.asarray(3., requires_grad=True)
torch.asarray(torch.ones(2,requires_grad=True), copy=True, requires_grad=True)
torch.asarray(torch.ones(2,requires_grad=True), requires_grad=False)
torch.asarray(np.ones(2), requires_grad=True)
torch.asarray(np.ones(2), copy=False, dtype=torch.float32)
torch.tensor(np.ones((2,3)).T).stride()
torch.tensor(np.ones((2,3)).T, dtype=torch.float32).stride()
torch.tensor([1j], dtype=torch.int64)
torch.tensor([1j], dtype=torch.bool)
torch.tensor([2.5], dtype=torch.bool)
torch.tensor([np.float32(2.5)], dtype=torch.int64)
torch.tensor(np.array([300]), dtype=torch.uint8)
"""

# Sizes, dtypes, out
FILLED = """
torch.zeros(2,3)
torch.zeros((2,3))
torch.zeros([2,3])
torch.zeros(torch.Size([2,3]))
torch.zeros(())
torch.zeros([])
torch.zeros()
torch.zeros(2.0)
torch.ones(-1)
torch.ones(2,-1)
torch.zeros((2,"a"))
torch.zeros("a")
torch.zeros(2, 3.0)
torch.zeros((2,3.0))
torch.zeros(None)
torch.zeros(size=(2,))
torch.zeros(torch.tensor(2))
torch.zeros((torch.tensor(2),3))
torch.zeros(torch.tensor(2),3)
torch.zeros(np.int64(2))
torch.zeros((np.int64(2),3))
torch.zeros(torch.tensor([2,3]))
torch.zeros(True)
torch.zeros(2, dtype=float)
torch.zeros(2, dtype="a")
torch.zeros(2, requires_grad=True)
torch.zeros(2, dtype=torch.int64, requires_grad=True)
torch.zeros(2, out=torch.ones(2))
torch.zeros(3, out=torch.ones(2))
torch.zeros(2, out=torch.ones(2), dtype=torch.float64)
torch.zeros(2, out=torch.ones(2, dtype=torch.float64))
torch.zeros(2, foo=1)
torch.full((2,), 3)
torch.full((2,), 3.0)
torch.full((2,), True)
torch.full((2,), 1j)
torch.full(2, 3)
torch.full((2,), "a")
torch.full((2,), torch.tensor(3))
torch.full((2,), torch.tensor(3.5))
torch.full((2,), torch.tensor([3.5]))
torch.full((2,), 3.7, dtype=torch.int64)
torch.full((2,), 300, dtype=torch.uint8)
torch.full((2,), float('nan'), dtype=torch.int64)
torch.full((2,), 1j, dtype=torch.float32)
torch.full(size=(2,), fill_value=1)
torch.full((2,), 3, out=torch.ones(2))
torch.eye(2)
torch.eye(2,3)
torch.eye(-1)
torch.eye(2,-1)
torch.eye(2, dtype=torch.int64)
torch.eye(2.0)
torch.eye(n=2,m=1)
torch.eye(2, dtype=torch.bool)
torch.empty(2,3, memory_format=torch.contiguous_format).shape
torch.empty(2, pin_memory=True)
torch.empty((2,"a"))
torch.empty(2.0)
torch.zeros(2, out=3)
torch.full((2,), 3, out=torch.ones(2,dtype=torch.int32), dtype=torch.float32)
torch.eye(2, out=torch.ones(2,dtype=torch.int32))
torch.eye(2, out=torch.ones(3))
torch.zeros(2, requires_grad=3)
torch.eye(2,3,dtype=torch.complex64)
torch.eye("a")
"""

# Ranges and grids
RANGES = """
torch.arange(5)
torch.arange(5.)
torch.arange(1,5,2)
torch.arange(0,1,0.25)
torch.arange(5,0)
torch.arange(0,5,-1)
torch.arange(0,5,0)
torch.arange(0,float('inf'))
torch.arange(0,float('nan'))
torch.arange(torch.tensor(3))
torch.arange(5, dtype=torch.float32)
torch.arange(start=1,end=3)
torch.arange(1, end=3)
torch.arange(end=3)
torch.arange(0, 2, step=.5)
torch.arange("a")
torch.arange()
torch.arange(True)
torch.arange(2.5, dtype=torch.int64)
torch.arange(3, out=torch.empty(0))
torch.arange(3, out=torch.empty(0, dtype=torch.int64))
torch.arange(3, requires_grad=True)
torch.arange(3., requires_grad=True)
torch.arange(0, 3, 1j)
torch.arange(5, dtype=torch.bool)
torch.arange(2**40, 2**40+2)
torch.arange(0.1, 0.5, 0.1, dtype=torch.float32)
torch.linspace(0,1,5)
torch.linspace(0,1,1)
torch.linspace(0,1,0)
torch.linspace(0,1,-1)
torch.linspace(0,10,5,dtype=torch.int64)
torch.linspace(0,9,5,dtype=torch.int64)
torch.linspace(start=0,end=1,steps=3)
torch.linspace(torch.tensor(0.),1,3)
torch.linspace(torch.tensor([0.]),1,3)
torch.linspace(0,1j,3)
torch.linspace(0,1,3,dtype=torch.float64)
torch.logspace(0,1,3)
torch.logspace(0,1,3,base=2)
torch.logspace(0,1,-3)
torch.logspace(0,4,5,base=2,dtype=torch.int64)
torch.meshgrid(torch.arange(2), torch.arange(3))
torch.meshgrid(torch.arange(2), torch.arange(3), indexing='xy')
torch.meshgrid([torch.arange(2), torch.arange(3)], indexing='ij')
torch.meshgrid(torch.arange(2), torch.arange(3), indexing='foo')
torch.meshgrid(torch.ones(2), torch.arange(3), indexing='ij')
torch.meshgrid(torch.ones(()), torch.ones(3), indexing='ij')
torch.meshgrid()
torch.meshgrid(torch.ones(2), indexing='ij')
torch.meshgrid(torch.ones(2,requires_grad=True), torch.ones(3),indexing='ij')[0]
torch.meshgrid(torch.ones(2,requires_grad=True), torch.ones(3),indexing='ij')[0].stride()
torch.linspace(0,1,3, out=torch.ones(3,dtype=torch.float64))
torch.linspace(0,1,3, out=torch.ones(2))
torch.arange(10**19)
torch.arange(3.0, 0)
torch.arange(-3)
torch.arange(0)
torch.arange(1, 2, 0.3)
torch.arange(torch.tensor(1.5), torch.tensor(3))
torch.arange(torch.tensor([1]))
torch.arange(np.float32(3))
torch.arange(np.int64(3))
torch.arange(None)
torch.arange(0, None)
torch.arange(0, 10, 3.0)
torch.arange(0, 300, dtype=torch.uint8).sum()
torch.arange(0, 3, dtype=torch.float16)
torch.arange(0, 3, dtype=torch.complex64)
torch.linspace(0, 1, 3, dtype=torch.bool)
torch.linspace(0, 1, torch.tensor(3))
"""

# Like another tensor
LIKE = """
torch.zeros_like(x)
torch.zeros_like(xi)
torch.zeros_like(x, dtype=torch.int64)
torch.zeros_like([1])
torch.zeros_like(x.t()).stride()
torch.zeros_like(x.t(), memory_format=torch.contiguous_format).stride()
torch.zeros_like(torch.ones(1).expand(3)).stride()
torch.zeros_like(torch.ones(4,4)[::2]).stride()
torch.zeros_like(torch.ones(2,3,4).permute(2,0,1)).stride()
torch.zeros_like(x, requires_grad=True).requires_grad
torch.zeros_like(torch.ones(2,requires_grad=True)).requires_grad
torch.full_like(x, 2)
torch.full_like(xi, 2.5)
torch.full_like(x, 2, dtype=torch.int64)
torch.full_like(torch.ones(2), "a")
torch.full_like(torch.ones(2,dtype=torch.uint8), 300)
torch.full_like(torch.ones(2,dtype=torch.int64), float('inf'))
torch.empty_like(torch.ones(1,2).expand(3,2)).stride()
torch.empty_like(torch.ones(2,1).expand(2,3)).stride()
torch.empty_like(torch.ones(4,6)[:,::2].t()).stride()
torch.empty_like(torch.ones(2,3,4,5), memory_format=torch.channels_last).stride()
torch.rand_like(xi)
torch.rand_like(x).dtype
torch.randn_like(xi)
torch.randint_like(x, 5).dtype
torch.randint_like(x, 2, 5).dtype
torch.randint_like(x, 5, 2).dtype
torch.rand_like(x, generator=torch.Generator()).shape
x.new_zeros(2,3)
x.new_zeros((2,3))
xi.new_zeros(2)
x.new_ones(2, dtype=torch.int32)
x.new_full((2,), 3)
xi.new_full((2,), 3.5)
x.new_empty(2).dtype
x.new_tensor([1,2])
xi.new_tensor([1.5,2])
x.new_tensor(torch.ones(2))
x.new_zeros(2, requires_grad=True).requires_grad
x.new(2,3).shape
x.new([1,2])
xi.new([1,2])
xi.new()
torch.ones(2).new_zeros(-1)
torch.ones(2).new_zeros()
torch.ones(2).new_zeros(2.0)
torch.ones(2).new_full(2,1)
torch.zeros_like(torch.ones(2), requires_grad=True, dtype=torch.int64)
torch.zeros_like(input=torch.ones(2))
torch.full_like(torch.ones(2), fill_value=3)
torch.ones(3).new_tensor(np.ones(2))
torch.ones(3).new_tensor(np.ones(2,dtype=np.int64))
torch.ones(3).new_tensor([True])
"""

# The constructor, and `new`
OLD = """
torch.Tensor(2,3).shape
torch.Tensor((2,3))
torch.Tensor([2,3])
torch.Tensor(3).shape
torch.Tensor(3.0)
torch.Tensor()
torch.Tensor(np.ones(2))
torch.Tensor(torch.ones(2))
torch.Tensor(torch.ones(2,dtype=torch.int64))
torch.Tensor(torch.Size([2,3])).shape
torch.Tensor("a")
torch.Tensor(None)
torch.Tensor(-1)
torch.Tensor(2,"a")
torch.Tensor(2, 3.0)
torch.Tensor(True)
torch.Tensor(np.int64(2)).shape
torch.Tensor([[1,2],[3]])
torch.Tensor(["a"])
torch.Tensor([None])
torch.Tensor(range(3))
torch.Tensor(torch.tensor(2.)).shape
torch.Tensor(torch.tensor(2),3).shape
torch.Tensor({1:2})
torch.Tensor([1,2], device='cpu')
torch.Tensor(data=[1,2])
torch.Tensor([1j])
torch.Tensor([True])
torch.ones(2,dtype=torch.int64).new([1.5])
torch.ones(2).new(torch.ones(3)).shape
torch.ones(2).new(torch.Size([3])).shape
torch.ones(2).new((3,))
torch.ones(2).new(3).shape
"""

# A given order in memory, a given memory, and the old form of arange
PLACED = """
torch.empty_strided((2,3),(1,2)).zero_()
torch.empty_strided((2,3),(1,))
torch.empty_strided((2,3),(-1,2))
torch.empty_strided((2,-3),(1,2))
torch.empty_strided((2,3),(0,1)).stride()
torch.empty_strided((2,0),(5,7)).shape
torch.empty_strided((),()).shape
torch.empty_strided(2,3)
torch.empty_strided((2,3),(1,2), dtype=torch.int64, requires_grad=True)
torch.empty_strided((2,3),(1,2), dtype=torch.float64, requires_grad=True).requires_grad
xi.new_empty_strided((2,3),(3,1)).zero_()
torch.empty_permuted((2,3,4),(1,0,2)).stride()
torch.empty_permuted((2,3,4),(2,0,1), dtype=torch.int32).zero_()
torch.empty_permuted((2,3,4),(1,0))
torch.empty_permuted((2,3,4),(1,1,0))
torch.empty_permuted((2,3,4),(1,5,0))
torch.empty_permuted((2,3,4),(-1,0,1))
torch.empty_permuted((2,-3,4),(2,0,1))
torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32)
torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32, count=1, offset=4)
torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32, count=3, offset=4)
torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32, offset=8)
torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32, offset=-1)
torch.frombuffer(bytearray(b'1234567'), dtype=torch.int32)
torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32, count=0)
torch.frombuffer(bytearray(b''), dtype=torch.int32)
torch.frombuffer(3, dtype=torch.int32)
torch.frombuffer(bytearray(b'12345678'), dtype=torch.float32, requires_grad=True).requires_grad
torch.asarray(bytearray(b'12345678'), dtype=torch.int32)
torch.asarray(bytearray(b'12345678'))
torch.asarray(bytearray(b'1234567'), dtype=torch.int32)
torch.asarray(x.__dlpack__())
torch.range(1,4)
torch.range(1,4,0.5)
torch.range(0, 4, dtype=torch.int64)
torch.range(4,1)
torch.range(4,1,-1)
torch.range(1, 4, 0)
torch.vander(xi[0])
torch.vander(x[0], 2, increasing=True)
torch.vander(x[0] > 0)
torch.vander(x, 2)
torch.vander(x[0], -1)
torch.vander(x[0].requires_grad_()).grad_fn
torch.vander(x[0].requires_grad_(), 1)
"""

# What can be said of random numbers without knowing them
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
@pytest.mark.parametrize("expression", lines(DATA + FILLED + RANGES + LIKE + OLD + PLACED + RANDOM))
def test_gives_what_pytorch_gives(expression):
    check(expression, names)
