"""What scripts share: weights and inputs from NumPy's numbers, and a look at results in few words."""

import numpy as np
import torch


def fix(m, seed=0):
    r = np.random.default_rng(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.from_numpy(np.asarray(r.standard_normal(tuple(p.shape)) * 0.2, np.float32)))
    return m


R = np.random.default_rng(1)


def rn(*s, seed=None):
    r = R if seed is None else np.random.default_rng(seed)
    return torch.from_numpy(r.standard_normal(s).astype(np.float32))


def ri(hi, *s):
    return torch.from_numpy(R.integers(0, hi, s))


def show(name, x):
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu().double().numpy() if x.dtype.is_floating_point else x.detach().cpu().numpy()
    if isinstance(x, float):
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        f = x.ravel()
        if f.dtype.kind == "f":
            print(
                name,
                x.shape,
                " ".join("%.3g" % (v + 0.0 if abs(v) > 1e-6 else 0) for v in f[:6]),
                "sum %.3g" % f.sum() if abs(f.sum()) > 1e-3 else "sum 0",
            )
        else:
            print(name, x.shape, f[:8].tolist(), f.sum())
    else:
        print(name, x)
