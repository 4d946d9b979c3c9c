"""Networks on graphs by index_add, scatter and sparse products; spectra of signals; patches of images; physics."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 0], [1, 0, 2, 1, 4, 0, 3, 3]])
adjacency = torch.zeros(5, 5).index_put_((edges[0], edges[1]), torch.ones(8))
with_loops = adjacency + torch.eye(5)
normalized = with_loops / torch.sqrt(torch.outer(with_loops.sum(1), with_loops.sum(1)))
sparse = normalized.to_sparse_coo()
print(sparse.shape, sparse._nnz(), sparse.is_coalesced(), normalized[0])


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(4, n)) for n in (4, 2))

    def forward(self, x, a):
        return torch.sparse.mm(a, F.relu(torch.sparse.mm(a, x @ self.w[0])) @ self.w[1])


class GAT(nn.Module):
    def __init__(self, n_in, n_out, heads=2):
        super().__init__()
        self.n_heads, self.n_hidden = heads, n_out // heads
        self.W, self.a = nn.Parameter(torch.empty(n_in, n_out)), nn.Parameter(torch.empty(heads, 2 * self.n_hidden, 1))
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)
        self.leaky = nn.LeakyReLU(0.2)

    def forward(self, h, mask):
        n = h.shape[0]
        h = torch.mm(h, self.W).view(n, self.n_heads, self.n_hidden).permute(1, 0, 2)
        source, target = (torch.matmul(h, part) for part in self.a.split(self.n_hidden, dim=1))
        e = self.leaky(source + target.mT)
        attention = torch.where(mask > 0, e, -9e15 * torch.ones_like(e)).softmax(dim=-1)
        return torch.matmul(attention, h).permute(1, 0, 2).contiguous().view(n, self.n_heads * self.n_hidden)


class Messages(nn.Module):
    """Sums over the neighbours along the edges."""

    def __init__(self):
        super().__init__()
        self.edge, self.cell = nn.Linear(8, 4), nn.GRUCell(4, 4)

    def forward(self, x, edges):
        m = torch.tanh(self.edge(torch.cat([x[edges[0]], x[edges[1]]], dim=-1)))
        summed = torch.zeros_like(x).index_add(0, edges[1], m)
        most = torch.full_like(x, -math.inf).scatter_reduce(0, edges[1][:, None].expand_as(m), m, "amax")
        count = torch.zeros(5).scatter_add_(0, edges[1], torch.ones(8)).clamp(min=1)
        return self.cell(summed / count[:, None] + most.nan_to_num(neginf=0.0), x)


x, y = torch.randn(5, 4), torch.tensor([0, 0, 0, 1, 1])
train = torch.tensor([True, False, True, True, False])
for model, forward in (
    (GCN(), lambda m: m(x, sparse)),
    (GAT(4, 4), lambda m: m(x, with_loops)[:, :2]),
    (Messages(), lambda m: m(x, edges)[:, 2:]),
):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    seen = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(model)[train], y[train])
        loss.backward()
        optimizer.step()
        seen.append(round(loss.item(), 4))
    print(type(model).__name__, seen, forward(model).argmax(1))
print(torch.bincount(edges[1], minlength=6), torch.unique(edges[0], return_counts=True), edges.unique(dim=1).shape)
print(torch.segment_reduce(torch.arange(6.0), "mean", lengths=torch.tensor([2, 1, 3])))

torch.manual_seed(0)
rate, n_fft = 800, 64
time = torch.arange(rate) / rate
wave = torch.sin(2 * math.pi * 100 * time) + 0.5 * torch.sin(2 * math.pi * 220 * time)
window = torch.hann_window(n_fft)
spectrum = torch.stft(wave, n_fft, hop_length=16, window=window, return_complex=True)
power = spectrum.abs().pow(2)
print(spectrum.shape, spectrum.dtype, power.mean(1).topk(3).indices, torch.fft.rfftfreq(n_fft, 1 / rate)[:4])
back = torch.istft(spectrum, n_fft, hop_length=16, window=window, length=rate)
print(torch.allclose(back, wave, atol=1e-5))


def filters(n_mels, n_freqs):
    points = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + rate / 2 / 700), n_mels + 2) / 2595) - 1)
    slopes = points.unsqueeze(0) - torch.linspace(0, rate / 2, n_freqs).unsqueeze(1)
    widths = points[1:] - points[:-1]
    return torch.max(torch.zeros(1), torch.min((-1.0 * slopes[:, :-2]) / widths[:-1], slopes[:, 2:] / widths[1:]))


mel = torch.matmul(power.transpose(-1, -2), filters(8, n_fft // 2 + 1)).transpose(-1, -2)
decibel = 10.0 * torch.log10(mel.clamp(min=1e-10))
decibel = decibel.maximum(decibel.amax() - 80)
dct = torch.cos(math.pi / 8 * (torch.arange(8.0) + 0.5) * torch.arange(4.0)[:, None]) * math.sqrt(2 / 8)
print(mel.shape, decibel.mean(1), (dct @ decibel).shape)
noisy = (wave + 0.1 * torch.randn(rate)).requires_grad_()
loss = (torch.stft(noisy, n_fft, 16, window=window, return_complex=True).abs() - spectrum.abs()).abs().mean()
loss.backward()
print(f"{loss:.4f} {noisy.grad.norm():.5f}")


class M5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.pool1 = nn.Conv1d(1, 4, kernel_size=16, stride=8), nn.BatchNorm1d(4), nn.MaxPool1d(4)
        self.conv2, self.fc = nn.Conv1d(4, 8, kernel_size=3, dilation=2, padding="same"), nn.Linear(8, 2)

    def forward(self, x):
        x = self.conv2(self.pool1(F.relu(self.bn1(self.conv1(x)))))
        x = F.avg_pool1d(x, x.shape[-1]).permute(0, 2, 1)
        return F.log_softmax(self.fc(x), dim=2)


waves, classes = torch.stack([wave, noisy.detach(), back, wave.flip(0)])[:, None], torch.tensor([0, 1, 0, 1])
model = M5()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
for _ in range(4):
    loss = F.nll_loss(model(waves).squeeze(), classes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss:.4f}", model)

torch.manual_seed(0)
image = torch.rand(1, 3, 8, 8)
patches = image.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2)
columns = F.unfold(image, 4, stride=4).transpose(1, 2)
print(patches.shape, torch.equal(patches, columns), torch.equal(F.fold(columns.mT, (8, 8), 4, stride=4), image))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8) * 0.02)
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, norm=nn.LayerNorm(8), enable_nested_tensor=False)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(x.shape[0], -1, -1), tokens], dim=1) + self.pos
        return self.head(self.encoder(tokens)[:, 0])


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, (5, 5), (1, 1), (2, 2)), nn.Conv2d(8, 4, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(2)
        nn.init.orthogonal_(self.conv1.weight, nn.init.calculate_gain("relu"))
        nn.init.orthogonal_(self.conv2.weight)

    def forward(self, x):
        return self.pixel_shuffle(self.conv2(self.relu(self.conv1(x))))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.InstanceNorm2d(4, affine=True), nn.PReLU())
        self.middle = nn.Conv2d(4, 8, 3, padding=1, groups=2, padding_mode="reflect")
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        skip = self.down(x)
        up = self.up(F.hardswish(self.middle(F.max_pool2d(skip, 2))))
        return self.out(torch.cat([skip, up], dim=1))


def dice(logits, target):
    p = logits.softmax(1)[:, 1]
    return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)


mask = (image[:, 0] > 0.5).float()
for model, measure in (
    (ViT(), lambda m: F.cross_entropy(m(image), torch.tensor([1]), label_smoothing=0.1)),
    (SuperResolution(), lambda m: F.mse_loss(m(image), F.interpolate(image[:, :1], scale_factor=2, mode="bicubic"))),
    (UNet(), lambda m: dice(m(image), mask) + F.cross_entropy(m(image), mask.long())),
):
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    seen = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = measure(model)
        loss.backward()
        optimizer.step()
        seen.append(round(loss.item(), 4))
    print(type(model).__name__, seen)

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
pinn = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 1))
optimizer = torch.optim.LBFGS(pinn.parameters(), max_iter=8, line_search_fn="strong_wolfe")
points = torch.rand(30, 2, requires_grad=True)


def residual():
    optimizer.zero_grad()
    u = pinn(points)
    du = torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)[0]
    d2u = torch.autograd.grad(du[:, 0], points, torch.ones_like(du[:, 0]), create_graph=True)[0][:, 0]
    start = torch.cat([points.detach()[:, :1], torch.zeros(30, 1)], 1)
    loss = (du[:, 1] - 0.1 * d2u).square().mean() + (pinn(start) - torch.sin(math.pi * start[:, :1])).square().mean()
    loss.backward()
    return loss


for _ in range(3):
    print(f"{optimizer.step(residual).item():.6f}")
laplacian = torch.func.vmap(lambda p: torch.func.hessian(lambda q: pinn(q).squeeze())(p).trace())(points.detach()[:3])
print(laplacian.shape, torch.trapezoid(torch.arange(5.0) ** 2, dx=0.5), torch.cumulative_trapezoid(torch.ones(3)))
