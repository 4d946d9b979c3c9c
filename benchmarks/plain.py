"""NumPy expressions longer than a line, which ops.txt calls by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = np.ndarray[Any, Any]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x: Array) -> Array:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def chebyshev(x: Array, degree: int, start: int, slope: int) -> Array:
    """Return the polynomial of this degree by the recurrence; `start + slope * x` is the one of degree 1."""
    former, latest = np.ones_like(x), start + slope * x
    for _ in range(1, degree):
        former, latest = latest, 2 * x * latest - former
    return latest


def normalized(x: Array, axes: Any) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + np.float32(1e-5))


# -- windows ---------------------------------------------------------------------------------------------------


def places(x: Array, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the maximum of each two-dimensional window, and its position in the image."""
    windows = x.reshape(shape).transpose(order).reshape(*(shape[i] for i in order[:-2]), -1)
    at = windows.argmax(-1)
    rows = at // shape[order[-1]] + shape[order[-2]] * np.arange(at.shape[-2])[:, None]
    columns = at % shape[order[-1]] + shape[order[-1]] * np.arange(at.shape[-1])
    return np.take_along_axis(windows, at[..., None], -1)[..., 0], rows * x.shape[-1] + columns


def gathered(x: Array, size: int, dims: int) -> tuple[Array, Array]:
    """Return maxima of windows of two elements per dimension, at positions chosen for each image."""
    image = x.shape[2:]
    flat = x.reshape(-1, int(np.prod(image)))
    at = np.zeros((len(flat), 1, 1), np.int64)
    for length in image:
        first = np.minimum((np.arange(size) * ((length - 2) / (size - 1))).astype(np.int64), length - 2)
        own = np.broadcast_to(first[:, None] + np.arange(2), (len(flat), size, 2))
        at = (at[:, :, None, :, None] * length + own[:, None, :, None, :]).reshape(len(flat), at.shape[1] * size, -1)
    found = np.take_along_axis(flat[:, None], at, 2)
    best = found.argmax(2)[..., None]
    values, places = np.take_along_axis(found, best, 2), np.take_along_axis(at, best, 2)
    return values.reshape(*x.shape[:2], *[size] * dims), places


def transposed(x: Array, kernel: Array) -> Array:
    """Return the transposed convolution: the convolution of the padded images with the flipped kernel."""
    dims = x.ndim - 2
    axes = tuple(range(2, x.ndim))
    size = kernel.shape[2:]
    padded = np.pad(x, [(0, 0), (0, 0), *((k - 1, k - 1) for k in size)])
    windows = sliding_window_view(padded, size, axes)
    patches = np.moveaxis(windows, 1, 1 + dims)
    flat = patches.reshape(-1, x.shape[1] * int(np.prod(size)))
    weights = np.flip(kernel, axes).swapaxes(0, 1).reshape(kernel.shape[1], -1)
    return np.moveaxis((flat @ weights.T).reshape(*patches.shape[: 1 + dims], -1), -1, 1).copy()


def folded(patches: Array, size: int, kernel: int) -> Array:
    n, places = patches.shape[0], size - kernel + 1
    parts = patches.reshape(n, -1, kernel, kernel, places, places)
    image = np.zeros((n, parts.shape[1], size, size), patches.dtype)
    for i in range(kernel):
        for j in range(kernel):
            image[:, :, i : i + places, j : j + places] += parts[:, :, i, j]
    return image


def overlapped(frames: Array, window: Array, hop: int) -> Array:
    """Return the signal with these frames, weighted by the squared windows."""
    length, half = frames.shape[1] + hop * (len(frames) - 1), frames.shape[1] // 2
    signal, weight = np.zeros(length, np.float32), np.zeros(length, np.float32)
    square = window * window
    for i, frame in enumerate(frames):
        signal[i * hop : i * hop + len(window)] += frame
        weight[i * hop : i * hop + len(window)] += square
    return signal[half:-half] / weight[half:-half]


def sampled(image: Array, grid: Array) -> Array:
    """Sample bilinearly, with zeros outside."""
    n, c, h, w = image.shape
    x, y = ((grid[..., 0] + 1) * w - 1) / 2, ((grid[..., 1] + 1) * h - 1) / 2
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    found = np.zeros((n, *grid.shape[1:3], c), np.float32)
    batch = np.arange(n)[:, None, None]
    for i in (top, top + 1):
        for j in (left, left + 1):
            inside = (i >= 0) & (i < h) & (j >= 0) & (j < w)
            weight = (1 - np.abs(x - j)) * (1 - np.abs(y - i)) * inside
            values = image[batch, :, i.clip(0, h - 1), j.clip(0, w - 1)]
            found += weight[..., None].astype(np.float32) * values
    return np.moveaxis(found, -1, 1).copy()


def meshed(theta: Array, size: int) -> Array:
    """Return the images under theta of the points of a square grid."""
    line = (2 * np.arange(size, dtype=np.float32) + 1) / size - 1
    base = np.stack([*np.meshgrid(line, line), np.ones((size, size), np.float32)], -1)
    return (base.reshape(-1, 3) @ theta.swapaxes(1, 2)).reshape(len(theta), size, size, 2)


# -- losses ----------------------------------------------------------------------------------------------------


def margins(x: Array, several: Array) -> Array:
    """Return `multilabel_margin_loss`, label by label, up to the row with the most labels."""
    loss = np.zeros(len(x), np.float32)
    count = (several < 0).argmax(1).max()
    labels = several[:, :count]
    others = np.ones(x.shape, bool)
    np.put_along_axis(others, labels, False, 1)
    for label in labels.T:
        mine = x[np.arange(len(x)), label][:, None]
        loss += (np.maximum(0, 1 - mine + x) * others).sum(1)
    return (loss / x.shape[1]).mean()


def ctc(log_odds: Array, spelled: Array) -> Array:
    """Return the loss of each sequence, all of one length: sums over paths, step by step."""
    n, length = spelled.shape
    states = np.zeros((n, 2 * length + 1), np.int64)
    states[:, 1::2] = spelled
    odds = np.take_along_axis(log_odds, np.broadcast_to(states, (len(log_odds), *states.shape)), 2)
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != 0) & (states[:, 2:] != states[:, :-2])
    paths = np.full(states.shape, -np.inf, np.float32)
    paths[:, :2] = odds[0, :, :2]
    for step in odds[1:]:
        after = paths.copy()
        after[:, 1:] = np.logaddexp(after[:, 1:], paths[:, :-1])
        after[:, 2:] = np.where(skips[:, 2:], np.logaddexp(after[:, 2:], paths[:, :-2]), after[:, 2:])
        paths = after + step
    return -np.logaddexp(paths[:, -1], paths[:, -2])


# -- factors, attention, recurrent layers ----------------------------------------------------------------------


def unpacked(lu: Array, pivots: Array) -> tuple[Array, Array, Array]:
    n = lu.shape[-1]
    order = np.tile(np.arange(n), (len(lu), 1))
    for i in range(n):
        at = pivots[:, i, None] - 1
        former = np.take_along_axis(order, at, 1)
        np.put_along_axis(order, at, order[:, i : i + 1].copy(), 1)
        order[:, i : i + 1] = former
    return np.eye(n, dtype=lu.dtype)[order].swapaxes(1, 2), np.tril(lu, -1) + np.eye(n, dtype=lu.dtype), np.triu(lu)


def attended(x: Array, w_in: Array, w_out: Array, heads: int) -> tuple[Array, Array]:
    steps, n, width = x.shape
    parts = (x @ w_in.T).reshape(steps, n, 3, heads, width // heads)
    q, k, v = parts.transpose(2, 1, 3, 0, 4)
    weights = softmax(q @ k.swapaxes(2, 3) / np.float32((width // heads) ** 0.5))
    return (weights @ v).transpose(2, 0, 1, 3).reshape(steps, n, width) @ w_out.T, weights.mean(1)


def lstm_cell(x: Array, h: Array, c: Array, wi: Array, wh: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(x @ wi.T + h @ wh.T, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_cell(x: Array, h: Array, wi: Array, wh: Array) -> Array:
    (ri, zi, ni), (rh, zh, nh) = np.split(x @ wi.T, 3, 1), np.split(h @ wh.T, 3, 1)
    z, n = sigmoid(zi + zh), np.tanh(ni + sigmoid(ri + rh) * nh)
    return n + z * (h - n)


def lstm(seq: Array, state: Array, wi: Array, wh: Array) -> Array:
    h, c = state[0], state[0]
    outputs = []
    for x in seq:
        h, c = lstm_cell(x, h, c, wi, wh)
        outputs.append(h)
    return np.stack(outputs)


def gru(seq: Array, state: Array, wi: Array, wh: Array) -> Array:
    h, outputs = state[0], []
    for x in seq:
        h = gru_cell(x, h, wi, wh)
        outputs.append(h)
    return np.stack(outputs)


def rnn(seq: Array, state: Array, wi: Array, wh: Array, activation: Callable[[Array], Array]) -> Array:
    h, outputs = state[0], []
    for x in seq:
        h = activation(x @ wi.T + h @ wh.T)
        outputs.append(h)
    return np.stack(outputs)
