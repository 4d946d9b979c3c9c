"""Sampling of gamma and Dirichlet distributions, with gradients with respect to their parameters.

A sample x stays at its quantile F while a parameter p changes: dx/dp = -(dF/dp) / (dF/dx) (M. Figurnov, S. Mohamed,
A. Mnih, "Implicit reparameterization gradients", 2018). For these distributions dF/dp / (dF/dx) is an integral over
one side of x, whose integrand decays away from x: exp(fall(s)) * slope(s), for s from 0 to infinity.
"""

import cygrad
from cygrad._ops.random.sampling import gammas, log_gammas
from cygrad.autograd import Function
from cygrad.autograd.function import once_differentiable

_NODES = 72
_END = 36.0  # truncate the integral where the integrand falls below exp(-36) of its maximum


def _integral(fall, slope, scale, end):
    """Integrate in s = scale * exp(v - exp(-v)), whose growing steps stay accurate when widths of all sizes occur."""
    first = -3.0
    step = ((end / scale).log().clamp(min=0.5) - first) / (_NODES - 1)
    total = cygrad.zeros_like(end)
    for i in range(_NODES):
        v = first + i * step
        s = scale * (v - (-v).exp()).exp()
        total += fall(s).exp() * slope(s) * s * (1 + (-v).exp())
    return total * step


def _end_of(fall, fall_rate, end):
    """Find where `fall` reaches -_END, by Newton iterations from beyond that point."""
    for _ in range(12):
        end = end - ((fall(end) + _END) / fall_rate(end)).clamp(min=0.0)
    return end


def _digamma(x):
    """The digamma function without SciPy, which is optional: asymptotic series at x + 8, then recurrence down to x."""
    found, z = cygrad.zeros_like(x), x + 8
    for k in range(8):
        found -= 1 / (x + k)
    r = z**-2
    return found + z.log() - 0.5 / z - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))


def _gamma_gradient(a, x):
    """Return dx/da of samples of Gamma(a, 1)."""
    level = x.log() - _digamma(a)
    is_low, side = x <= a, cygrad.where(x <= a, -1.0, 1.0)

    def fall(s):
        return side * a * s - x * (side * s).expm1()

    def fall_rate(s):
        return side * (a - x * (side * s).exp())

    width = 1 / cygrad.maximum((a - x).abs(), x.clamp(min=1e-300).sqrt()).clamp(min=1.0)
    k = _END / x
    high = (k + k.log1p() + 2).log1p()
    end = _end_of(fall, fall_rate, cygrad.where(is_low, (_END + x) / a, cygrad.minimum(high, (2 * k).sqrt())))
    return side * x * _integral(fall, lambda s: level + side * s, width, end)


def _beta_gradient(a, b, x):
    """Return dx/da / (1 - x) of samples of Beta(a, b)."""
    total = a + b
    is_low, side = x * total <= a, cygrad.where(x * total <= a, -1.0, 1.0)
    near, rate = cygrad.where(is_low, x, 1 - x), cygrad.where(is_low, a, b)
    level = x.log() - _digamma(a) + _digamma(total)

    def fall(s):
        return -rate * s - total * (near * (-s).expm1()).log1p()

    def fall_rate(s):
        r = (-s).exp()
        return -rate + total * near * r / (near * r + (1 - near))

    def slope(s):
        return level - (near * (-s).expm1()).log1p() - cygrad.where(is_low, s, 0.0)

    width = 1 / cygrad.maximum((rate - total * near).abs(), (total * x * (1 - x)).sqrt()).clamp(min=1.0)
    end = _end_of(fall, fall_rate, (_END - total * (-near).log1p()) / rate)
    return side * x * _integral(fall, slope, width, end)


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx, a, generator=None):
        x = gammas(a, generator).clamp(min=cygrad.finfo(a.dtype).tiny)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        return g * _gamma_gradient(a.double(), x.double()).to(a.dtype), None


class _Dirichlet(Function):
    @staticmethod
    def forward(ctx, a, generator=None):
        info = cygrad.finfo(a.dtype)
        x = (
            log_gammas(a, generator).softmax(-1).to(a.dtype).clamp(info.tiny, 1 - info.eps / 2)
        )  # inside, as densities need
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        return _Dirichlet_backward(x, a, g), None


def _Dirichlet_backward(x, concentration, grad_output):
    """Return the gradient of concentrations, given that of the samples x that were drawn."""
    a, inside = concentration.double(), x.double().clamp(1e-300, 1 - cygrad.finfo(x.dtype).eps / 2)
    moved = _beta_gradient(a, a.sum(-1, keepdim=True) - a, inside).to(x.dtype)  # the others keep their ratios
    return moved * (grad_output - (x * grad_output).sum(-1, keepdim=True))


standard_gamma = _StandardGamma.apply
dirichlet = _Dirichlet.apply


def _drawn(name, kernel, apply, concentration, generator):
    if not isinstance(concentration, cygrad.Tensor):
        kind = type(concentration).__name__
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind}")
    if not concentration.is_floating_point():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{concentration.dtype.type_name}'")
    return apply(concentration, generator)


def _standard_gamma(input, generator=None):
    """Draw a number from each gamma distribution with this concentration and rate 1; with a gradient.

    Raises NotImplementedError for concentrations that are not floating-point.
    """
    return _drawn("_standard_gamma", "gamma_cpu", standard_gamma, input, generator)


def _sample_dirichlet(input, generator=None):
    """Draw probabilities from the Dirichlet distributions with the concentrations along the last dimension."""
    return _drawn("_sample_dirichlet", "dirichlet", dirichlet, input, generator)
