"""A Wasserstein GAN with gradient penalty, clipped weights, spectral norm and a feature hook."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import numpy as np
from torch.nn.utils import spectral_norm
from torch.nn.utils.parametrizations import spectral_norm as sn2
from torch.autograd import grad as torch_grad, Variable

torch.manual_seed(1)
rng = np.random.RandomState(0)


def noise(*s):
    return torch.from_numpy(rng.randn(*s)).float()


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class G(nn.Module):
    def __init__(self, nz=8, ngf=4, nc=1):
        super(G, self).__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class D(nn.Module):
    def __init__(self, ndf=4, nc=1):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.InstanceNorm2d(ndf * 2, affine=True),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Flatten(),
        )

    def forward(self, x):
        return self.main(x).view(-1, 1).squeeze(1)


netG, netD = G(), D()
netG.apply(weights_init)
netD.apply(weights_init)
for net in (netG, netD):
    for p in net.parameters():
        p.data = noise(*p.shape) * 0.2


def gradient_penalty(real, fake):
    alpha = torch.tensor(rng.rand(real.size(0), 1, 1, 1), dtype=torch.float).expand_as(real)
    inter = Variable(alpha * real + (1 - alpha) * fake, requires_grad=True)
    out = netD(inter)
    g = torch_grad(
        outputs=out, inputs=inter, grad_outputs=torch.ones(out.size()), create_graph=True, retain_graph=True
    )[0]
    g = g.view(real.size(0), -1)
    return ((g.norm(2, dim=1) - 1) ** 2).mean() * 10, g.norm(2, dim=1).mean().data


optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.RMSprop(netG.parameters(), lr=5e-5)
real_all = torch.tanh(noise(32, 1, 16, 16))
crit = nn.BCEWithLogitsLoss()
for it in range(4):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(2):
        netD.zero_grad()
        z = noise(16, 8, 1, 1)
        with torch.no_grad():
            zv = z
        fake = Variable(netG(zv).data)
        idx = torch.randperm(32)[:16].sort()[0] * 0 + torch.arange(16)
        real = real_all[idx]
        gp, gn = gradient_penalty(real, fake)
        errD = netD(fake).mean() - netD(real).mean() + gp
        errD.backward()
        optD.step()
        for p in netD.parameters():
            p.data.clamp_(-1, 1)
    for p in netD.parameters():
        p.requires_grad = False
    optG.zero_grad()
    label = torch.full((16,), 1.0, dtype=torch.float)
    errG = crit(netD(netG(z)), label)
    errG.backward()
    optG.step()
    print("[%d/%d] Loss_D: %.4f Loss_G: %.4f gp %.4f gn %.4f" % (it, 4, errD.item(), errG.item(), gp, gn))
# spectral norm
torch.manual_seed(0)
l = spectral_norm(nn.Linear(5, 4))
l(torch.randn(2, 5)).sum().backward()
print(sorted(n for n, _ in l.named_parameters()), sorted(l.state_dict()))
l2 = sn2(nn.Linear(5, 4))
print(l2, sorted(l2.state_dict()))
img = netG(noise(4, 8, 1, 1)).detach().cpu()
grid = F.pad(img, (1, 1, 1, 1)).permute(0, 2, 3, 1).numpy()
print(grid.shape, float(abs(grid).sum()).__round__(3))
up = F.interpolate(img, scale_factor=2, mode="bilinear", align_corners=False)
print(up.shape, "%.4f" % up.abs().sum())
feats = {}
h = netD.main[0].register_forward_hook(lambda m, i, o: feats.__setitem__("c0", o.detach()))
netD(img)
h.remove()
print(feats["c0"].shape, "%.3f" % feats["c0"].std())
