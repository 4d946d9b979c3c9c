"""Layers of channels-last images and volumes, whose results and gradients are as PyTorch lays them out."""

import pytest

import cygrad as torch
from cygrad.nn import functional as F

# Layers whose result is channels last if the input is
LAST = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest-exact": lambda x: F.interpolate(x, size=(3,) * (x.ndim - 2), mode="nearest-exact"),
    "linear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear" if x.ndim == 4 else "trilinear"),
    "group_norm": lambda x: F.group_norm(x, 2),
    "group_norm of parameters": lambda x: F.group_norm(x, 2, torch.ones(4), torch.zeros(4)),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "constant pad": lambda x: F.pad(x, (1, 1) * (x.ndim - 2)),
    "pad of one dimension": lambda x: F.pad(x, (1, 2)),
    "cut": lambda x: F.pad(x, (-1, 0)),
    "reflect": lambda x: F.pad(x, (1, 1) * (x.ndim - 2), "reflect"),
    "replicate": lambda x: F.pad(x, (1, 1) * (x.ndim - 2), "replicate"),
    "max_pool": lambda x: (F.max_pool2d if x.ndim == 4 else F.max_pool3d)(x, 2),
    "convolution": lambda x: convolved(x, torch.ones(3, 4, *[2] * (x.ndim - 2))),
    "convolution by one": lambda x: convolved(x, torch.ones(3, 4, *[1] * (x.ndim - 2))),
    "depthwise convolution": lambda x: convolved(x, torch.ones(4, 1, *[2] * (x.ndim - 2)), groups=4),
    "transposed convolution": lambda x: convolved(x, torch.ones(4, 3, *[2] * (x.ndim - 2)), "_transpose"),
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "mish": F.mish,
    "cat": lambda x: torch.cat([x, x * 2], 1),
    "roll": lambda x: x.roll(1, 2),
}
OF_IMAGES = {
    "pixel_shuffle": lambda x: F.pixel_shuffle(F.pad(x, (0, 0, 0, 0, 0, 4)), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "lp_pool2d": lambda x: F.lp_pool2d(x, 2, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "area": lambda x: F.interpolate(x, size=(2, 3), mode="area"),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 3),
    "antialias": lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
}
# Layers whose result is channels last, and whose gradient is contiguous
OTHER_GRADIENT = {
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "glu": lambda x: F.glu(x, 1),
}
CONTIGUOUS = {
    "instance_norm": lambda x: F.instance_norm(x),
    "circular": lambda x: F.pad(x, (1, 1) * (x.ndim - 2), "circular"),
    "grid_sample": lambda x: F.grid_sample(x, torch.zeros(2, *[3] * (x.ndim - 2), x.ndim - 2), align_corners=False),
    "cat of both": lambda x: torch.cat([torch.ones(2, 4, *x.shape[2:]), x], 1),
}
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def convolved(x, weight, form="", **how):
    return getattr(F, f"conv{form}{x.ndim - 2}d")(x, weight, **how)


def image(ndim):
    shape = (2, 4, 4, 6, 2)[:ndim]
    x = (torch.arange(torch.Size(shape).numel()) * 37 % 101 / 50 - 1).reshape(shape)
    return x.to(memory_format=FORMATS[ndim])


def is_last(t):
    return t.is_contiguous(memory_format=FORMATS[t.ndim]) and not t.is_contiguous()


ALL = [(name, of, ndim) for table in (LAST, OTHER_GRADIENT) for name, of in table.items() for ndim in (4, 5)]
ALL = [case for case in ALL if case[0] != "bicubic" or case[2] == 4] + [(*case, 4) for case in OF_IMAGES.items()]


@pytest.mark.parametrize(("name", "layer", "ndim"), ALL, ids=[f"{name}-{ndim}" for name, _, ndim in ALL])
def test_results_and_gradients_are_channels_last(name, layer, ndim):
    x = image(ndim).requires_grad_()
    plain = x.detach().contiguous().requires_grad_()
    found, expected = layer(x), layer(plain)
    assert is_last(found) and expected.is_contiguous()
    assert torch.allclose(found, expected)
    grads = [torch.autograd.grad(y, leaf, torch.ones_like(y)) for y, leaf in ((found, x), (expected, plain))]
    has_other = name in OTHER_GRADIENT or (name.startswith("nearest") and ndim == 5)
    assert is_last(grads[0][0]) is not has_other and grads[1][0].is_contiguous()
    assert torch.allclose(grads[0][0], grads[1][0], atol=1e-5)


@pytest.mark.parametrize("ndim", [4, 5])
@pytest.mark.parametrize("name", CONTIGUOUS)
def test_results_that_pytorch_makes_contiguous(name, ndim):
    x = image(ndim)
    found = CONTIGUOUS[name](x)
    assert found.is_contiguous() and torch.allclose(found, CONTIGUOUS[name](x.contiguous()))


@pytest.mark.parametrize("of_volume", ["avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d"])
def test_pools_of_volumes_are_contiguous(of_volume):
    assert getattr(F, of_volume)(image(5), 2).is_contiguous()


def test_places_of_maxima_are_channels_last_too():
    values, places = F.max_pool2d(image(4), 2, return_indices=True)
    assert is_last(values) and is_last(places)
    assert torch.equal(places, F.max_pool2d(image(4).contiguous(), 2, return_indices=True)[1])


def test_strides_of_dimensions_of_length_1():
    x = torch.ones(2, 4, 2, 2).to(memory_format=torch.channels_last)
    assert F.max_pool2d(x, 2).stride() == (4, 1, 4, 4)


def test_second_derivatives():
    x = image(4).requires_grad_()
    y = F.interpolate(F.silu(x), scale_factor=2)
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), x)
    plain = image(4).contiguous().requires_grad_()
    y = F.interpolate(F.silu(plain), scale_factor=2)
    (g,) = torch.autograd.grad(y, plain, torch.ones_like(y), create_graph=True)
    assert torch.allclose(second, torch.autograd.grad(g.sum(), plain)[0])


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((2, 3, 1, 1), (3, 1, 3, 3)),
        ((2, 1, 4, 4), (16, 1, 4, 1)),
        ((1, 1, 1, 1), (1, 1, 1, 1)),
        ((2, 3, 4, 1), (12, 1, 3, 3)),
        ((2, 3, 2, 2, 2), (24, 1, 12, 6, 3)),
    ],
)
def test_conversion_makes_the_steps_of_the_format(shape, strides):
    x = torch.arange(float(torch.Size(shape).numel())).view(shape).requires_grad_()
    y = x.to(memory_format=FORMATS[x.ndim])
    assert y.stride() == strides and torch.equal(y, x) and y is not x
    assert x.to(torch.float64, memory_format=FORMATS[x.ndim]).stride() == strides
    assert x.to("cpu", copy=True, memory_format=FORMATS[x.ndim]).stride() == strides
    assert "ToCopyBackward0" in str(y.grad_fn)
    y.backward(y.detach())
    assert torch.equal(x.grad, x)
    assert y.to(memory_format=torch.contiguous_format).stride() == x.stride()


def test_conversion_keeps_a_tensor_whose_steps_suggest_the_format():
    x = image(4)[:, :2]  # steps with gaps
    assert x.to(memory_format=torch.channels_last) is x
    transposed = torch.ones(2, 3).t()
    assert transposed.to(memory_format=torch.contiguous_format) is transposed
    assert transposed.to(torch.float64, memory_format=torch.contiguous_format).is_contiguous()
    empty = torch.ones(2, 0, 3, 3)
    assert empty.to(memory_format=torch.channels_last).shape == empty.shape
