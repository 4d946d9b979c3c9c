"""Wrong, missing and superfluous arguments: PyTorch's type of exception and its first line."""

import warnings

import numpy as np
import pytest
from oracle.programs import compare

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

FLAGS = [True, False, 1, 0, None, "yes", [], 2.5]


@pytest.mark.parametrize("name", ["retain_graph", "create_graph", "allow_unused"])
def test_flags(name):
    def program(torch, say):
        x = torch.ones(2, requires_grad=True)
        for flag in FLAGS:
            if name == "create_graph" and flag is None:  # False here, as early PyTorch documents it
                continue
            say(lambda flag=flag: torch.autograd.grad((x * x).sum(), x, **{name: flag})[0].tolist())
            if name == "retain_graph" or (name == "create_graph" and flag not in (True, 1)):  # otherwise PyTorch warns
                say(lambda flag=flag: (x * x).sum().backward(**{name: flag}))
                say(lambda flag=flag: torch.autograd.backward((x * x).sum(), **{name: flag}))
        say(None if x.grad is None else x.grad.tolist())

    compare(program)


def test_missing():
    def program(torch, say):
        x = torch.ones(2, 2)
        for name in "mul matmul mv dot transpose select chunk sin exp sqrt abs relu".split():
            say(lambda name=name: getattr(torch, name)())
            say(lambda name=name: tuple(getattr(torch, name)(x).shape))
            say(lambda name=name: tuple(getattr(x, name)().shape))

    compare(program)


def test_superfluous():
    def program(torch, say):
        x = torch.ones(2, 2)
        for name in "sin exp sqrt neg tanh abs".split():
            say(lambda name=name: getattr(torch, name)(x, x))
        for name in "flatten cat stack chunk".split():
            say(lambda name=name: getattr(torch, name)(x, 0, 1, 2, 3))
        say(lambda: torch.transpose(x, 0, 1, 0))
        say(lambda: torch.matmul(x, x, x))

    compare(program)


def test_of_a_wrong_kind():
    """Non-tensors, non-flags, and NaN where a number is compared with 0."""

    def program(torch, say):
        x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 3)
        lists = [1], [0], [1], False, [0], 1
        for value in (None, 2, "x", [x], slice(1)):
            say(lambda value=value: torch.convolution(value, w, None, *lists))
            say(lambda value=value: torch.convolution(x, value, None, *lists))
            say(lambda value=value: torch.convolution(x, w, value, *lists))
            say(lambda value=value: torch.convolution(x, w, None, [1], [0], [1], value, [0], 1))
            say(lambda value=value: torch.qr(x[0], value))
        nan = float("nan")
        say(lambda: torch.renorm(x, nan, 0, 1))
        say(lambda: torch.renorm(x, 2, 0, nan))
        say(lambda: torch.cdist(x, x, nan))

    compare(program)


def test_gradients_of_a_subclass():
    def program(torch, say):
        Length = type("Length", (torch.Tensor,), {})
        x = torch.ones(3).as_subclass(Length).requires_grad_()
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        (x**3).sum().backward()
        for gradient in (first, second, x.grad):
            say(type(gradient).__name__)
            say(gradient.tolist())

    compare(program)


def test_format():
    def program(torch, say):
        for x in (torch.tensor(1.5), torch.nn.Parameter(torch.tensor(1.5)), torch.ones(2)):
            say(f"{x}")

    compare(program)


def test_none_is_no_dimension():
    """None is accepted where it means all dimensions and rejected as a dimension; flags must be True or False."""

    def program(torch, say):
        x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        for name in "squeeze prod max min median nanmedian".split():
            for function in (getattr(torch, name), lambda x, *args, name=name, **how: getattr(x, name)(*args, **how)):
                for how in ({"dim": None}, {"keepdim": True}, {"dim": None, "keepdim": True}, {}):
                    say(lambda function=function, how=how: kind_of_answer(function, x, **how))
        for name in "sum nansum nanmean mean logsumexp amax all any argmax std var var_mean std_mean".split():
            for keepdim in (True, False, 1, None):
                for values in (x, x.long(), x > 2) if isinstance(keepdim, bool) else (x,):
                    say(
                        lambda name=name, keepdim=keepdim, values=values: kind_of_answer(
                            getattr(torch, name), values, dim=None, keepdim=keepdim
                        )
                    )
        for wrong in (1, None):
            say(lambda wrong=wrong: torch.mode(x, 0, wrong))
            say(lambda wrong=wrong: torch.svd(x, wrong))
            say(lambda wrong=wrong: torch.unique(x, wrong))
            say(lambda wrong=wrong: torch.unique(x, dim=0, return_counts=wrong))
            say(lambda wrong=wrong: torch.unique_consecutive(x, return_counts=wrong))
            say(lambda wrong=wrong: torch.multinomial(x, 1, wrong))
            say(lambda wrong=wrong: kind_of_answer(torch.sort, x, 0, wrong))

    def kind_of_answer(function, *args, **how):
        try:
            found = function(*args, **how)
        except (TypeError, RuntimeError, NotImplementedError) as error:
            return type(error).__name__
        return [(r.shape, str(r.dtype), r.tolist()) for r in (found if isinstance(found, tuple) else (found,))]

    compare(program)


def test_in_place():
    """In-place forms have their own names, and argument positions do not count the tensor."""

    def program(torch, say):
        for name in "add_ mul_ sub_ div_ atan2_ eq_ copysign_ pow_".split():
            for wrong in ("a", None, [1]):
                say(lambda name=name, wrong=wrong: getattr(torch.ones(2, 2), name)(wrong))
        say(lambda: torch.ones(2).mul_())
        say(lambda: torch.ones(2).index_add_(0))

    compare(program)


def test_creation_without_arguments():
    def program(torch, say):
        for name in "tensor full zeros_like ones_like empty_like full_like".split():
            for arguments in ((), ((2,), 1, 2, 3)):
                say(lambda name=name, arguments=arguments: tuple(getattr(torch, name)(*arguments).shape))

    compare(program)


def test_classes_are_named():
    def program(torch, say):
        modules = """AvgPool2d CELU CircularPad2d ConstantPad1d Conv2d ConvTranspose1d CosineEmbeddingLoss Dropout ELU
            Hardshrink LazyConv2d LogSigmoid MaxPool2d MaxUnpool2d Mish ReLU SELU SiLU Softmax Softmin Tanh Unfold
            ZeroPad2d BatchNorm1d InstanceNorm2d Linear GELU"""
        distributions = "Cauchy Gumbel HalfCauchy HalfNormal Laplace Normal Gamma Bernoulli Uniform"
        schedules = "LambdaLR MultiplicativeLR StepLR"
        for place, names in (
            (torch.nn, modules),
            (torch.distributions, distributions),
            (torch.optim.lr_scheduler, schedules),
        ):
            for name in names.split():
                say(lambda place=place, name=name: type(getattr(place, name)(unknown=1)).__name__)
                say(lambda place=place, name=name: type(getattr(place, name)(*range(20))).__name__)

    compare(program)


def test_mixed_types():
    """Operands that are promoted, that must match, and values that do not fit a dtype."""

    def program(torch, say):
        single = torch.ones(2)
        for equation, a, b in (
            ("i,j->ij", single, torch.arange(3)),
            ("i,i->i", single, torch.ones(2).double()),
            (",", torch.tensor(2.0), torch.tensor(3)),
            ("ij,->ij", torch.ones(2, 2), torch.tensor(3)),
            ("i,i->", single, torch.arange(2)),
            ("ij,jk", torch.ones(2, 2), torch.ones(2, 2).double()),
        ):
            say(lambda equation=equation, a=a, b=b: torch.einsum(equation, a, b))
        for bytes_ in ([1, 2], [0, 2]):
            say(lambda bytes_=bytes_: torch.nn.functional.threshold(torch.tensor(bytes_, dtype=torch.uint8), 0, -1))
        small = torch.arange(6, dtype=torch.int8).reshape(2, 3)
        say(lambda: torch.tensordot(small, torch.ones(1, 3, 4, dtype=torch.int8), 1))
        say(lambda: torch.nonzero_static(single, size=3, fill_value=1.5))
        say(lambda: torch.nonzero_static(single, size=3, fill_value=1))

    compare(program)


def test_two_types_of_half_precision():
    pytest.importorskip("ml_dtypes")
    pytest.importorskip("scipy")

    def program(torch, say):
        half, other = torch.ones(2).half() * 2, torch.ones(2).bfloat16()
        for name in ("igamma", "igammac"):
            say(str(getattr(torch, name)(half, other).dtype))
            say(str(getattr(torch, name)(half, half).dtype))

    compare(program)


def test_integers_with_a_part_that_requires_grad():
    def program(torch, say):
        whole, part = torch.zeros(2, 2, dtype=torch.int16), torch.ones(2, requires_grad=True)
        calls = (
            lambda: torch.slice_scatter(whole, part[None], 0, 0, 1),
            lambda: torch.select_scatter(whole, part, 0, 0),
            lambda: torch.diagonal_scatter(whole, part),
            lambda: torch.as_strided_scatter(whole, part, (2,), (1,)),
            lambda: whole.index_fill(0, torch.tensor([0]), part[0]),
        )
        for call in calls:
            say(call)
            with torch.no_grad():
                say(call().tolist())

    compare(program)


def test_infinite_complex_numbers():
    def program(torch, say):
        low, high = float("-inf"), float("inf")
        for real in ([low, low, 0.0, 1.0], [0.0, low, 1.0], [low, low], [0.0, high, high, 1.0]):
            z = torch.tensor(real) + 0j
            say(torch.logcumsumexp(z, 0).real)
            say(torch.logaddexp(z, z.flip(0)).real)
        nan = torch.full((2, 2), float("nan")) + 0j
        say(torch.linalg.slogdet(nan).sign.real)

    compare(program)


def test_numbers_that_python_lacks():
    def program(torch, say):
        wide = np.longdouble(1)
        for call in (
            lambda: torch.tensor(wide),
            lambda: torch.chunk(torch.ones(2), wide),
        ):
            say(lambda call=call: attempt(call))

    def attempt(call):
        try:
            call()
        except (TypeError, RuntimeError) as error:
            return "RecursionError" if isinstance(error, RecursionError) else "refused"
        return "taken"

    compare(program)


def test_words_of_other_names():
    """Aliases such as `multiply` have several signatures; functions of a namespace are named as in that namespace."""

    def program(torch, say):
        x = torch.ones(2)
        for call in (
            *(lambda: torch.multiply(x, "a"), lambda: torch.true_divide(x, "a"), lambda: torch.subtract(x)),
            *(lambda: torch.divide(x), lambda: torch.subtract(x), lambda: x.divide("a")),
            *(lambda: x.multiply(), lambda: x.subtract("a"), lambda: torch.mul(x)),
            *(lambda: torch.special.erf("a"), lambda: torch.special.i0(), lambda: torch.special.xlogy(x)),
            *(lambda: torch.special.erf(x, 1), lambda: torch.special.logsumexp("a", 1), lambda: torch.erf("a")),
            *(lambda: torch.linalg.matrix_power("a", 2), lambda: torch.linalg.matmul("a", x), lambda: x.logdet()),
            *(lambda: torch.ones(2, 3).logdet(), lambda: torch.ones(2, 2).int().logdet()),
            *(lambda: x.neg(1), lambda: x.absolute(1, 2), lambda: torch.neg(x, 1)),
        ):
            say(call)

    compare(program)


def test_factors_of_rsub_and_addmm():
    def program(torch, say):
        x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
        for call in (
            *(lambda: torch.rsub(x, y, 2), lambda: torch.rsub(x, 2, 2), lambda: torch.rsub(x, 2, 3, alpha=2)),
            *(lambda: torch.rsub(x, y, alpha=2), lambda: torch.rsub(x, 2, alpha=2)),
        ):
            say(call)
        eye, ones = torch.eye(2), torch.ones(2, 2)
        for call in (
            lambda: torch.addmm(2, eye, mat1=ones, mat2=ones, alpha=3),
            lambda: eye.addmm(2, mat1=ones, mat2=ones, alpha=3),
        ):
            with warnings.catch_warnings(action="ignore"):  # PyTorch issues one for each function
                say(call())
        say(lambda: torch.addmm(2, eye, mat1=ones, mat2=ones, beta=3))
        say(lambda: torch.addmm(2, eye, ones, mat2=ones, alpha=3))

    compare(program)


def test_devices():
    def program(torch, say):
        x = torch.ones(2)
        for word in ("cpu:", "cpu:01", "cpu1", " cpu", "CPU", "xx:1", "xx1", "cpu:-1", "cpu:1:2", True, 1.5, 0, -1):
            say(lambda word=word: repr(torch.device(word)))
            if word is not True:  # PyTorch's `to` treats it as a dtype
                say(lambda word=word: x.to(word) if word != 1.5 else None)
            say(lambda word=word: torch.ones(2, device=word) if word not in (0, True, 1.5) else None)
        for call in (
            *(
                lambda: repr(torch.device("cpu", -1)),
                lambda: repr(torch.device("cpu:0", 0)),
                lambda: x.to("cpu:0").sum(),
            ),
            *(
                lambda: repr(x.to("cpu:1").device),
                lambda: torch.ones(1, device="cpu:3").device,
            ),
            *(lambda: x.to("a", True), lambda: x.to("cpu", True), lambda: x.to("cpu", True, dtype=torch.float32)),
            *(
                lambda: x.to(torch.float32, "cpu"),
                lambda: x.to(x, "a"),
                lambda: x.to(device=True),
                lambda: x.to("a", 5),
            ),
            *(
                lambda: repr(torch.device("cpu", True)),
                lambda: repr(torch.device("cuda", np.int64(0))),
                lambda: x.to(x, dtype=torch.float64),
                lambda: x.to("cpu", device="cpu"),
            ),
            *(lambda: x.to("cpu", copy="a"), lambda: x.to(torch.float32, None), lambda: x.to("cpu", None, True).dtype),
        ):
            say(call)

    compare(program)


def test_numbers_of_logit_and_nan_to_num():
    def program(torch, say):
        x, i = torch.tensor([0.25, 0.5]), torch.tensor([1, 2])
        for call in (
            *(
                lambda: torch.logit(x, i),
                lambda: x.logit(x),
                lambda: torch.logit(x, "a"),
                lambda: torch.logit(x, eps=1j),
            ),
            *(
                lambda: torch.logit(x, torch.tensor(0.3)),
                lambda: torch.logit(x, None),
                lambda: torch.special.logit(x, i),
            ),
            *(lambda: torch.nan_to_num(i, x), lambda: i.nan_to_num("a"), lambda: torch.nan_to_num(x, posinf=1j)),
            *(lambda: torch.nan_to_num(x, 1, None, 2), lambda: torch.nan_to_num(i, neginf=x)),
            lambda: torch.tensor([torch.inf, -torch.inf, torch.nan], dtype=torch.float16).nan_to_num().tolist(),
            lambda: torch.tensor([torch.inf, -torch.inf], dtype=torch.float16).nan_to_num(posinf=1).tolist(),
        ):
            say(call)

    compare(program)
