"""What is written in older tutorials and repositories: Variables, typed tensors, old names and options, removed functions."""

import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import told
from torch.autograd import Variable

warnings.simplefilter("ignore")


def warned(action):
    """Print what an action returns, and the warnings it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told(action)
    print([(w.category.__name__, str(w.message).splitlines()[0][:60]) for w in caught])


torch.manual_seed(0)
v = Variable(torch.ones(2, 2), requires_grad=True)
print(v, type(v), isinstance(v, Variable), isinstance(v, torch.Tensor), v.data.numpy(), Variable(torch.ones(1)).grad)
out = (v + 2).pow(2).mean()
out.backward(retain_graph=True)
print(v.grad.data, out.data[()] if out.dim() else None, out.data.item())
told(lambda: out.data[0])
told(lambda: Variable(torch.ones(1), volatile=True))
x = torch.Tensor(2, 3).fill_(0)
print(
    x,
    torch.Tensor([1, 2]),
    torch.Tensor().shape,
    torch.FloatTensor([[1, 2]]),
    torch.LongTensor([3]),
    torch.ByteTensor([1]),
)
print(torch.DoubleTensor(2).zero_(), torch.IntTensor([1]).type(), torch.BoolTensor([True]), torch.HalfTensor([1.5]))
told(lambda: torch.LongTensor([1.5]))
told(lambda: torch.FloatTensor(torch.ones(2, dtype=torch.int64)))
told(lambda: torch.Tensor(2.5))
told(lambda: torch.Tensor("a"))
told(lambda: torch.cuda.FloatTensor([1]))
print(x.new(2).shape, x.new([1, 2]), x.new(x), x.new_tensor([1]), x.new_zeros(2), x.new_full((1,), 3), x.new_empty(0))
print(
    x.type(),
    x.type("torch.DoubleTensor").dtype,
    x.type(torch.LongTensor).dtype,
    x.type_as(torch.ones(1).double()).dtype,
)
print(
    isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), torch.is_tensor(x), torch.is_storage(x.storage())
)
told(lambda: x.type("torch.NoSuchTensor"))
print(x.size(), x.size(-1), x.dim(), x.nelement(), x.is_cuda, x.is_sparse, x.numpy().dtype, x.tolist())
print(torch.typename(x), torch.get_default_dtype(), x.cpu() is x, x.data.is_leaf, x.storage_offset(), x.element_size())
warned(lambda: torch.set_default_tensor_type("torch.DoubleTensor"))
print(torch.ones(1).dtype, torch.Tensor([1]).dtype)
torch.set_default_tensor_type(torch.FloatTensor)
y = torch.randn(3, 3)
print(torch.add(y, 2, y).equal(y + 2 * y), y.add(0.5, y).equal(1.5 * y))
print(torch.addmm(0.5, y, 2, y, y).shape, y.add_(2, torch.zeros(3, 3)).shape)
print(torch.addcmul(torch.zeros(2), 0.5, torch.ones(2), torch.ones(2)))
warned(lambda: nn.MSELoss(size_average=False)(torch.ones(3), torch.zeros(3)))
warned(lambda: F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), reduce=False))
warned(lambda: F.binary_cross_entropy(torch.full((2,), 0.5), torch.ones(2), size_average=True, reduce=True))
warned(lambda: nn.L1Loss(reduction="elementwise_mean"))
warned(lambda: F.softmax(torch.zeros(2, 2)))
warned(lambda: nn.Softmax()(torch.zeros(2)))
warned(lambda: F.log_softmax(torch.zeros(1, 2, 2)).shape)
warned(lambda: nn.LogSoftmax()(torch.zeros(1, 2)))
warned(lambda: F.sigmoid(torch.zeros(1)))
warned(lambda: F.tanh(torch.zeros(1)))
warned(lambda: F.upsample(torch.ones(1, 1, 2, 2), scale_factor=2).shape)
warned(lambda: nn.UpsamplingBilinear2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape)
warned(lambda: F.interpolate(torch.ones(1, 1, 2, 2), scale_factor=2, mode="bilinear").shape)
warned(lambda: F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2)))
warned(lambda: F.affine_grid(torch.eye(3)[None, :2], (1, 1, 2, 2)).shape)
warned(lambda: nn.init.xavier_uniform(torch.empty(2, 2)).shape)
warned(lambda: nn.init.normal(torch.empty(2), 0, 1e-9).abs().max() < 1)
warned(lambda: nn.init.kaiming_normal(torch.empty(2, 2), a=0, mode="fan_in").shape)
warned(lambda: nn.init.constant(torch.empty(1), 3))
warned(lambda: torch.nn.utils.clip_grad_norm([v], 1.0))
warned(lambda: torch.nn.utils.weight_norm(nn.Linear(2, 2)).weight_g.shape)
warned(lambda: torch.nn.utils.spectral_norm(nn.Linear(2, 2)).weight_u.shape)
warned(lambda: torch.norm(torch.ones(4), 2, 0))
warned(lambda: torch.range(0, 2))
warned(lambda: torch.ger(torch.ones(2), torch.ones(2)))
warned(lambda: [t.shape for t in torch.svd(torch.eye(2))])
told(lambda: [t.shape for t in torch.qr(torch.eye(2))])
told(lambda: torch.cholesky(torch.eye(2)))
told(lambda: torch.chain_matmul(torch.eye(2), torch.eye(2)))
told(lambda: torch.triangular_solve(torch.ones(2, 1), torch.eye(2))[0])
warned(lambda: torch.meshgrid(torch.ones(2), torch.ones(3))[0].shape)
warned(lambda: torch.ones(2, 3, 4).T.shape)
warned(lambda: torch.tensor(torch.ones(2)))
warned(lambda: torch.ones(2).mean().reshape(1, 1).T)
warned(lambda: torch.floor_divide(torch.tensor(5), 2))
warned(lambda: torch.tensor([1, 2]) // 2)
warned(lambda: torch.ones(2) / torch.tensor([2, 4]))
warned(lambda: torch.stft(torch.ones(16), 8).shape)
told(lambda: torch.lu(torch.eye(2))[1])
for name in ("symeig", "eig", "lstsq", "solve", "matrix_rank", "rfft", "fft", "btrifact", "potrf", "gesv"):
    function = getattr(torch, name, None)
    told(lambda: None if function is None else callable(function))
    if function is not None and callable(function):
        told(lambda: function(torch.eye(2), torch.eye(2)))
told(lambda: torch.ones(2).masked_fill(torch.tensor([1, 0], dtype=torch.uint8), 5))
told(lambda: torch.ones(2)[torch.tensor([1, 0], dtype=torch.uint8)])
told(lambda: torch.where(torch.tensor([1, 0], dtype=torch.uint8), 1.0, 2.0))
told(lambda: 1 - (torch.ones(2) > 0))
told(lambda: -(torch.ones(2) > 0))
told(lambda: (torch.ones(2) > 0).sum() / 2)
told(lambda: torch.nn.functional.one_hot(torch.tensor([1.0])))
told(lambda: torch.arange(3).mean())
told(lambda: torch.full((2,), 1).dtype)
told(lambda: torch.gels)
told(lambda: torch.nn.Module().cuda().training if torch.cuda.is_available() else True)


class OldFunction(torch.autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, g):
        return g * 2


told(lambda: OldFunction.apply(torch.ones(1, requires_grad=True)))


class OldNet(nn.Module):
    def __init__(self):
        super(OldNet, self).__init__()
        self.add_module("fc", nn.Linear(2, 2))
        self.register_backward_hook(lambda m, gi, go: print("backward", len(gi), go[0].shape))
        self.hidden = Variable(torch.zeros(1, 2))

    def forward(self, x):
        return F.relu(self._modules["fc"](x) + self.hidden, inplace=True)


net = OldNet()
net(torch.ones(1, 2)).sum().backward()
for m in net.modules():
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        m.weight.data.normal_(0.0, 0.02)
        m.bias.data.fill_(0)
        n = m.in_features * m.out_features
        m.weight.data.uniform_(-(n**-0.5), n**-0.5)
print(net, [p.data.sum() for p in net.parameters()], net.state_dict().keys())
o = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), 0.1)
o.param_groups[0]["lr"] *= 0.5
for p in net.parameters():
    if p.grad is not None:
        p.grad.data.zero_()
        p.grad.detach_()
        p.data.sub_(p.grad.data * 0.1)
print(o.state_dict()["param_groups"][0]["lr"], o.defaults["momentum"])
h = tuple(Variable(t.data) for t in nn.LSTM(2, 3)(torch.ones(1, 1, 2))[1])
print([t.shape for t in h], nn.LSTM(2, 3).all_weights[0][0].shape, nn.GRU(2, 3).weight_ih_l0.data.new(2).zero_())
s = torch.utils.data.dataloader.default_collate([torch.ones(1), torch.zeros(1)])
print(s, torch.from_numpy(s.numpy()).max(0)[1].numpy()[0], s.max(1, keepdim=True)[0].squeeze().tolist())
with torch.autograd.no_grad(), torch.set_grad_enabled(True):
    print(torch.is_grad_enabled())
print(torch.autograd.grad_mode.no_grad is torch.no_grad, torch.autograd.variable.Variable is Variable)
