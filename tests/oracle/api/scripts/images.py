"""Generators and critics with penalties, residual networks with squeezed channels, segmentation."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import fix, ri, rn, show


class G(nn.Module):
    def __init__(s):
        super().__init__()
        s.main = nn.Sequential(
            nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(True),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(s, x):
        return s.main(x)


class D(nn.Module):
    def __init__(s):
        super().__init__()
        s.main = nn.Sequential(
            nn.utils.spectral_norm(nn.Conv2d(1, 8, 4, 2, 1)),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 16, 4, 2, 1),
            nn.InstanceNorm2d(16, affine=True),
            nn.LeakyReLU(0.2, True),
            nn.Flatten(),
            nn.Linear(256, 1),
        )

    def forward(s, x):
        return s.main(x)


def weights_init(m):
    c = m.__class__.__name__
    if c.find("Conv") != -1:
        nn.init.normal_(m.weight.data if not hasattr(m, "weight_orig") else m.weight_orig.data, 0.0, 0.02)
    elif c.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


g, d = G(), D()
g.apply(weights_init)
d.apply(weights_init)
fix(g, 1)
fix(d, 2)
d.main[0].weight_u.copy_(F.normalize(torch.arange(1.0, 9.0), dim=0))
if hasattr(d.main[0], "weight_v"):
    d.main[0].weight_v.copy_(F.normalize(torch.arange(1.0, 17.0), dim=0))
og = torch.optim.Adam(g.parameters(), lr=2e-3, betas=(0.5, 0.999))
od = torch.optim.Adam(d.parameters(), lr=2e-3, betas=(0.5, 0.999))
crit = nn.BCEWithLogitsLoss()
for it in range(6):
    real = rn(4, 1, 16, 16)
    z = rn(4, 8, 1, 1)
    d.zero_grad()
    label = torch.full((4,), 1.0, dtype=torch.float, device=real.device)
    lr_ = crit(d(real).view(-1), label)
    lr_.backward()
    fake = g(z)
    label.fill_(0)
    lf = crit(d(fake.detach()).view(-1), label)
    lf.backward()
    od.step()
    # gradient penalty
    a = torch.full((4, 1, 1, 1), 0.3)
    inter = (a * real + (1 - a) * fake.detach()).requires_grad_(True)
    gr = torch.autograd.grad(
        outputs=d(inter),
        inputs=inter,
        grad_outputs=torch.ones(4, 1),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gp = ((gr.view(4, -1).norm(2, dim=1) - 1) ** 2).mean()
    od.zero_grad()
    (10 * gp).backward()
    od.step()
    g.zero_grad()
    label.fill_(1)
    lg = crit(d(fake).view(-1), label)
    lg.backward()
    og.step()
    print(it, "%.4f %.4f %.4f %.4f" % (lr_.item(), lf.item(), lg.item(), gp.item()))
show("g", g.main[0].weight)
show("bn", g.main[1].running_mean)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inp, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        i = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        i = self.downsample(x) if self.downsample is not None else i
        out += i
        return self.relu(out)


class SE(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.fc = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, 2, 1), nn.SiLU(), nn.Conv2d(2, c, 1), nn.Hardsigmoid()
        )

    def forward(s, x):
        return x * s.fc(x)


class Residual(nn.Module):
    def __init__(s):
        super().__init__()
        s.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        s.l1 = BasicBlock(8, 8)
        s.l2 = BasicBlock(8, 16, 2, nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16)))
        s.dw = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        s.se = SE(16)
        s.gn = nn.GroupNorm(4, 16)
        s.drop = nn.Dropout2d(0.0)
        s.fc = nn.Linear(16, 5)
        for m in s.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(s, x):
        x = s.l2(s.l1(s.stem(x)))
        x = s.gn(s.se(s.dw(x)))
        return s.fc(torch.flatten(F.adaptive_avg_pool2d(s.drop(x), (1, 1)), 1))


m = fix(Residual())
o = torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
m = m.to(memory_format=torch.channels_last)
for i in range(4):
    x, y = rn(4, 3, 32, 32).contiguous(memory_format=torch.channels_last), ri(5, 4)
    l = nn.CrossEntropyLoss(label_smoothing=0.1)(m(x), y)
    o.zero_grad()
    l.backward()
    o.step()
    print("%.4f" % l.item())
m.eval()
show("o", m(rn(2, 3, 32, 32)))
show("rm", m.stem[1].running_mean)
print(m.stem[1].num_batches_tracked)
f = nn.utils.fuse_conv_bn_eval(m.l1.conv1, m.l1.bn1)
x = rn(1, 8, 5, 5)
print(torch.allclose(f(x), m.l1.bn1(m.l1.conv1(x)), atol=1e-5))


def acc(out, t, topk=(1, 3)):
    with torch.no_grad():
        _, p = out.topk(max(topk), 1, True, True)
        c = p.t().eq(t.view(1, -1).expand_as(p.t()))
        return [c[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / len(t)).item() for k in topk]


print(acc(rn(6, 5), ri(5, 6)))


def dc(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, padding_mode="reflect"),
        nn.BatchNorm2d(o),
        nn.ELU(),
        nn.Conv2d(o, o, 3, padding="same"),
        nn.Mish(),
    )


class U(nn.Module):
    def __init__(s):
        super().__init__()
        s.d1 = dc(1, 4)
        s.d2 = dc(4, 8)
        s.up = nn.ConvTranspose2d(8, 4, 2, 2)
        s.u1 = dc(8, 4)
        s.ups = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        s.ps = nn.PixelShuffle(2)
        s.o = nn.Conv2d(4, 3, 1)

    def forward(s, x):
        a = s.d1(x)
        b = s.d2(F.max_pool2d(a, 2))
        u = s.up(b)
        dy, dx = a.size(2) - u.size(2), a.size(3) - u.size(3)
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        c = s.u1(torch.cat([a, u], 1))
        return s.o(c)


def dice(p, t, eps=1e-6):
    p = p.softmax(1)
    t = F.one_hot(t, 3).permute(0, 3, 1, 2).float()
    n = 2 * (p * t).sum((0, 2, 3))
    return 1 - ((n + eps) / (p.sum((0, 2, 3)) + t.sum((0, 2, 3)) + eps)).mean()


def focal(l, t, g=2.0):
    ce = F.cross_entropy(l, t, reduction="none")
    return ((1 - torch.exp(-ce)) ** g * ce).mean()


m = fix(U())
o = torch.optim.AdamW(m.parameters(), lr=1e-2)
for i in range(4):
    x, y = rn(2, 1, 9, 11), ri(3, 2, 9, 11)
    l = m(x)
    loss = dice(l, y) + focal(l, y) + F.cross_entropy(l, y, weight=torch.tensor([1.0, 2.0, 0.5]), ignore_index=2)
    o.zero_grad()
    loss.backward()
    o.step()
    print("%.4f" % loss.item())
x = rn(1, 4, 5, 6)
show("ps", m.ps(x))
show("up", m.ups(x))
show("bic", F.interpolate(x, size=(7, 9), mode="bicubic", align_corners=True, antialias=False))
show("aa", F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True))
th = torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.8, 0.2]]])
show(
    "gs",
    F.grid_sample(x, F.affine_grid(th, (1, 4, 6, 6), align_corners=False), padding_mode="border", align_corners=False),
)
show("uf", F.fold(F.unfold(x, 2, stride=1), (5, 6), 2))
p, i = F.max_pool2d(x, 2, return_indices=True)
show("up", F.max_unpool2d(p, i, 2, output_size=(5, 6)))
iou = torch.zeros(3, 3).index_put_((ri(3, 20), ri(3, 20)), torch.ones(20), accumulate=True)
show("cm", iou)
show("bc", torch.bincount(ri(3, 30), minlength=4))
