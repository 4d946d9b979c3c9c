"""Tensors on the device "meta" against PyTorch's: shapes, dtypes, strides, texts, and errors."""

import itertools

import numpy as np
import pytest
from ops.calls import SAMPLES, is_internal, public_function, replace

import cygrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

SAME = """
x
x.t()[1:].stride(), x.t()[1:].storage_offset(), x.data_ptr(), x.is_meta, x.device, x.get_device(), x.type()
x[:, None].expand(2, 5, 3).stride()
x[i], x[:, i], x[i, i], x[torch.tensor([True, False])]
x + torch.tensor(2.0), torch.tensor(2.0, dtype=torch.float64) * x, x.to(torch.int64) / 2, x > 0
(x * 2).requires_grad_().exp()
x.sum(), x.mean(1, keepdim=True), x.std(0), x.argmax(1), x.max(0), x.all(), x.cumsum(1), x.norm()
x @ m(3, 4), torch.einsum("ab,cb->ac", x, x), torch.bmm(m(2, 3, 4), m(2, 4, 5)), torch.linalg.svd(x)
torch.linalg.inv(m(3, 3)), torch.linalg.eig(m(3, 3)), torch.linalg.solve(m(3, 3), m(3, 2)), torch.linalg.qr(x)
torch.cat([x, x], 1), torch.stack([x, x]), x.repeat(2, 2), x.unfold(1, 2, 1), x.roll(1), x.flip(0), x.tril()
torch.sort(x), torch.topk(x, 2), torch.kthvalue(x, 1), torch.median(x), torch.mode(x)
torch.gather(x, 1, i[:, None]), x.index_select(0, i), x.scatter_add(0, i[:, None], x), x.masked_fill(x > 0, 1.0)
torch.fft.rfft(x), torch.fft.fft2(x), torch.stft(m(64), 16, return_complex=True, window=m(16))
F.conv2d(m(2, 3, 8, 9), m(4, 3, 3, 3), stride=2), F.conv_transpose2d(m(1, 2, 4, 4), m(2, 3, 3, 3), stride=2)
F.max_pool2d(m(1, 2, 7, 7), 2, return_indices=True), F.avg_pool1d(m(1, 2, 7), 3), F.interpolate(m(1, 2, 4, 4), 7)
F.batch_norm(m(2, 3, 4), m(3), m(3), training=True), F.layer_norm(x, (3,)), F.softmax(x, 1), F.gelu(x)
F.cross_entropy(m(4, 5), i.repeat(2)), F.nll_loss(m(2, 3), i, reduction="none"), F.mse_loss(x, x)
F.embedding(i, m(9, 4)), F.embedding_bag(i[None], m(9, 4)), F.one_hot(i, 5), F.dropout(x), F.pad(x, (1, 2))
F.ctc_loss(m(5, 2, 4), m(2, 3).long(), (5, 5), (3, 3)), F.grid_sample(m(1, 1, 4, 4), m(1, 2, 2, 2), align_corners=False)
torch.rand(3, device="meta"), torch.randint(0, 3, (2,), device="meta"), torch.randperm(4, device="meta")
torch.multinomial(x, 2), torch.bernoulli(x), torch.normal(x, x), torch.poisson(x), torch.rand_like(x)
torch.zeros_like(torch.ones(2, 3).t(), device="meta").stride(), torch.full((2,), 3, device="meta")
torch.histc(x, 4, 0, 1), torch.bucketize(x, m(3)), torch.isin(x, x), torch.searchsorted(m(4), x)
torch.nn.LSTM(3, 4, device="meta")(x), torch.nn.Linear(3, 4, device="meta").state_dict()
torch.repeat_interleave(m(3), m(3).long(), output_size=7), torch.nonzero_static(x, size=2), f"{x.sum()}"
m(2, 3).add_(1)._version, m(4).resize_(9).shape, x.copy_(torch.ones(3)), torch.empty_like(x, device="cpu").device
torch.nn.init.kaiming_uniform_(m(3, 3)), torch.nn.init.trunc_normal_(m(3)), torch.ones(2, 3).to("meta")
""".strip().split("\n")

ERRORS = """
m(1).item()
bool(m(1))
float(m(1))
m(2).tolist()
m(2).cpu()
torch.ones(2).copy_(m(2))
m(2).numpy()
m(2).__dlpack__()
x.nonzero()
x[x > 0]
torch.masked_select(x, x > 0)
x.unique()
torch.unique_consecutive(x)
torch.bincount(i)
torch.equal(x, x)
torch.allclose(x, x)
F.one_hot(i)
x + torch.ones(3)
torch.ones(3) + x
torch.cat([x, torch.ones(2, 3)])
torch.where(x > 0, x, torch.ones(3))
x.t().view(6)
m(2**62, 4)
torch.Generator("meta")
torch.nn.Linear(2, 3, device="meta").to("cpu")
""".strip().split("\n")


def names(library):
    def m(*shape):
        return library.empty(*shape, device="meta")

    index = library.zeros(2, dtype=library.int64, device="meta")
    return {"torch": library, "F": library.nn.functional, "m": m, "x": m(2, 3), "i": index}


def shown(value):
    """A value as text, without the order of parameters in memory."""
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    if hasattr(value, "items"):
        return [(key, shown(each)) for key, each in value.items()]
    text = repr(value)
    return text.partition(", grad_fn=")[0] if "BatchNorm" in text or "grad_fn" in text else text


@pytest.mark.parametrize("expression", SAME)
def test_same(expression):
    assert shown(eval(expression, names(cygrad))) == shown(eval(expression, names(torch)))


@pytest.mark.parametrize("expression", ERRORS)
def test_same_error(expression):
    with pytest.raises(Exception) as expected:
        eval(expression, names(torch))
    with pytest.raises(expected.type) as found:
        eval(expression, names(cygrad))
    # PyTorch's line goes on with advice on its compiler
    line = str(expected.value).partition("\n")[0].partition(" You may have run into")[0].partition(" This implement")[0]
    assert str(found.value).partition("\n")[0] == line


SHARED = [name for name in SAMPLES if not is_internal(name) and public_function(torch, name)]
RETURNED = {"cat": "an empty vector fits all others, wherever it is"}


def mixed(library, name, sample, on_meta):
    """What the sample gives with the arrays at these places on the device "meta": the error, or None."""
    places = itertools.count()

    def made(array):
        tensor = library.from_numpy(np.array(array))
        return tensor.to("meta") if tensor.ndim and next(places) in on_meta else tensor

    args = [replace(value, made) for value in sample.args]
    kwargs = {key: replace(value, made) for key, value in sample.kwargs.items()}
    try:
        public_function(library, name)(*args, **kwargs)
    except Exception as error:
        return error
    return None


def count_of_arrays(sample):
    found = []
    for value in (*sample.args, *sample.kwargs.values()):
        replace(value, lambda array: found.append(array) if array.ndim else None)
    return len(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SHARED)
def test_operands_on_two_devices(name):
    """Where PyTorch refuses operands on the CPU and on "meta" together, so does cygrad, and says why.

    Where PyTorch returns a result, it is of memory that nobody has written, or of shapes alone: cygrad may refuse.
    """
    for sample in SAMPLES[name]:
        count = count_of_arrays(sample)
        for places in ({0}, {1}, set(range(1, count))) if count > 1 else ():
            found = mixed(cygrad, name, sample, places)
            if found is None:
                assert mixed(torch, name, sample, places) is None or name in RETURNED, (sample, places)
            else:
                assert isinstance(found, (RuntimeError, NotImplementedError, ValueError)), (sample, places, found)


SOLUTIONS = """
torch.linalg.solve(a, b), torch.linalg.solve(a, b.mT + 0, left=False), torch.linalg.solve_ex(a, b)[0]
torch.linalg.inv(a), torch.linalg.solve_triangular(a, b, upper=True), torch.cholesky_solve(b, a)
torch.linalg.solve_triangular(a, b.mT + 0, upper=False, left=False)
torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), torch.linalg.cholesky(a), torch.linalg.lu_factor(a)[0]
*torch.linalg.qr(a), *torch.linalg.svd(a), *torch.linalg.eigh(a), torch.linalg.ldl_factor(a)[0], torch.linalg.pinv(a)
""".strip().splitlines()


@pytest.mark.parametrize("expression", SOLUTIONS)
def test_strides_of_solutions(expression):
    def strides(library):
        a, b = library.empty(2, 3, 3, device="meta"), library.empty(2, 3, 4, device="meta")
        return [(tuple(t.shape), t.stride()) for t in eval(f"[{expression}]", {"torch": library, "a": a, "b": b})]

    assert strides(cygrad) == strides(torch)
