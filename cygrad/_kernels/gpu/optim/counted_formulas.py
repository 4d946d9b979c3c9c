"""Steps of capturable optimizers other than Adam: counts of steps are on the GPU, so that a graph can be replayed.

A step is two launches for all parameters of a type: the first counts, and computes what all elements of a parameter
share (`settle` in cpu/optim/formulas.pyx), the second updates. All numbers are computed in double precision.
"""

from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_array, on_device
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.optim import optim

_SHARED = 10  # numbers of a parameter: sign, weight decay, shrinking, and the formula's own
_OPTIONS = 5  # most numbers of an optimizer besides its learning rate
_SCALARS = 3  # most scalars of a parameter's state
_DOUBLE = np.dtype(np.float64)

# From step t, learning rate lr, options o1 to o5 and scalars of the state: c[0] to c[6], and scalars for the next step.
_TEXTS = {
    "Adadelta": "c[0] = o2, c[1] = 1 - o2, c[2] = o3, c[3] = lr;",
    "Adamax": "c[0] = 1 - o2, c[1] = o3, c[2] = o4, c[3] = lr / (1 - pow(o2, t));",
    "ASGD": """float *eta = (float*)own[1], *mu = (float*)own[2];
        c[0] = 1 - o2 * *eta, c[1] = *eta, c[2] = *mu;
        *eta = float(lr / pow(1 + o2 * lr * t, o3));
        *mu = float(1 / (t - o4 > 1 ? t - o4 : 1.0));""",
    "NAdam": """const double mu = o2 * (1 - 0.5 * pow(0.96, t * o5)), ahead = o2 * (1 - 0.5 * pow(0.96, (t + 1) * o5));
        const double done = *(float*)own[1] *= float(mu);
        c[0] = 1 - o2, c[1] = o3, c[2] = 1 - o3, c[3] = 1 - pow(o3, t), c[4] = o4;
        c[5] = lr * ahead / (1 - done * ahead), c[6] = lr * (1 - mu) / (1 - done);""",
    "RAdam": """const double left = 1 - pow(o3, t), limit = 2 / (1 - o3) - 1;
        const double length = limit - 2 * t * pow(o3, t) / left;
        c[0] = 1 - o2, c[1] = o3, c[2] = 1 - o3, c[3] = lr / (1 - pow(o2, t)), c[4] = -1, c[5] = o4;
        if (length > 5)
            c[4] = sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length) * left);""",
    "RMSprop": "c[0] = o2, c[1] = 1 - o2, c[2] = o3, c[3] = o4, c[4] = lr;",
    "Rprop": "c[0] = o1, c[1] = o2, c[2] = o3, c[3] = o4;",
}
_SETTLE = """
extern "C" __global__ void settle_%s(const whole* scalars, double* shared, whole count, double sign, whole decays,
                                     whole is_decoupled, double lr, const double* rate, double o1, double o2, double o3,
                                     double o4, double o5, const float* found) {
    if (found && *found) return;
    if (rate) lr = *rate;
    EACH_OF(i, count) {
        const whole* own = scalars + 3 * i;
        double *numbers = shared + 10 * i, *c = numbers + 3;
        const double t = *(float*)own[0] += 1, decay = decays ? o1 : 0.0;
        numbers[0] = sign, numbers[1] = is_decoupled ? 0.0 : decay, numbers[2] = is_decoupled ? 1 - lr * decay : 1.0;
        %s
    }
}
"""
_UPDATE = """
extern "C" __global__ void counted_%s(const whole* tensors, const whole* parts, const double* shared,
                                      const float* found) {
    if (found && *found) return;
    const double *numbers = shared + 10 * parts[2 * blockIdx.x], *c = numbers + 3;
    const double sign = numbers[0], decay = numbers[1], shrink = numbers[2];
    const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6];
    EACH_ELEMENT(i) {
        W x = W(p[i]) * W(shrink), d = W(sign) * W(g[i]) + W(decay) * x;
        %s
        p[i] = T(x);
    }
}
"""
_SETTLERS = {
    name: Program(f"settle_{name.lower()}", _SETTLE % (name.lower(), text), ("float64",))
    for name, text in _TEXTS.items()
}
_UPDATERS = {
    name: optim.Step(f"counted_{name.lower()}", _UPDATE % (name.lower(), text), optim.SQUARES.get(name, ()))
    for name, text in optim.FORMULAS.items()
    if name in _TEXTS
}


def takes(scalars):
    """Whether the scalars of a state are where these steps need them: on a GPU, in single precision."""
    return all(is_array(a) and a.dtype == np.float32 for a in scalars)


def step(name, rows):
    """One step of the optimizer with this name.

    Each of `rows` is (parameter, gradient, state, scalars of the state, learning rate, other options, maximize,
    decoupled); the learning rate is a number or an array on the GPU.
    """
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        param, (rate, options, *flags) = row[0], row[4:]
        key = param.data.device_id, param.dtype, id(rate) if is_array(rate) else rate, tuple(options), *flags
        groups.setdefault(key, []).append(row)
    for together in groups.values():
        _step(name, together)


def _step(name, rows):
    """Update parameters of one type, device and group."""
    settler, updater = _SETTLERS[name], _UPDATERS[name]
    rate, options, is_maximized, is_decoupled = rows[0][4:]
    decays = int(name != "Rprop")
    options = [*map(float, options), *[0.0] * (_OPTIONS - len(options))]
    given = [(param, grad, state, ()) for param, grad, state, *_ in rows]
    [(device, _, together, back)] = optim.grouped(given, updater.squares)
    with on_device(device):
        lr, address = (0.0, cupy().asarray(rate).astype(_DOUBLE)) if is_array(rate) else (float(rate), None)
        scalars = optim.table_of([row[3] for row in rows], _SCALARS)
        shared = cupy().empty((len(rows), _SHARED), _DOUBLE)
        found = optim.found_to_skip()
        numbers = -1.0 if is_maximized else 1.0, decays, int(is_decoupled), lr, address, *options, found
        settler.over(_DOUBLE, len(rows), (scalars, shared, len(rows), *numbers))
        optim.launch(updater, together, (shared, found))
        optim.put_back(back)
