"""What Muon computes for each element, in two launches for all matrices of one shape."""

from cygrad._kernels.device.cupy_library import cupy, on_device
from cygrad._kernels.gpu.optim.optim import Step, launch_each

# Parameters are the matrices to orthogonalize here. What the state holds is rounded before it is used.
_MOMENTA = Step(
    "muon_momenta",
    """
extern "C" __global__ void muon_momenta(const whole* tensors, const whole* parts, double gain, double momentum,
                                        whole nesterov) {
    EACH_ELEMENT(i) {
        W d = W(g[i]), average = W(s0[i]);
        s0[i] = T(average + (d - average) * W(gain));
        average = W(s0[i]);
        p[i] = T(nesterov ? d + (average - d) * W(momentum) : average);
    }
}
""",
)
_MOVES = Step(
    "muon_moves",
    """
extern "C" __global__ void muon_moves(const whole* tensors, const whole* parts, double shrink, double rate) {
    EACH_ELEMENT(i) p[i] = T(W(p[i]) * W(shrink) - W(rate) * W(g[i]));
}
""",
)


def momenta(grads, averages, momentum, nesterov):
    """Update running averages of gradients of one shape; return what is to be orthogonalized, as one array."""
    with on_device(grads[0].data.device_id):
        out = cupy().empty((len(grads), *grads[0].shape), grads[0].dtype)
        numbers = 1.0 - momentum, float(momentum), int(nesterov)
        launch_each(_MOMENTA, [(own, g, (average,), ()) for own, g, average in zip(out, grads, averages)], numbers)
    return out


def move(params, updates, shrink, rate):
    """Multiply parameters by `shrink`, and subtract `rate` times the updates."""
    launch_each(_MOVES, [(p, update, (), ()) for p, update in zip(params, updates)], (float(shrink), float(rate)))
