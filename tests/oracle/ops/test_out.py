"""`out=` with another shape than the result is resized as in PyTorch, with its warning."""

import itertools
import warnings

import numpy as np
import pytest
from ops.calls import SAMPLES, Call, Cygrad, takes_out
from oracle.answers import check, lines
from oracle.ops.test_ops import Torch
from oracle.programs import compare

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle


# -- every op ------------------------------------------------------------------------------------------------

# Ops that PyTorch resizes without a warning.
SILENT = {"addbmm", "bernoulli", "logsigmoid", "lu", "multinomial", "narrow_copy"}
# Ops for which PyTorch accepts `out` in no sample, although some are documented to.
WITHOUT_OUT = {
    *("index_put", "masked_fill", "masked_fill.Tensor", "det", "median", "nanmedian", "relu", "where.indices"),
    *("argsort", "sum", "prod", "split_copy", "index_fill", "index_fill.Tensor", "put", "masked_scatter"),
}


def written(name, sample, on, results):
    """The results with each `out` two elements too long, and whether there was a warning."""
    call = Call(name, sample, requires_grad=False, on=on)
    outs = [on.library.zeros(out.numel() + 2, dtype=out.dtype) for out in results]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on.function(name)(*call.args, **call.kwargs, out=outs[0] if len(outs) == 1 else tuple(outs))
    return outs, any(str(w.message).startswith("An output with one or more elements was resized") for w in caught)


@pytest.mark.parametrize("name", [name for name in SAMPLES if takes_out(name) and Torch.function(name)])
@pytest.mark.filterwarnings("ignore")  # about deprecated functions
def test_every_op_resizes(name):
    """For a few samples of each op, shapes and values match, with a warning if PyTorch gives one."""
    tried = 0
    for sample in SAMPLES[name][:3]:
        results = Call(name, sample, requires_grad=False, on=Torch).run()
        try:
            expected, warned = written(name, sample, Torch, results)
        except (RuntimeError, TypeError):  # no such out= in PyTorch
            continue
        kinds = [cygrad.from_numpy(Torch.array(out)) for out in results]
        found, found_warned = written(name, sample, Cygrad, kinds)
        assert found_warned == warned or name in SILENT, sample
        for a, b in zip(found, expected, strict=True):
            assert a.shape == tuple(b.shape), sample
            if sample.unique:
                np.testing.assert_allclose(Cygrad.array(a), Torch.array(b), rtol=1e-4, atol=1e-5)
        tried += 1
    assert bool(tried) == (name not in WITHOUT_OUT)


# Ops that PyTorch computes in the dtype of `out`, that fail inside one of its steps, or whose message differs.
OTHER_TYPES = {
    *("abs", "bernoulli", "diff", "heaviside", "ldexp", "lerp", "linalg_matrix_norm", "lu", "matrix_power", "mvlgamma"),
    "logsigmoid",
    *("chain_matmul", "mean.dim", "nanmean", "nansum", "narrow_copy", "split_copy", "std", "svd", "var"),
}


def refused(name, sample, on, kinds, place, kind):
    """The error of a call whose `out` number `place` has another dtype, or None."""
    outs = [on.library.zeros(shape, dtype=getattr(on.library, one)) for shape, one in kinds]
    outs[place] = on.library.zeros(kinds[place][0], dtype=getattr(on.library, kind))
    call = Call(name, sample, requires_grad=False, on=on)
    try:
        on.function(name)(*call.args, **call.kwargs, out=outs[0] if len(outs) == 1 else tuple(outs))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error).__name__, str(error).split("\n")[0]
    return None


@pytest.mark.parametrize("name", sorted({n for n in SAMPLES if takes_out(n) and Torch.function(n)} - OTHER_TYPES))
@pytest.mark.filterwarnings("ignore")  # about deprecated functions, and discarded imaginary parts
def test_every_op_takes_the_same_types(name):
    """An `out` with another dtype than the result is rejected as in PyTorch, with the same error."""
    for sample in SAMPLES[name][:2]:
        results = Call(name, sample, requires_grad=False, on=Torch).run()
        kinds = [(tuple(out.shape), str(out.dtype).partition(".")[2]) for out in results]
        for place, (_, own) in enumerate(kinds):
            if refused(name, sample, Torch, kinds, place, own):  # no such out= in PyTorch
                continue
            for kind in {"float64", "float32", "int64", "uint8", "bool", "complex64"} - {own}:
                expected = refused(name, sample, Torch, kinds, place, kind)
                assert refused(name, sample, Cygrad, kinds, place, kind) == expected, (sample, own, kind)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "nanmean"])
@pytest.mark.filterwarnings("ignore")
def test_a_dtype_given_with_out_is_its_own(name):
    """Without an explicit dtype, sums and products are computed in the dtype of `out`."""
    kinds = ("float32", "float64", "complex64", "int64") if name != "mean" else ("float32", "float64", "complex64")
    for asked, kind in itertools.product(kinds, ("float32", "float64", "complex64", "int64")):
        expected, found = (
            outcome(
                lambda library: getattr(library, name)(
                    library.ones(2, 2),
                    0,
                    dtype=getattr(library, asked),
                    out=library.zeros(2, dtype=getattr(library, kind)),
                ),
                library,
            )
            for library in (torch, cygrad)
        )
        if "not implemented" not in expected and "complex inputs" not in expected:
            assert found == expected, (asked, kind)


@pytest.mark.parametrize("kind", ["float16", "float64", "int64"])
def test_lerp_by_a_tensor_wants_the_type_of_its_operands(kind):
    for weight in (lambda library: library.ones(2), lambda library: library.tensor(0.5), lambda library: 0.5):
        expected, found = (
            outcome(
                lambda library: library.lerp(
                    library.ones(2),
                    library.zeros(2),
                    weight(library),
                    out=library.zeros(2, dtype=getattr(library, kind)),
                ),
                library,
            )
            for library in (torch, cygrad)
        )
        assert found == expected


def outcome(call, library):
    """The values and the dtype of a call's result, or its error."""
    try:
        result = call(library)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return f"{result.dtype} {result.tolist()}"


# -- resizing, and invalid outs ------------------------------------------------------------------------------

CALLS = """
torch.sin(s, out=t) # shorter
torch.sin(x, out=t)
torch.sin(x.t(), out=t) # in the order of the operand
torch.sin(x, out=empty)
torch.sin(s, out=b[1]), b # what the view shares with its base, it keeps
torch.sin(x, out=b[1]), b
torch.sin(s, out=b[1:1, 0]), b
torch.sin(s, out=b[:, 1]), b
torch.add(x, s, out=b[0]), b
torch.sum(x, 0, out=t)
torch.mm(x.t(), x, out=t)
torch.cat([x, x], out=t)
tuple(torch.max(x, 0, out=(t, i)))
tuple(torch.sort(x, 1, out=(t, i)))
tuple(torch.topk(s, 2, out=(t, i)))
torch.linalg.vector_norm(x, out=t)
torch.gather(x, 0, j, out=t)
torch.where(x > 0, x, c, out=t)
torch.clamp(x, 0, 1, out=t)
torch.diff(x, out=t)
torch.msort(x, out=t)
torch.nansum(x, 0, out=t)
torch.quantile(x, 0.5, 0, out=t)
torch.quantile(x, 0.5, 0, out=i)
tuple(torch.aminmax(x, dim=0, out=(t, t2)))
torch.aminmax(x, dim=0, out=(i, t2))
torch.nonzero_static(x, size=2, out=i)
torch.special.multigammaln(x.abs() + 2, 1, out=t)
torch.searchsorted(s, x, out=i)
torch.view_copy(x, (6,), out=t)
torch.zeros(2, out=t)
torch.zeros(2, out=b[1]), b
torch.eye(2, out=t)
torch.full((2, 2), 3.0, out=t)
torch.arange(2, out=t)
torch.arange(6, out=t)
torch.arange(6.0, out=x.t()), x
torch.arange(2, out=empty)
torch.linspace(0, 1, 6, out=x.t()), x
torch.logspace(0, 1, 2, out=t)
torch.sin(x, out=i) # not castable
torch.sin(s, out=x.expand(2, 2, 3)) # overlapping
torch.sin(x, out=r)
torch.sin(r, out=t)
torch.sum(r * 1, 0, out=t)
torch.add(c, x, out=c) # an operand
torch.add(x, c, out=c)
torch.sin(s, out=foreign), array # somebody else's memory
torch.sin(x, out=foreign)
foreign.resize_(2), array
foreign.resize_(5)
"""


def names(library):
    array = np.ones(4, np.float32)
    return {
        "x": library.tensor([[1.0, 2.0, 0.5], [0.3, 4.0, -1.0]]),
        "s": library.tensor([0.5, 1.0, 2.0]),
        "c": library.ones(2, 1),
        "j": library.tensor([[1, 0, 1]]),
        "t": library.zeros(4),
        "t2": library.zeros(5),
        "i": library.zeros(4, dtype=library.int64),
        "b": library.zeros(3, 4),
        "r": library.ones(2, 3, requires_grad=True),
        "empty": library.empty(0),
        "array": array,
        "foreign": library.from_numpy(array),
    }


@pytest.mark.parametrize("call", lines(CALLS))
def test_resized(call):
    check(call, names, shared=True)


def test_text_of_the_warning():
    """PyTorch's first line, reported at the caller's line; as an error, it is raised before any change."""
    texts = []
    for library in (torch, cygrad):
        out = library.ones(3)
        with pytest.warns(UserWarning, match="was resized") as caught:
            library.sin(library.ones(2, 2), out=out)
        texts.append(str(caught[0].message).partition(" (Triggered")[0])
        assert out._version == 1
    assert texts[0] == texts[1] and caught[0].filename == __file__
    with warnings.catch_warnings(), pytest.raises(UserWarning):
        warnings.simplefilter("error")
        cygrad.sin(cygrad.ones(5), out=out)
    assert out.shape == (2, 2) and out._version == 1


# -- non-tensors ---------------------------------------------------------------------------------------------

NO_TENSORS = """
torch.exp(x, out=(t,))
torch.exp(x, out="t")
torch.add(x, c, alpha=2, out=[t])
torch.atan2(x, x, out=3)
torch.complex(x, x, out=3)
torch.polar(x, x, out=(t,))
torch.cumsum(x, 0, out=[t])
torch.trace(x[:, :2], out=t)
torch.tril(x, out=(t,))
torch.tril(x, out=1)
torch.matmul(x, x.t(), out=[t])
torch.gather(x, 0, j, out=(t,))
torch.take(x, j, out=2)
torch.masked_select(x, x > 0, out=2)
torch.kron(x, x, out=3)
torch.cat([x, x], out=(t,))
torch.linalg.eigvals(x[:, :2], out=(t,))
torch.linalg.qr(x, out=t)
"""


@pytest.mark.parametrize("call", lines(NO_TENSORS))
def test_no_tensor(call):
    check(call, names)


def test_indices_alone():
    """PyTorch accepts it together with `stable`."""

    def program(torch, say):
        x, whole = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), torch.int64
        for how in ({"stable": True}, {"stable": False, "dim": 0, "descending": True}):
            for out in (torch.zeros(2, 3, dtype=whole), torch.zeros(0, dtype=whole), torch.zeros(2, 3)):
                say(lambda how=how, out=out: torch.argsort(x, **how, out=out))
                say(out)
        say(lambda: torch.argsort(torch.tensor(1.0), stable=True, out=torch.tensor(5)))
        say(lambda: torch.argsort(x * 1j, stable=True, out=torch.zeros(2, 3, dtype=whole)))
        say(lambda: torch.argsort(x.clone().requires_grad_(), stable=True, out=torch.zeros(2, 3, dtype=whole)))

    compare(program)


CHOOSING = {
    "sort": (0,), "topk": (1, 1), "max": (1,), "min": (0,), "kthvalue": (1, 1), "mode": (1,), "median": (1,),
    "nanmedian": (0,), "cummax": (0,), "cummin": (1,),
}  # fmt: skip


TYPES = list(itertools.product(("float32", "float64", "int64"), ("int64", "int32", "float32")))


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize("kinds", TYPES)
def test_values_and_indices_go_into_their_own_types_alone(name, kinds):
    def program(torch, say):
        x, function = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), getattr(torch, name)
        outs = [
            torch.zeros(each.shape, dtype=getattr(torch, kind))
            for each, kind in zip(function(x, *CHOOSING[name]), kinds, strict=True)
        ]
        if "median" in name and kinds != ("float32", "int64"):  # PyTorch names classes that do not exist
            with pytest.raises(RuntimeError):
                function(x, *CHOOSING[name], out=outs)
        else:
            say(lambda: function(x, *CHOOSING[name], out=outs))
        say([out.flatten().tolist() for out in outs])

    compare(program)
