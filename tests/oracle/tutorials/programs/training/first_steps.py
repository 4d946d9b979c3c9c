"""The way of the first tutorials: polynomials by hand, by autograd and by modules; datasets; what torch.nn is made of."""

import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

dtype, device = torch.float, torch.device("cpu")
torch.manual_seed(0)
x = torch.linspace(-math.pi, math.pi, 200, device=device, dtype=dtype)
y = torch.sin(x)
a, b, c, d = (torch.randn((), device=device, dtype=dtype) for _ in range(4))
learning_rate = 1e-5
for t in range(50):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum().item()
    grad_y_pred = 2.0 * (y_pred - y)
    a -= learning_rate * grad_y_pred.sum()
    b -= learning_rate * (grad_y_pred * x).sum()
    c -= learning_rate * (grad_y_pred * x**2).sum()
    d -= learning_rate * (grad_y_pred * x**3).sum()
print(f"{loss:.2f}: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


a, b, c, d = (torch.full((), v, device=device, dtype=dtype, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
for t in range(50):
    P3 = LegendrePolynomial3.apply
    y_pred = a + b * P3(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
print(f"{loss.item():.2f}", y_pred.grad_fn, [round(p.item(), 4) for p in (a, b, c, d)])
xx = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for t in range(30):
    y_pred = model(xx)
    loss = loss_fn(y_pred, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.2f}", model[0].bias.item(), model[0].weight[:, 0].item(), xx.shape)


class DynamicNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in "abcde":
            setattr(self, name, torch.nn.Parameter(torch.randn(())))

    def forward(self, x):
        y = self.a + self.b * x + self.c * x**2 + self.d * x**3
        for exp in range(4, random.randint(4, 6)):
            y = y + self.e * x**exp
        return y

    def string(self):
        return f"y = {self.a.item():.4f} + {self.b.item():.4f} x + {self.e.item():.4f} x^4 ? + x^5 ?"


random.seed(0)
model, criterion = DynamicNet(), torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)
for t in range(20):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.1f}", model.string())

rng = np.random.default_rng(0)
x_train, y_train = map(torch.tensor, (rng.random((60, 16), dtype=np.float32), rng.integers(0, 3, 60)))
print(x_train.shape, y_train.dtype, y_train.min(), y_train.max())
weights = torch.randn(16, 3) / math.sqrt(16)
weights.requires_grad_()
bias = torch.zeros(3, requires_grad=True)


def log_softmax(x):
    return x - x.exp().sum(-1).log().unsqueeze(-1)


def linear(xb):
    return log_softmax(xb @ weights + bias)


def nll(input, target):
    return -input[range(target.shape[0]), target].mean()


def accuracy(out, yb):
    return (torch.argmax(out, dim=1) == yb).float().mean()


preds = linear(x_train[:10])
print(preds[0], preds.shape, nll(preds, y_train[:10]), accuracy(preds, y_train[:10]))
for i in range((60 - 1) // 10 + 1):
    xb, yb = x_train[i * 10 : i * 10 + 10], y_train[i * 10 : i * 10 + 10]
    loss = nll(linear(xb), yb)
    loss.backward()
    with torch.no_grad():
        weights -= weights.grad * 0.5
        bias -= bias.grad * 0.5
        weights.grad.zero_()
        bias.grad.zero_()
print(F.cross_entropy(x_train @ weights + bias, y_train), nll(linear(x_train), y_train))


class Lambda(nn.Module):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, x):
        return self.func(x)


class WrappedDataLoader:
    def __init__(self, dl, func):
        self.dl, self.func = dl, func

    def __len__(self):
        return len(self.dl)

    def __iter__(self):
        for b in self.dl:
            yield self.func(*b)


def loss_batch(model, loss_func, xb, yb, opt=None):
    loss = loss_func(model(xb), yb)
    if opt is not None:
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item(), len(xb)


model = nn.Sequential(
    nn.Conv2d(1, 4, kernel_size=3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(4, 3, kernel_size=3, stride=2, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    Lambda(lambda x: x.view(x.size(0), -1)),
)
train_ds = TensorDataset(x_train, y_train)
train_dl = WrappedDataLoader(DataLoader(train_ds, 20, shuffle=True), lambda x, y: (x.view(-1, 1, 4, 4), y))
opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    model.train()
    for xb, yb in train_dl:
        loss_batch(model, F.cross_entropy, xb, yb, opt)
    model.eval()
    with torch.no_grad():
        losses, nums = zip(*[loss_batch(model, F.cross_entropy, xb, yb) for xb, yb in train_dl])
    print(epoch, f"{np.sum(np.multiply(losses, nums)) / np.sum(nums):.5f}")
print(model, len(train_dl), train_ds[3:5][1])


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.linear_relu_stack(self.flatten(x))


model = NeuralNetwork().to(device)
for name, param in model.named_parameters():
    print(f"Layer: {name} | Size: {param.size()} | Values : {param[:1]} \n")
logits = model(torch.rand(1, 4, 4, device=device))
pred_probab = nn.Softmax(dim=1)(logits)
print(f"Predicted class: {pred_probab.argmax(1)}", pred_probab)
one_hot = torch.zeros(10, dtype=torch.float).scatter_(0, torch.tensor(3), value=1)
print(one_hot)
tensor = torch.ones(4, 4)
tensor[:, 1] = 0
y3 = torch.rand_like(tensor)
torch.matmul(tensor, tensor.T, out=y3)
print(f"First row: {tensor[0]}", f"Last column: {tensor[..., -1]}", y3, tensor.sum().item())
n = np.ones(5)
t = torch.from_numpy(n)
np.add(n, 1, out=n)
print(f"t: {t}", t.add_(5), n)
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nSecond call\n{inp.grad}")


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 8), nn.LSTMCell(8, 8), nn.Linear(8, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t, c_t, h_t2, c_t2 = (torch.zeros(input.size(0), 8, dtype=torch.double) for _ in range(4))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


torch.manual_seed(0)
waves = torch.from_numpy(np.sin(np.arange(30) / 3.0 + np.arange(3)[:, None]).astype("float64"))
seq = Sequence().double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=6)
for i in range(2):

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(waves[:, :-1]), waves[:, 1:])
        loss.backward()
        return loss

    print("loss:", round(optimizer.step(closure).item(), 6))
with torch.no_grad():
    print(seq(waves[:1, :-1], future=4)[:, -5:])
