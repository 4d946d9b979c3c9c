"""Products and nn.functional match PyTorch's in calls beyond the samples: legacy arguments, weights, `inplace`, `out`,
saved tensors, wrong dtypes.
"""

import pytest
from oracle.answers import check, lines

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def factors(library):
    """Matrices, vectors, and stacks of matrices."""

    def ones(*size):
        return library.ones(*size, requires_grad=True)

    return {
        "F": library.nn.functional,
        "a": ones(2, 3),
        "b": ones(3, 4),
        "v": ones(3),
        "u": ones(2),
        "B": ones(5, 2, 3),
        "C": ones(5, 3, 4),
    }


# Products
PRODUCTS = """
a@b
a@v
u@a
v@v
B@b
B@v
v@C
B@C
C.transpose(1,2)@v
torch.ones(7,1,2,3,requires_grad=True)@C
B@b.detach()
B.detach()@b
B.detach()@v
torch.mm(a,b)
torch.bmm(B,C)
torch.mv(a,v)
torch.dot(v,v)
torch.inner(a,a)
torch.inner(B,a)
torch.inner(v, torch.tensor(2.))
torch.inner(a, b)
torch.inner(v, u)
torch.outer(u,v)
torch.ger(u,v)
torch.outer(a,v)
torch.addmm(u, a, b)
torch.addmm(torch.ones(4), a, b, beta=2, alpha=3)
torch.addmm(torch.ones(4), a, b)
torch.addmm(torch.ones(3), a, b)
torch.addmm(torch.ones(4), a, a)
torch.addmm(torch.ones(4), a, v)
torch.addmm(1, a, b)
torch.addmv(u, a, v)
torch.addmv(v, a, v)
torch.addmv(u, a, u)
torch.baddbmm(torch.ones(4), B, C)
torch.baddbmm(torch.ones(3), B, C)
torch.mm(a,a)
torch.mm(a,v)
torch.mm(v,a)
torch.mm(a,b.double())
torch.mm(a,b.long())
torch.mm(a.long(),b.long())
torch.mm(a.bool(),b.bool())
torch.mm(a.half(),b.half())
torch.mm(a,3)
torch.mm(3,a)
torch.bmm(B,B)
torch.bmm(B,a)
torch.bmm(a,B)
torch.bmm(B,C[:4])
torch.bmm(B,C.double())
torch.mv(a,u)
torch.mv(v,a)
torch.mv(a,a)
torch.mv(a,v.double())
torch.dot(v,u)
torch.dot(a,v)
torch.dot(v,v.double())
torch.dot(v.long(),v.long())
torch.dot(v.bool(),v.bool())
a@a
a@u
v@a
v@u
a@torch.tensor(2.)
torch.tensor(2.)@a
B@B
B@C[:4]
a@b.double()
a@b.long()
B@C.double()
v@v.double()
a@v.double()
B@b.double()
B@b.t()
B@u
v@torch.ones(5,2,3)
torch.matmul(a, 3)
torch.matmul(a.detach(), b.detach(), out=torch.ones(2,4))
torch.matmul(a.detach(), b.detach(), out=torch.ones(2,4).double())
torch.mm(a.detach(), b.detach(), out=torch.ones(2,4).long())
torch.mm(input=a, mat2=b)
torch.matmul(input=a, other=b)
torch.bmm(input=B, mat2=C)
torch.mv(input=a, vec=v)
torch.dot(input=v, tensor=v)
torch.outer(input=v, vec2=v)
torch.inner(input=a, other=a)
a.matmul(other=b)
a.addmm_(a, torch.ones(3,3))
torch.ones(2,3).addmm_(a.detach(), torch.ones(3,3))
torch.ones(3).addmm_(a.detach(), torch.ones(3,3))
torch.ones(2).addmv_(a.detach(), torch.ones(3))
(a@b).grad_fn._saved_self
(a@b).grad_fn._saved_mat2
(a@v).grad_fn._saved_vec
(v@v).grad_fn._saved_tensor
torch.bmm(B,C).grad_fn._saved_mat2
torch.addmm(torch.ones(4), a, b).grad_fn._saved_mat1
torch.addmm(torch.ones(4), a, b).grad_fn._saved_alpha
torch.addmm(torch.ones(4), a, b).grad_fn.next_functions
torch.mm(torch.ones(0,3),torch.ones(3,2)).shape
torch.mm(torch.ones(2,0),torch.ones(0,2))
(torch.ones(5,2,0)@torch.ones(0,2)).shape
(torch.ones(0,2,3)@torch.ones(3,2)).shape
(torch.ones(0,2,3)@torch.ones(3)).shape
torch.ones(2,3,dtype=torch.complex64).requires_grad_()@torch.ones(3,1,dtype=torch.complex64)
torch.addmm(torch.ones(5,2,4), a, b)
torch.addmm(torch.full((4,),float('nan')), a, b, beta=0)
torch.addmm(torch.ones(4), a, b, beta=1.5)
torch.addmm(torch.ones(4).long(), a.long(), b.long(), beta=1.5)
torch.addmm(torch.ones(4).double(), a, b)
torch.addmm(torch.ones(4), a, b.double())
torch.addmm(torch.ones(4), torch.ones(3), b)
torch.addmv(torch.ones(2), a, torch.ones(4))
torch.addmv(torch.ones(1), a, torch.ones(3))
torch.addmv(torch.tensor(1.), a, torch.ones(3))
torch.addmv(torch.ones(2,1), a, torch.ones(3))
torch.addmv(torch.ones(2), torch.ones(3), torch.ones(3))
torch.addmv(torch.ones(2).double(), a, torch.ones(3))
torch.addmv(torch.full((2,),float('nan')), a, torch.ones(3), beta=0)
torch.addmv(torch.ones(2), a, torch.ones(3), beta=2, alpha=3)
torch.baddbmm(torch.ones(5,2,4), torch.ones(5,2,3), torch.ones(5,3,4), beta=2, alpha=.5)
torch.baddbmm(torch.ones(5,2,4).double(), torch.ones(5,2,3), torch.ones(5,3,4))
torch.baddbmm(torch.ones(5,2,4), torch.ones(5,2,3), torch.ones(5,3,4).double())
torch.baddbmm(torch.ones(5,2,4), torch.ones(5,2,3), torch.ones(4,3,4))
torch.baddbmm(torch.ones(4), torch.ones(5,2,3), torch.ones(5,4,4))
torch.baddbmm(torch.ones(4), torch.ones(2,3), torch.ones(5,4,4))
torch.baddbmm(torch.ones(2,5,2,4), torch.ones(5,2,3), torch.ones(5,3,4))
"""


@pytest.mark.parametrize("expression", lines(PRODUCTS))
def test_products(expression):
    check(expression, factors)


def layer(library):
    """An input `m` and a stack of inputs, a weight, a bias."""

    def ones(*size):
        return library.ones(*size, requires_grad=True)

    return {
        "F": library.nn.functional,
        "m": ones(2, 3),
        "batch": ones(5, 2, 3),
        "w": ones(4, 3),
        "b": ones(4),
    }


# linear
LINEAR = """
F.linear(m,w,b)
F.linear(m,w)
F.linear(batch,w,b)
F.linear(batch,w)
F.linear(m[0],w,b)
F.linear(m[0],w)
F.linear(m,w[0])
F.linear(m,w[0],b[0])
F.linear(batch,w[0])
F.linear(m,w,b[:3])
F.linear(m,torch.ones(4,5),b)
F.linear(m,torch.ones(4,5))
F.linear(batch,torch.ones(4,5),b)
F.linear(batch,torch.ones(4,5))
F.linear(m[0],torch.ones(4,5),b)
F.linear(m[0],torch.ones(4,5))
F.linear(m.double(),w,b)
F.linear(m.double(),w)
F.linear(m.long(),w,b)
F.linear(batch.double(),w,b)
F.linear(m,w,b.double())
F.linear(torch.tensor(1.),w,b)
F.linear(m,torch.ones(4,3,2),b)
F.linear(m,w,torch.ones(2,4))
F.linear(m,w,3)
F.linear(3,w,b)
F.linear(torch.ones(2,3,3), torch.ones(4,3), torch.ones(2,1,4)).shape
F.linear(torch.ones(2,3,3), torch.ones(4,3), torch.ones(6,4))
F.linear(torch.ones(2,3), torch.ones(4,3), torch.ones(1))
F.linear(torch.ones(2,3), torch.ones(4,3), torch.tensor(1.))
F.linear(torch.ones(2,3).long(), torch.ones(4,3).long(), torch.ones(4).long())
F.linear(torch.ones(2,0), torch.ones(4,0), torch.ones(4))
F.linear(torch.ones(0,3), torch.ones(4,3), torch.ones(4))
F.linear(torch.ones(3), torch.ones(3))
F.linear(torch.ones(3), torch.ones(3), torch.tensor(1.))
"""


@pytest.mark.parametrize("expression", lines(LINEAR))
def test_linear(expression):
    check(expression, layer)


def logits(library):
    """Logits for 3 classes, for 2 classes and 3 pixels, and class indices."""
    return {
        "F": library.nn.functional,
        "x": library.linspace(-1, 2, 6).reshape(2, 3).requires_grad_(),
        "t": library.tensor([0, 2]),
        "B": library.linspace(-1, 1, 30).reshape(5, 2, 3).requires_grad_(),
    }


# softmax, nll_loss, cross_entropy
CLASSIFICATION = """
torch.softmax(x,1)
x.softmax(-1)
x.softmax(dim=1,dtype=torch.float64)
F.softmax(x)
F.softmax(x[0])
F.softmax(B)
F.softmax(x, dim=2)
F.softmax(x, dim=-3)
F.softmax(x, 1, 3, torch.float64)
F.softmax(x.long(), dim=1)
torch.softmax(x.long(), 1)
torch.softmax(x.long(), 1, dtype=torch.float32)
torch.softmax(torch.tensor(3.), 0)
torch.softmax(torch.tensor(3.), 1)
torch.softmax(torch.ones(0,3), 1)
torch.softmax(torch.ones(3,0), 1)
torch.softmax(torch.tensor([float('inf'),1.]), 0)
torch.softmax(torch.tensor([-float('inf'),-float('inf')]), 0)
torch.log_softmax(torch.tensor([-float('inf'),-float('inf')]), 0)
torch.log_softmax(x, 1)
F.log_softmax(x)
torch.softmax(x, 'a')
torch.softmax(x, 1).grad_fn._saved_dim
torch.softmax(x, 1).grad_fn._saved_result
torch.softmax(x,1,dtype=torch.float64).grad_fn.next_functions
torch.softmax([1.],0)
torch.softmax(x, 1.0)
torch.softmax(input=x, dim=1)
torch.softmax(B, 0)
torch.log_softmax(B[0], 0)
F.cross_entropy(x,t)
F.cross_entropy(x,t).grad_fn.next_functions
F.cross_entropy(x,t,reduction='none')
F.cross_entropy(x,t,reduction='sum')
F.cross_entropy(x,t,reduction='foo')
F.cross_entropy(x,t,label_smoothing=0.1)
F.cross_entropy(x,t,label_smoothing=0.1,reduction='none')
F.cross_entropy(x,t,label_smoothing=0.1,reduction='sum',weight=torch.tensor([1.,2,3]))
F.cross_entropy(x,t,label_smoothing=0.1,weight=torch.tensor([1.,2,3]))
F.cross_entropy(x,t,label_smoothing=1.1)
F.cross_entropy(x,t,label_smoothing=-.1)
F.cross_entropy(x,torch.softmax(torch.ones(2,3),1),reduction='none')
F.cross_entropy(x,torch.softmax(torch.ones(2,3),1),reduction='sum')
F.cross_entropy(x,torch.softmax(torch.ones(2,3),1),reduction='sum',weight=torch.tensor([1.,2,3]),label_smoothing=.2)
F.cross_entropy(B,torch.softmax(B.detach(),1),weight=torch.tensor([1.,2]),reduction='none').shape
F.cross_entropy(x,torch.ones(2,4))
F.cross_entropy(x,torch.ones(2))
F.cross_entropy(x,torch.tensor([0,3]))
F.cross_entropy(x,torch.tensor([0,-1]))
F.cross_entropy(x,torch.tensor([0,-100]))
F.cross_entropy(x,torch.tensor([-100,-100]))
F.cross_entropy(x,torch.tensor([0,1,2]))
F.cross_entropy(x,torch.tensor([[0],[1]]))
F.cross_entropy(x,torch.tensor([0,1],dtype=torch.int32))
F.cross_entropy(x,torch.tensor([0,1],dtype=torch.uint8))
F.cross_entropy(x,torch.tensor([True,False]))
F.cross_entropy(x,3)
F.cross_entropy(x[0],torch.tensor(1))
F.cross_entropy(x[0],torch.tensor(1),reduction='none')
F.cross_entropy(x[0],torch.tensor(1),label_smoothing=.1)
F.cross_entropy(x[0],torch.tensor(1),label_smoothing=.1,reduction='none')
F.cross_entropy(x[0],torch.tensor([1]))
F.cross_entropy(x[0],torch.tensor([1,2]))
F.cross_entropy(B,torch.zeros(5,3,dtype=torch.long))
F.cross_entropy(B,torch.zeros(5,3,dtype=torch.long),label_smoothing=.3)
F.cross_entropy(B,torch.zeros(5,3,dtype=torch.long),label_smoothing=.3,reduction='none').sum(1)
F.cross_entropy(B,torch.zeros(5,3,dtype=torch.long),label_smoothing=.3,weight=torch.tensor([1.,2]))
F.cross_entropy(B,torch.zeros(5,2,dtype=torch.long))
F.cross_entropy(torch.ones(2,3,4,5,requires_grad=True),torch.zeros(2,4,5,dtype=torch.long))
F.cross_entropy(torch.ones(2,3,4,5,6,requires_grad=True),torch.zeros(2,4,5,6,dtype=torch.long))
F.cross_entropy(torch.ones(2,3,4,5,6,requires_grad=True),torch.zeros(2,3,5,6,dtype=torch.long),reduction='none')
F.cross_entropy(torch.tensor(1.),torch.tensor(0))
F.cross_entropy(x,t,weight=torch.tensor([1.,2,3]))
F.cross_entropy(x,t,weight=torch.ones(2))
F.cross_entropy(x,t,weight=torch.ones(3,dtype=torch.float64))
F.cross_entropy(x,t,weight=torch.ones(3,requires_grad=True))
F.cross_entropy(x,t,torch.ones(3),False)
F.cross_entropy(x,t,size_average=False)
F.cross_entropy(x,t,reduce=False)
F.cross_entropy(x.long(),t)
F.cross_entropy(torch.ones(0,3),torch.zeros(0,dtype=torch.long))
F.cross_entropy(torch.ones(0,3),torch.zeros(0,dtype=torch.long),reduction='sum')
F.cross_entropy(torch.ones(2,0),torch.zeros(2,dtype=torch.long))
F.cross_entropy([1.],t)
F.nll_loss(x,t)
F.nll_loss(x,torch.tensor([0,3]))
F.nll_loss(x,torch.tensor([0.,1]))
F.nll_loss(x,torch.tensor([0,1,1]))
F.nll_loss(x[0],torch.tensor(1))
F.nll_loss(torch.tensor(1.),torch.tensor(1))
F.nll_loss(B,torch.zeros(5,3,dtype=torch.long))
F.nll_loss(B,torch.zeros(5,3,dtype=torch.long),weight=torch.tensor([3.,4]),reduction='sum')
F.nll_loss(torch.ones(2,3,4,5,requires_grad=True),torch.zeros(2,4,dtype=torch.long))
F.nll_loss(torch.ones(2,3,4,5,requires_grad=True),torch.zeros(2,4,6,dtype=torch.long))
F.nll_loss(torch.ones(2,3,4,5,requires_grad=True),torch.zeros(3,4,5,dtype=torch.long))
F.nll_loss(x,t,reduction='none')
F.nll_loss(x,t,weight=torch.ones(2))
F.nll_loss(x,t,weight=torch.ones(3,1))
F.nll_loss(x,t,reduction='x')
F.cross_entropy(x, torch.ones(2,3), ignore_index=2)
F.cross_entropy(x, torch.ones(2,3), weight=torch.ones(2))
F.cross_entropy(torch.ones(0,3), torch.ones(0,3))
F.cross_entropy(x, torch.tensor([0,-100]), label_smoothing=.1)
F.cross_entropy(x, torch.tensor([-100,-100]), label_smoothing=.1)
F.nll_loss(x.detach().long(), torch.tensor([0,1]))
F.nll_loss(torch.ones(2,3,4), torch.zeros(2,5).long())
F.nll_loss(torch.ones(2,3,4), torch.zeros(2,4,4).long())
F.nll_loss(torch.ones(2,3,4), torch.zeros(2).long())
F.nll_loss(torch.ones(2,3), torch.zeros(2,1).long())
F.nll_loss(torch.ones(3), torch.zeros(2).long())
F.nll_loss(torch.ones(2,3,4,5), torch.zeros(2,5,4).long())
F.nll_loss(torch.ones(2,3), torch.tensor(1))
F.nll_loss([1.], torch.tensor(1))
F.nll_loss(torch.ones(2,3), [1])
"""


@pytest.mark.parametrize("expression", lines(CLASSIFICATION))
def test_classification(expression):
    check(expression, logits)


def pairs(library):
    """Outputs and targets of several kinds."""

    def spaced(low, high):
        return library.linspace(low, high, 6).reshape(2, 3)

    return {
        "F": library.nn.functional,
        "x": spaced(-1, 2).requires_grad_(),
        "y": spaced(0, 0.5).requires_grad_(),
        "p": spaced(0.1, 0.9).requires_grad_(),
        "z": spaced(0.05, 1),
        "xi": library.ones(2, 3, dtype=library.int64),
        "v": library.tensor([0.0, float("nan"), -0.0], requires_grad=True),
    }


# Losses by element, dropout, activations
ELEMENTWISE = """
F.mse_loss(x,y)
F.mse_loss(x,y,reduction='none')
F.mse_loss(x,y,reduction='foo')
F.mse_loss(x,y[:1])
F.mse_loss(x,torch.ones(4))
F.mse_loss(x,y.double())
F.mse_loss(xi,xi)
F.mse_loss(x,xi)
F.mse_loss(x,y,size_average=False)
F.mse_loss(x,y,weight=z)
F.mse_loss(x,y,weight=z[0])
F.mse_loss(torch.ones(0),torch.ones(0))
F.l1_loss(x,y)
F.l1_loss(x,y,reduction='none')
F.l1_loss(x,y[:1])
F.l1_loss(x,y,weight=z)
F.l1_loss(xi,xi)
F.smooth_l1_loss(x,y)
F.smooth_l1_loss(x,y,beta=0)
F.smooth_l1_loss(x,y,beta=.3)
F.smooth_l1_loss(x,y,beta=-1)
F.smooth_l1_loss(x,y,reduction='none')
F.smooth_l1_loss(x,y[:1])
F.binary_cross_entropy(p,z)
F.binary_cross_entropy(x*10,z)
F.binary_cross_entropy(p,z[:1])
F.binary_cross_entropy(p,z.double())
F.binary_cross_entropy(p,z,reduction='none')
F.binary_cross_entropy(p,z,weight=z)
F.binary_cross_entropy(p,z,weight=torch.ones(3))
F.binary_cross_entropy(p,z,weight=torch.ones(4))
F.binary_cross_entropy(p,xi)
F.binary_cross_entropy(p,p)
F.binary_cross_entropy(torch.tensor([0.,1.]),torch.tensor([1.,0.]))
F.binary_cross_entropy(p,z,weight=y)
F.binary_cross_entropy_with_logits(x,z)
F.binary_cross_entropy_with_logits(x,z,reduction='none')
F.binary_cross_entropy_with_logits(x,z[:1])
F.binary_cross_entropy_with_logits(x,z,pos_weight=torch.tensor([1.,2,3]))
F.binary_cross_entropy_with_logits(x,z,weight=torch.tensor([1.,2,3]))
F.binary_cross_entropy_with_logits(x,z,reduction='sum')
F.binary_cross_entropy_with_logits(x,z).grad_fn.next_functions
F.binary_cross_entropy_with_logits(x,p).grad_fn.next_functions
F.binary_cross_entropy_with_logits(x,xi)
F.binary_cross_entropy_with_logits(x,z,weight=y)
F.binary_cross_entropy_with_logits(x,z,pos_weight=y)
F.binary_cross_entropy_with_logits(z, z, pos_weight=torch.ones(2))
F.binary_cross_entropy_with_logits(z, z, weight=torch.ones(2))
F.binary_cross_entropy_with_logits(z, z, reduction='x')
F.smooth_l1_loss(z.long(), z.long())
F.smooth_l1_loss(x, z.double()).dtype
F.l1_loss(x, z.double()).dtype
F.dropout(x,0.).grad_fn
F.dropout(x,1.).grad_fn
F.dropout(x,1.5)
F.dropout(x,-.1)
F.dropout(x,.5,False) is x
F.dropout(x,.5,True,True)
F.dropout(x.clone(),.5,True,True).grad_fn
F.dropout(x.clone(),1.,True,True).grad_fn
F.dropout(x.clone(),.5,False,True).grad_fn
torch.dropout(x,.5,True).grad_fn
F.dropout(xi.clone())
F.dropout(x,.5).grad_fn.next_functions
F.dropout([1.])
F.leaky_relu(x)
F.leaky_relu(x,0.2,True)
F.leaky_relu(x.clone(),0.2,True)
F.leaky_relu(xi)
F.gelu(x)
F.gelu(x,approximate='tanh')
F.gelu(x,approximate='foo')
F.gelu(xi)
F.silu(x)
F.silu(x.clone(),inplace=True)
F.silu(xi)
F.elu(x)
F.elu(x.clone(),inplace=True)
F.elu(xi)
F.softplus(x)
F.softplus(x,2,10)
F.softplus(x,20,10)
F.softplus(xi)
F.logsigmoid(x)
F.logsigmoid(xi)
F.relu(x)
F.relu(x.clone(),True)
F.relu(xi).dtype
F.one_hot(torch.tensor([0,2]))
F.one_hot(torch.tensor([0,2]),2)
F.one_hot(torch.tensor([0,-2]))
F.one_hot(torch.tensor([0.,2]))
F.one_hot(torch.tensor([],dtype=torch.long))
F.one_hot(torch.tensor([],dtype=torch.long),3)
F.one_hot(torch.tensor([0,2]),0)
F.one_hot(torch.tensor(2))
F.one_hot(torch.tensor([0,2],dtype=torch.int32))
F.one_hot([1])
F.one_hot(torch.tensor([1]), 2.5)
F.relu([1.])
F.leaky_relu([1.])
F.elu(x, alpha="a")
F.logsigmoid(torch.tensor([-1000.,1000.]))
"""

# At zero, nan and infinity
SPECIAL = """
torch.autograd.grad(F.leaky_relu(v,.1).sum(), v)
torch.autograd.grad(F.elu(v).sum(), v)
torch.autograd.grad(F.silu(v).sum(), v)
torch.autograd.grad(F.softplus(v).sum(), v)
torch.autograd.grad(F.smooth_l1_loss(v,torch.zeros(3)), v)
torch.autograd.grad(F.l1_loss(v,torch.zeros(3)), v)
F.silu(torch.tensor([float('inf'),-float('inf'),-100.]))
F.elu(torch.tensor([-float('inf'),100.,-1e-9]))
torch.dropout_(x.clone(), .5, True).grad_fn
"""


@pytest.mark.parametrize("expression", lines(ELEMENTWISE + SPECIAL))
def test_elementwise(expression):
    check(expression, pairs)
