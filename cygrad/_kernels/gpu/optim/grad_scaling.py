"""GradScaler operations on a GPU without synchronization: unscale gradients, skip a step, adapt the scale."""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, on_device
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.optim.optim import Step, launch_each

_UNSCALE = Step(
    "unscale",
    """
extern "C" __global__ void unscale(const whole* tensors, const whole* parts, const float* scale, float* found) {
    const W factor = W(1.0 / *scale);
    EACH_ELEMENT(i) {
        W v = W(p[i]) * factor;
        if (!(v - v == W(0))) *found = 1;  // all that write, write the same
        p[i] = T(v);
    }
}
""",
)
_ADAPT = Program(
    "adapt_scale",
    """
extern "C" __global__ void adapt_scale(float* scale, int* steps, const float* found, double growth, double backoff,
                                       whole interval) {
    if (*found) { *scale = *scale * backoff; *steps = 0; return; }
    if (++*steps < interval) return;
    const float grown = *scale * growth;
    if (grown - grown == 0) *scale = grown;
    *steps = 0;
}
""",
    ("float32",),
)


def unscale(grads, scale):
    """Unscale gradients on the GPU of `scale` in place; return an array of 1 if any is infinite or NaN, else 0."""
    with on_device(scale.device.id):
        found = cupy().zeros((), np.float32)
        launch_each(_UNSCALE, [(grad, grad, (), ()) for grad in grads], (scale, found))
    return found


def adapt(scale, steps, found, growth, backoff, interval):
    """Update the scale after a step: decrease it if `found` is 1, increase it after `interval` steps without."""
    with on_device(scale.device.id):
        _ADAPT.launch(scale.dtype, 1, 1, (scale, steps, found, float(growth), float(backoff), interval))
