"""Samples for normalizations."""

import numpy as np
from ops.sample import Sample, grid, integers, positive


def samples():
    return {**over_batch(), **over_last_dims(), **over_groups(), **with_statistics(), **by_norms()}


def normalized(a, axes, weight, bias, eps, parameter):
    d = a - a.mean(axes, keepdims=True)
    return scaled(d / np.sqrt((d * d).mean(axes, keepdims=True) + eps), weight, bias, parameter)


def scaled(a, weight, bias, shape):
    a = a if weight is None else a * weight.reshape(shape)
    return a if bias is None else a + bias.reshape(shape)


def over_batch():
    x, images, w, b = grid(5, 3), grid(2, 3, 2, 2), positive(3), grid(3)

    def package(a, weight, bias, running_mean, running_var, training, momentum, eps, cudnn):
        parameter = (1, -1) + (1,) * (a.ndim - 2)
        axes = (0, *range(2, a.ndim))
        if training:
            return normalized(a, axes, weight, bias, eps, parameter)
        d = (a - running_mean.reshape(parameter)) / np.sqrt(running_var.reshape(parameter) + eps)
        return scaled(d, weight, bias, parameter)

    def instance(a, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn):
        return normalized(a, tuple(range(2, a.ndim)), weight, bias, eps, (1, -1) + (1,) * (a.ndim - 2))

    training = (None, None, True, 0.1, 1e-5, True)
    return {
        "batch_norm": [
            *(
                Sample((a, weight, bias, *training), numpy=package, oracle_grad=weight is not None or bias is None)
                for a in (x, images, grid(2, 3, 4))
                for weight, bias in ((w, b), (None, None), (w, None), (None, b))
            ),
            Sample((x, w, b, None, None, True, 0.1, 0.5, False), numpy=package),
        ],
        "instance_norm": [
            *(Sample((a, w, b, *training), numpy=instance) for a in (images, grid(2, 3, 4))),
            Sample((images, None, None, *training), numpy=instance),
            Sample((images, w, None, *training), numpy=instance),
        ],
    }


def over_last_dims():
    x, stack, w, b = grid(4, 3), grid(2, 3, 4), positive(3), grid(3)

    def layer(a, shape, weight=None, bias=None, eps=1e-5):
        axes = tuple(range(a.ndim - len(shape), a.ndim))
        return normalized(a, axes, weight, bias, eps, shape)

    def rms(a, shape, weight=None, eps=2.0**-52):
        axes = tuple(range(a.ndim - len(shape), a.ndim))
        return scaled(a / np.sqrt((a * a).mean(axes, keepdims=True) + eps), weight, None, shape)

    return {
        "layer_norm": [
            *(Sample((x, (3,), *rest), numpy=layer) for rest in ((), (w,), (w, b), (w, b, 0.3))),
            Sample((x, (3,), None, b), numpy=layer, oracle_grad=False),  # PyTorch's second gradient fails
            Sample((stack, [3, 4], positive(3, 4), grid(3, 4)), numpy=layer),
            Sample((stack, (2, 3, 4)), numpy=layer),
            Sample((grid(3), (3,), w, b), numpy=layer),
            Sample((np.zeros((0, 3)), (3,), w, b), numpy=lambda a, *rest: a),
        ],
        "rms_norm": [
            *(Sample((x, (3,), *rest), numpy=rms) for rest in ((), (w,), (w, 0.3), (None, 1.0))),
            Sample((stack, (3, 4), positive(3, 4)), numpy=rms),
        ],
    }


def over_groups():
    images, w, b = grid(2, 4, 2, 3), positive(4), grid(4)

    def group(a, groups, weight=None, bias=None, eps=1e-5):
        parts = a.reshape(len(a), groups, -1)
        parts = normalized(parts, (2,), None, None, eps, ()).reshape(a.shape)
        return scaled(parts, weight, bias, (1, -1) + (1,) * (a.ndim - 2))

    calls = [(images, n, *rest) for n in (1, 2, 4) for rest in ((w, b), ())]
    return {
        "group_norm": [
            *(Sample(call, numpy=group) for call in [*calls, (grid(2, 4, 3), 2, w, b, 0.5)]),
            Sample((grid(3, 4), 2, None, b), numpy=group, oracle_grad=False),  # PyTorch's gradient fails
        ]
    }


def with_statistics():
    x, w, b = grid(2, 4, 3), positive(4), grid(4)
    parameters = (w, b), (None, None)
    return {
        "native_layer_norm": [Sample((grid(2, 3, 4), [4], w, b, 1e-5)), Sample((x, [4, 3], None, None, 1e-5))],
        "native_group_norm": [
            Sample((x, *rest, 2, 4, 3, 2, 1e-5), oracle_grad=False) for rest in ((w, b), (None, None))
        ],
        "native_batch_norm": [Sample((x, *rest, None, None, True, 0.1, 1e-5)) for rest in parameters],
    }


def by_norms():
    x, stack = grid(3, 4), grid(2, 5, 3)

    def response(a, size, alpha=1e-4, beta=0.75, k=1.0):
        sums = np.zeros_like(a)
        for c in range(a.shape[1]):
            low, high = max(0, c - size // 2), min(a.shape[1], c + (size - 1) // 2 + 1)
            sums[:, c] = (a[:, low:high] ** 2).sum(1)
        return a / (k + alpha * sums / size) ** beta

    def normalize(a, p=2.0, dim=1, eps=1e-12):
        size = np.linalg.norm(a, p, dim, keepdims=True)
        return a / np.maximum(size, eps)

    def window(a, size, before):
        padded = np.pad(a, [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (a.ndim - 2))
        return sum(padded[:, k : k + a.shape[1]] for k in range(size))

    return {
        "local_response_norm": [
            *(Sample((a, n, 0.5), numpy=response) for a in (stack, grid(2, 4, 2, 2)) for n in (1, 2, 3, 9)),
            Sample((stack, 3, 2.0, 0.5, 2.0), numpy=response),
        ],
        "normalize": [
            *(Sample((x, *rest), numpy=normalize) for rest in ((), (1,), (3.0, 0), (np.inf, -1))),
            Sample((1e-13 * x,), {"eps": 1e-3}, lambda a, eps: a / eps),
            Sample((np.zeros((2, 2)),), numpy=lambda a: a, smooth=False, oracle_grad=False),
        ],
        "unit": [
            *(
                Sample((x, dim, 1e-8, kind), numpy=lambda a, dim, *_: normalize(a, 2, dim))
                for dim in (0, 1)
                for kind in (False, True)
            ),
            Sample((1e-3 * x, 1, 5.0, True), numpy=lambda a, *_: a / 5),
            Sample((np.zeros((2, 2)), 0, 1e-8, True), numpy=lambda a, *_: a, smooth=False),
        ],
        "channel_window": [Sample((stack, size, size // 2), numpy=window) for size in (1, 2, 3, 9)],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, i, w = grid(3, 4), integers(3, 4), positive(4)
    single = x.astype(np.float32)
    training = (None, None, True, 0.1, 1e-5, True)

    def bad(*cases):
        return [Sample(case, {}) for case in cases]

    return {
        "batch_norm": bad(
            (x, None, None, None, None, False, 0.1, 1e-5, True),
            (x, w[:3], None, *training),
            (x, None, w[:3], *training),
            (x, None, None, w[:3], w, False, 0.1, 1e-5, True),
            (x, None, None, w, None, False, 0.1, 1e-5, True),
            (i, None, None, *training),
            (single, w, None, *training),
            (x, w.astype(np.float32), None, *training),
        ),
        "instance_norm": bad((grid(2, 4, 2), None, None, None, None, False, 0.1, 1e-5, True)),
        "layer_norm": bad(
            (x, (3,)),
            (x, ()),
            (x, 4),
            (x, "a"),
            (x, (4.5,)),
            (x, (4,), w[:3]),
            (x, (4,), w, w[:3]),
            (i, (4,)),
            (single, (4,), w),
            (x, (4,), w.astype(np.float32)),
            ("a", (4,)),
            (x, (2, 3, 4)),
        ),
        "rms_norm": bad((x, (3,)), (x, ()), (x, 4), (i, (4,)), (x, (4,), w[:3]), ("a", (4,))),
        "group_norm": bad(
            (x, 3),
            (x, 0),
            (x, 2, w[:3]),
            (x, 2, w, w[:3]),
            (i, 2),
            (single, 2, w),
            (x, 2, grid(4, 1)),
        ),
        "local_response_norm": bad((x, 2), (x[0], 2)),
        "normalize": bad((x, 2.0, 5)),
    }
