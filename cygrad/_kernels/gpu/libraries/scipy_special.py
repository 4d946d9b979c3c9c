"""Special functions on GPUs: those that CuPy has under SciPy's names, and two that it lacks."""

import numpy as np

from cygrad._kernels.device.cupy_library import as_number, is_array
from cygrad._kernels.gpu.launch.elementwise_program import elementwise

# Ai, or its derivative. Above 1: the integral along the path through the saddle point, by the trapezoidal rule, which
# converges exponentially. Down to -7: the power series. Below: the asymptotic series. Accurate to 1e-11.
_airy = elementwise(
    "airy",
    "T x, int32 slope",
    "T out",
    """double v = x, found = v, pi = 3.14159265358979323846;
    if (v > 1) {
        double s = sqrt(v), scale = sqrt(s), zeta = 2.0 / 3 * v * s, sum = 0;
        for (int k = 0; zeta < 750 && k <= 130; k++) {
            double t = 0.05 * k, u = t / scale, angle = u * u * u / 3, weight = exp(-t * t) * (k ? 1 : 0.5);
            sum += weight * (slope ? -(s * cos(angle) + u * sin(angle)) : cos(angle));
        }
        found = zeta < 750 ? 0.05 * sum / scale / pi * exp(-zeta) : 0.0;
    } else if (v >= -7) {
        double cube = v * v * v, f = 1, g = v, of_f = 0, of_g = 1;
        double term_f = 1, term_g = v, slope_f = 0.5 * v * v, slope_g = 1;
        of_f = slope_f;
        for (int k = 1; k < 60; k++) {
            double n = 3 * k;
            term_f *= cube / ((n - 1) * n);
            term_g *= cube / (n * (n + 1));
            slope_f *= cube / (n * (n + 2));
            slope_g *= cube / (n * (n - 2));
            f += term_f; g += term_g; of_f += slope_f; of_g += slope_g;
        }
        const double at = 0.355028053887817239260, falls = 0.258819403792806798405;
        found = slope ? at * of_f - falls * of_g : at * f - falls * g;
    } else if (v < -7) {
        double y = -v, root = sqrt(y), zeta = 2.0 / 3 * y * root, u = 1, sums[2] = {0, 0}, least = 2;
        for (int k = 0; k < 40; k++) {
            double term = slope ? u * (6.0 * k + 1) / (1 - 6.0 * k) : u;
            if (fabs(u) > least) break;
            least = fabs(u);
            sums[k & 1] += k & 2 ? -term : term;
            double next = k + 1;
            u *= (6 * next - 5) * (6 * next - 3) * (6 * next - 1) / (216 * next * (2 * next - 1)) / zeta;
        }
        double c = cos(zeta - pi / 4), d = sin(zeta - pi / 4), scale = sqrt(root);
        found = slope ? scale / sqrt(pi) * (d * sums[0] - c * sums[1])
                      : (c * sums[0] + d * sums[1]) / (scale * sqrt(pi));
    }
    out = T(W(found));""",
)
# Order n: upward recurrence from orders 0 and 1 if |x| is larger than n, else the power series.
_spherical = elementwise(
    "spherical_jn",
    "int64 n, T x",
    "T out",
    """double v = x, found = v;
    if (fabs(v) > 1e308) {
        found = 0;
    } else if (fabs(v) > n && v == v) {
        double before = sin(v) / v, now = n ? (before - cos(v)) / v : before;
        for (long long k = 1; k < n; k++) {
            double next = (2 * k + 1) / v * now - before;
            before = now;
            now = next;
        }
        found = now;
    } else if (v == v) {
        double term = 1, sum;
        for (long long k = 1; k <= n; k++) term *= v / (2 * k + 1);
        sum = term;
        for (long long k = 1; k < 200 && fabs(term) > 1e-20 * fabs(sum); k++) {
            term *= -v * v / (2.0 * k * (2 * n + 2 * k + 1));
            sum += term;
        }
        found = sum;
    }
    out = T(W(found));""",
)


def special_function(name, function, arrays, which=None):
    """Evaluate the `scipy.special` function of that name in float64, or float32 for float32; `function` names the op.

    `which` selects one of several results. Raises RuntimeError if CuPy lacks the function.
    """
    dtype = np.result_type(*(a.dtype for a in arrays if is_array(a) or isinstance(a, np.ndarray)))
    arrays = [a if is_array(a) else as_number(a) for a in arrays]
    if name == "airy":
        return _airy(*arrays, which)
    if name == "spherical_jn":
        return _spherical(*arrays)
    from cupyx.scipy import special  # few programs need it

    found = getattr(special, name, None)
    if found is None:
        raise RuntimeError(
            f"cygrad.{function} cannot be computed on a GPU: CuPy has no {name}\n"
            "  move the tensors first, as in x.cpu()"
        )
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    values = found(*(a.astype(wide, copy=False) if is_array(a) else a for a in arrays))
    return (values if which is None else values[which]).astype(dtype, copy=False)
