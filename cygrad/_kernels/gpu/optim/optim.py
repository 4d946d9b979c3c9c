"""Optimizer steps on GPUs, one launch for all parameters of a type; takes the arguments of `cpu/optim/optim.pyx`.

A table in GPU memory lists the addresses of the tensors, and which chunk of which tensor each block updates. It is
uploaded again only if a pointer has changed. Elements are updated in the memory order of the parameter; arrays with
another layout are copied before and written back after. Complex numbers are updated as pairs of reals. Within
`unless(found)` a step changes nothing if `found` is not 0.
"""

import math
import re
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, is_array, on_device
from cygrad._kernels.gpu.launch.program import FLOATS, Program, wide_type
from cygrad._kernels.gpu.optim.host_numbers import Recipe, recipe
from cygrad._kernels.gpu.runtime.graph_capture import current, kept, place, uploaded, used

_CHUNK = 1 << 14  # elements per block
_THREADS = 256
_MOST_TABLES = 64

TEXT = """
// A row of `tensors`: pointers to parameter, gradient, state and count of steps, NULL for what there is not; the size.
#define COLUMNS 7
// The types of the state. Squares of half precision are kept in the type that is computed in.
#ifndef S0
#define S0 T
#endif
#ifndef S1
#define S1 T
#endif
#ifndef S2
#define S2 T
#endif
#define EACH_ELEMENT(i) \\
    const whole* tensor = tensors + parts[2 * blockIdx.x] * COLUMNS; \\
    T* p = (T*)tensor[0]; const T* g = (const T*)tensor[1]; \\
    S0* s0 = (S0*)tensor[2]; S1* s1 = (S1*)tensor[3]; S2* s2 = (S2*)tensor[4]; \\
    whole first = parts[2 * blockIdx.x + 1], last = first + CHUNK < tensor[6] ? first + CHUNK : tensor[6]; \\
    for (whole i = first + threadIdx.x; i < last; i += blockDim.x)
"""


class Step(Program):
    """A program that updates parameters and their state, of which the entries `squares` are squares."""

    def __init__(self, name, text, squares=()):
        super().__init__(name, "".join(f"#define S{i} W\n" for i in squares) + TEXT + text)
        self.squares = squares
        self._own = text
        self._followed: Any = None

    @property
    def followed(self):
        """The same with its numbers in GPU memory, where a graph reads them anew (Note [Host numbers])."""
        if self._followed is None:
            start, names, rest, body = _NUMBERS_OF.split(self._own)
            read = " ".join(f"const {name} = live[{i}];" for i, name in enumerate(" ".join(names.split()).split(", ")))
            self._followed = Step(self.name, f"{start}const double* live{rest}\n    {read}{body}", self.squares)
        return self._followed


# Splits a step's text at its numbers, and at the body.
_NUMBERS_OF = re.compile(r"(?s)(?<=const whole\* parts, )(.*?)(,\s+const float\* found\) \{)")


_SGD = Step(
    "sgd",
    """
extern "C" __global__ void sgd(const whole* tensors, const whole* parts, double lr, double momentum, double taken,
                               double weight_decay, double sign, whole nesterov, const float* found) {
    if (found && *found) return;
    EACH_ELEMENT(i) {
        W x = W(p[i]), change = W(sign) * W(g[i]) + W(weight_decay) * x;
        if (s0) {
            W b = W(momentum) * W(s0[i]) + W(taken) * change;
            s0[i] = T(b);
            change = nesterov ? change + W(momentum) * b : b;
        }
        p[i] = T(x - W(lr) * change);
    }
}
""",
)
_OF_ADAM = """
        W x = W(p[i]) * W(shrink), change = W(sign) * W(g[i]) + W(weight_decay) * x;
        W m = W(s0[i]), v = W(s1[i]) * W(beta2) + W(gain2) * change * change;
        m += (change - m) * W(gain1);
        s0[i] = T(m);
        s1[i] = v;
        if (s2) {
            W most = s2[i];
            v = v > most || v != v ? v : most;
            s2[i] = v;
        }
        p[i] = T(x - W(step_size) * m / (sqrt(v) / W(root_of_correction) + W(eps)));
    }
}
"""
_ADAM = Step(
    "adam",
    """
extern "C" __global__ void adam(const whole* tensors, const whole* parts, double gain1, double beta2, double gain2,
                                double eps, double weight_decay, double shrink, double sign, double step_size,
                                double root_of_correction, const float* found) {
    if (found && *found) return;
    EACH_ELEMENT(i) {"""
    + _OF_ADAM,
    (1, 2),
)
# The same with step counts in GPU memory, and the learning rate there too if `rate` is its address.
_COUNTED_ADAM = Step(
    "counted_adam",
    """
extern "C" __global__ void counted_adam(const whole* tensors, const whole* parts, double beta1, double beta2, double lr,
                                        whole rate, double eps, double weight_decay, double decay, double sign,
                                        const float* found) {
    if (found && *found) return;
    const double t = *(const float*)tensors[parts[2 * blockIdx.x] * COLUMNS + 5];
    if (rate) lr = *(const double*)rate;
    const double shrink = 1 - lr * decay, gain1 = 1 - beta1, gain2 = 1 - beta2;
    const double step_size = lr / (1 - pow(beta1, t)), root_of_correction = sqrt(1 - pow(beta2, t));
    EACH_ELEMENT(i) {"""
    + _OF_ADAM,
    (1, 2),
)
_COUNT = Program(
    "count_steps",
    TEXT
    + """
extern "C" __global__ void count_steps(const whole* tensors, whole count, const float* found) {
    if (found && *found) return;
    EACH_OF(i, count) *(float*)tensors[i * COLUMNS + 5] += 1;
}
""",
)
_FORMULA = """
extern "C" __global__ void %s(const whole* tensors, const whole* parts, double sign, double decay, double shrink,
                              double c0, double c1, double c2, double c3, double c4, double c5, double c6,
                              const float* found) {
    if (found && *found) return;
    EACH_ELEMENT(i) {
        W x = W(p[i]) * W(shrink), d = W(sign) * W(g[i]) + W(decay) * x;
        %s
        p[i] = T(x);
    }
}
"""
# The other optimizers: the update of x and the state for the gradient d. c0 to c6 are values shared by all elements
# (`shared_numbers` in cpu/optim/formulas.pyx).
FORMULAS = {
    "Adadelta": """W v = W(s0[i]) * W(c0) + W(c1) * d * d, moved = W(s1[i]);
        W update = sqrt(moved + W(c2)) / sqrt(v + W(c2)) * d;
        s0[i] = v;
        s1[i] = moved * W(c0) + W(c1) * update * update;
        x -= W(c3) * update;""",
    "Adagrad": """W total = W(s0[i]) + d * d;
        s0[i] = total;
        x -= W(c0) * d / (sqrt(total) + W(c1));""",
    "Adamax": """W m = W(s0[i]), before = W(s1[i]) * W(c1), now = fabs(d) + W(c2);
        m += (d - m) * W(c0);
        W most = now > before || now != now ? now : before;
        s0[i] = T(m);
        s1[i] = T(most);
        x -= W(c3) * m / most;""",
    "ASGD": """W average = W(s0[i]);
        x = x * W(c0) - W(c1) * d;
        s0[i] = T(average + W(c2) * (x - average));""",
    "NAdam": """W m = W(s0[i]), v = W(s1[i]) * W(c1) + W(c2) * d * d;
        m += (d - m) * W(c0);
        s0[i] = T(m);
        s1[i] = v;
        x -= (W(c5) * m + W(c6) * d) / (sqrt(v / W(c3)) + W(c4));""",
    "RAdam": """W m = W(s0[i]), v = W(s1[i]) * W(c1) + W(c2) * d * d;
        m += (d - m) * W(c0);
        s0[i] = T(m);
        s1[i] = v;
        W update = W(c3) * m;
        x -= c4 < 0 ? update : update * (W(c4) / (sqrt(v) + W(c5)));""",
    "RMSprop": """W v = W(s0[i]) * W(c0) + W(c1) * d * d;
        s0[i] = v;
        if (s2) {
            W mean = s2[i];
            mean += (d - mean) * W(c1);
            s2[i] = mean;
            v -= mean * mean;
        }
        W update = d / (sqrt(v) + W(c2));
        if (s1) {
            update += W(s1[i]) * W(c3);
            s1[i] = T(update);
        }
        x -= W(c4) * update;""",
    "Rprop": """W turn = d * W(s0[i]), size = W(s1[i]);
        size *= turn > 0 ? W(c1) : turn < 0 ? W(c0) : W(1);
        size = size < W(c2) ? W(c2) : size > W(c3) ? W(c3) : size;
        if (turn < 0) d = 0;
        s0[i] = T(d);
        s1[i] = T(size);
        x -= (d > 0 ? W(1) : d < 0 ? W(-1) : d) * size;""",
}
# The entries of the state that are kept in the type that is computed in
SQUARES = {"Adadelta": (0, 1), "Adagrad": (0,), "NAdam": (1,), "RAdam": (1,), "RMSprop": (0, 2)}
_STEPS = {
    name: Step(name.lower(), _FORMULA % (name.lower(), text), SQUARES.get(name, ())) for name, text in FORMULAS.items()
}
_NUMBERS = 7
_NONE = [0] * 6
_tables: dict = {}
_is_float: dict = {}  # by dtype: is it one of FLOATS?


class _Unless(local):
    """The array whose nonzero element suppresses the steps of this thread, or None."""

    found: Any = None


_unless = _Unless()


@contextmanager
def unless(found):
    """Context manager in which steps change nothing if the element of an array on their GPU is nonzero."""
    _unless.found = found
    try:
        yield
    finally:
        _unless.found = None


def _table(numbers):
    """Return an integer matrix on the current GPU; recently used ones are cached."""
    key = place(), numbers.shape, numbers.tobytes()
    found = _tables.pop(key, None)
    if found is None:
        found = uploaded(numbers)
        if current() is not None:
            return found
        if len(_tables) >= _MOST_TABLES:
            _tables.pop(next(iter(_tables)))
    _tables[key] = found
    return kept(found)


def table_of(rows, columns):
    """Return the addresses of the arrays of each row, filled up with zeros, as a matrix on the current GPU."""
    used(rows)
    return _table(np.array([[a.data.ptr for a in row] + [0] * (columns - len(row)) for row in rows], np.int64))


def found_to_skip():
    """Return the array whose nonzero element suppresses the steps of this thread, or None."""
    return _unless.found


def _parts(sizes):
    """Return (tensor, first element) of each block."""
    counts = [-(-size // _CHUNK) for size in sizes]
    owners = np.repeat(np.arange(len(sizes)), counts)
    starts = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([owners, starts * _CHUNK], 1)


def launch(program, rows, numbers, steps=()):
    """Launch once for tensors of one type on one device; each of `rows` holds parameter, gradient and state.

    `steps` are step counts on the GPU, incremented first.
    """
    used(rows, numbers, steps)
    pointers = []
    for row in rows:
        line = [0 if a is None else a.data.ptr for a in row]
        line += _NONE[len(row) :]
        line.append(row[0].size)
        pointers.append(line)
    for line, step in zip(pointers, steps):
        line[5] = step.data.ptr
    parts = _parts([row[0].size for row in rows])
    if len(parts):
        tables = _table(np.array(pointers, np.int64)), _table(parts)
        if steps:
            _COUNT.over(rows[0][0].dtype, len(rows), (tables[0], len(rows), _unless.found), CHUNK=_CHUNK)
        program.launch(rows[0][0].dtype, len(parts), _THREADS, (*tables, *numbers), CHUNK=_CHUNK)


def _check(params, arrays, name):
    """Check that there is one array of matching size per parameter; comparing CuPy shapes would take longer."""
    if len(arrays) != len(params):
        raise ValueError(f"{len(params)} parameters, but {len(arrays)} {name}")
    for param, array in zip(params, arrays):
        if array is not None and array.size != param.size:
            raise ValueError(f"{name}: shape {array.shape} for a parameter of {param.shape}")


def _is_ready(param, grad, state, squares):
    """Whether all have the supported types and C order."""
    dtype = param.dtype
    is_known = _is_float.get(dtype)
    if is_known is None:
        is_known = _is_float[dtype] = dtype.name in FLOATS
    if not is_known or grad.dtype != dtype or not param.flags.c_contiguous or not grad.flags.c_contiguous:
        return False
    wide = wide_type(dtype)
    for i, a in enumerate(state):
        if a is not None and (a.dtype != (wide if i in squares else dtype) or not a.flags.c_contiguous):
            return False
    return True


def _in_order(param, grad, state, squares, back):
    """Return arrays that a launch can update in their place; append (array, its copy) to `back` for copied ones."""
    axes = sorted(range(param.ndim), key=lambda axis: -param.strides[axis])
    if not param.transpose(axes).flags.c_contiguous:
        axes.sort()
    dtype, found = param.dtype, []
    for i, a in enumerate((param, grad, *state)):
        if a is not None:
            a = a.transpose(axes)
            wanted = wide_type(dtype) if i - 2 in squares else dtype
            if a.dtype != wanted or not a.flags.c_contiguous:
                copy = a.astype(wanted, order="C")
                if i != 1:  # gradients are not modified
                    back.append((a, copy))
                a = copy
            a = a.reshape(-1).view(dtype.char.lower()) if dtype.kind == "c" else a
        found.append(a)
    return found


def grouped(rows, squares):
    """Group (parameter, gradient, state, numbers) into [(device, numbers, rows of a launch, `back` of `_in_order`)]."""
    groups: dict = {}
    for param, grad, state, numbers in rows:
        char = param.dtype.char
        key = param.data.device_id, char.lower() if char in "FD" else char, numbers
        together, back = groups.get(key) or groups.setdefault(key, ([], []))
        if _is_ready(param, grad, state, squares):
            together.append((param, grad, *state))
        else:
            with on_device(key[0]):
                together.append(_in_order(param, grad, state, squares, back))
    return [(device, numbers, *found) for (device, _, numbers), found in groups.items()]


def launch_each(program, rows, further=()):
    """Launch once per type, device and numbers of (parameter, gradient, state, numbers), with `further` appended."""
    for device, numbers, together, back in grouped(rows, program.squares):
        with on_device(device):
            if isinstance(numbers, Recipe):
                launch(program.followed, together, (numbers.on_gpu(), *further))
            else:
                launch(program, together, (*numbers, *further))
            put_back(back)


def put_back(copies):
    """Write what steps have made of copies to the arrays that they were copied from."""
    for array, copy in copies:
        array[...] = copy


def formula_step(name, rows):
    """One step of an optimizer of `FORMULAS`; each of `rows` is (parameter, gradient, state, numbers)."""
    launch_each(_STEPS[name], [(*row, _filled_up(numbers)) for *row, numbers in rows], (_unless.found,))


def _filled_up(numbers):
    if isinstance(numbers, Recipe):
        return numbers
    return *map(float, numbers), *[0.0] * (3 + _NUMBERS - len(numbers))


def sgd_step(
    params,
    grads,
    momentum_buffers,
    lr,
    momentum=0,
    dampening=0,
    weight_decay=0,
    nesterov=False,
    maximize=False,
):
    """One step of stochastic gradient descent on each parameter."""
    _check(params, grads, "gradients")
    if momentum:
        _check(params, momentum_buffers, "momentum buffers")
    flags = -1.0 if maximize else 1.0, int(nesterov)
    sources = lr, momentum, dampening, weight_decay
    later = recipe(lambda lr, m, d, w: (float(lr), float(m), float(1 - d), float(w), *flags), sources)
    first = float(lr), float(momentum), 1.0, float(weight_decay), *flags
    rows = []
    for i, (param, grad) in enumerate(zip(params, grads)):
        buffer = momentum_buffers[i] if momentum else None
        rows.append((param, grad, (buffer,), later))
        if momentum and buffer is None:
            with on_device(param.data.device_id):
                momentum_buffers[i] = cupy().zeros_like(param)
            rows[-1] = param, grad, (momentum_buffers[i],), first
    launch_each(_SGD, rows, (_unless.found,))


def adam_step(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    steps,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay=0,
    amsgrad=False,
    maximize=False,
    decoupled=False,
):
    """One step of Adam on each parameter.

    `steps` are numbers, or GPU arrays with the counts before this step; then `lr` may be an array, too.
    """
    largest = max_exp_avg_sqs if amsgrad else [None] * len(params)
    for arrays, name in (
        (grads, "gradients"),
        (exp_avgs, "averages"),
        (exp_avg_sqs, "averages of squares"),
        (largest, "largest averages of squares"),
    ):
        _check(params, arrays, name)
    if is_array(steps[0]):
        settings = beta1, beta2, lr, eps, weight_decay, decoupled, maximize
        _counted_adam(params, grads, exp_avgs, exp_avg_sqs, largest, steps, *settings)
        return

    def numbers(lr, beta1, beta2, eps, weight_decay, t):
        decay, shrink = (0, 1 - lr * weight_decay) if decoupled else (weight_decay, 1)
        shared = 1 - beta1, beta2, 1 - beta2, eps, decay, shrink, -1 if maximize else 1
        return *map(float, shared), lr / (1 - beta1**t), math.sqrt(1 - beta2**t)

    together: dict[float, list[float]] = {}  # by count of steps: the counts that are equal
    for t in steps:
        together.setdefault(t, []).append(t)
    of_step = {t: recipe(numbers, (lr, beta1, beta2, eps, weight_decay, equal)) for t, equal in together.items()}
    states = zip(exp_avgs, exp_avg_sqs, largest)
    rows = [(*row, of_step[t]) for *row, t in zip(params, grads, states, steps)]
    launch_each(_ADAM, rows, (_unless.found,))


def _counted_adam(
    params, grads, means, squares, largest, steps, beta1, beta2, lr, eps, weight_decay, decoupled, maximize
):
    """Adam without step-dependent host values, so that a graph can replay it."""
    decay, decays = (0.0, weight_decay) if decoupled else (weight_decay, 0.0)
    sign = -1.0 if maximize else 1.0
    groups: dict = {}  # the rows and step counts of one launch
    for param, grad, state, step in zip(params, grads, zip(means, squares, largest), steps):
        found: tuple[list, list] = groups.setdefault((param.data.device_id, param.dtype), ([], []))
        found[0].append((param, grad, state, ()))
        found[1].append(step)
    for (device, _), (rows, counts) in groups.items():
        [(_, _, together, back)] = grouped(rows, _COUNTED_ADAM.squares)
        with on_device(device):
            rate = cupy().asarray(lr).astype(np.float64) if is_array(lr) else None
            given = (float(lr), 0) if rate is None else (0.0, rate.data.ptr)
            numbers = float(beta1), float(beta2), *given, float(eps), float(decay), float(decays), sign
            launch(_COUNTED_ADAM, together, (*numbers, _unless.found), counts)
            put_back(back)
