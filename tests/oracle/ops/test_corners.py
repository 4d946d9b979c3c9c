"""Rare calls, and operands at the limits of what an op accepts."""

import itertools

import pytest
from oracle.programs import compare

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
NAN = float("nan")
TYPES = "uint8 int8 int64 float16 bfloat16 float32 float64".split()


def test_absolute_values_into_complex_memory():
    def program(torch, say):
        for values in (3 + 4j, [3 + 4j, -1j], [[1j], [2 - 2j]]):
            z = torch.tensor(values)
            say(torch.abs(z, out=z) is z)
            say(z)
            say(lambda z=z: z.abs_())
            say(lambda z=z: z.absolute_())

    compare(program)


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_tensor_as_dimension(name):
    """A tensor passed by keyword is the dimension; by position it is the other operand, unless `keepdim` is given."""

    def program(torch, say):
        x, one = torch.tensor([[1.0, 3.0], [2.0, 0.0]]), torch.tensor(1)
        function = getattr(torch, name)
        for call in (
            lambda: function(x, dim=one),
            lambda: getattr(x, name)(dim=one),
            lambda: function(x, dim=one, keepdim=True),
            lambda: function(x, one),
            lambda: function(x, one, True),
            lambda: function(x, one, keepdim=True),
            lambda: function(x, other=one),
            lambda: function(x, axis=1),
        ):
            say(call)

        def refuses(call):
            with pytest.raises(TypeError):
                call()

        refuses(lambda: function(x, 1, dim=1))
        refuses(lambda: function(x, one, other=one))
        refuses(lambda: function(x, dim=1, other=one))

    compare(program)


def test_numbers_of_any_size_among_elements():
    def program(torch, say):
        numbers = [257, -1, 1.5, NAN, True, 1j, 0.1, 1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63), -(1 << 63) - 1]
        for kind, number in itertools.product(TYPES, numbers):
            for x in (torch.tensor([1, 255 if kind != "int8" else -1]), torch.tensor([0.1, 0.5, 1.9])):
                x = x.to(getattr(torch, kind))
                say(lambda x=x, number=number: torch.isin(x, number))
                say(lambda x=x, number=number: torch.isin(number, x, invert=True))
        for kinds in itertools.product(TYPES[3:], TYPES[2:]):
            x, tests = (torch.tensor([0.1, 0.5]).to(getattr(torch, kind)) for kind in kinds)
            say(torch.isin(x, tests))
            say(torch.isin(x.repeat(100), tests.repeat(100)).sum())

    compare(program)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_of_nan(reduction):
    """A NaN margin counts as no loss."""

    def program(torch, say):
        x = torch.tensor([[NAN, 1, 2], [1, NAN, 0.5]], requires_grad=True)
        for p, target in itertools.product((1, 2), ([0, 1], [1, 0], [2, 2])):
            loss = torch.nn.functional.multi_margin_loss(x, torch.tensor(target), p=p, reduction=reduction)
            say(loss)
            say(torch.autograd.grad(loss.sum(), x)[0])

    compare(program)


def test_soft_margin_of_all_types():
    def program(torch, say):
        for kinds in itertools.product((*TYPES, "complex64", "complex128"), repeat=2):
            x, y = (torch.tensor([1, 2, 1]).to(getattr(torch, kind)) for kind in kinds)
            say(lambda x=x, y=y: torch.nn.functional.soft_margin_loss(x, y, reduction="none"))
        z = torch.tensor([1 + 1j, 2 - 1j], requires_grad=True)
        say(lambda: torch.nn.functional.soft_margin_loss(z, z.detach().conj()))
        say(lambda: torch.nn.functional.soft_margin_loss(z.detach(), z.detach().conj().resolve_conj()))

    compare(program)


def test_differences_of_order_zero():
    """`prepend` and `append` are validated but otherwise ignored."""

    def program(torch, say):
        x = torch.arange(6.0).reshape(2, 3)
        for n, part in itertools.product((0, 1), ((2,), (2, 1), (3, 1), (1, 3))):
            for dim in (0, 1):
                say(lambda n=n, dim=dim, part=part: torch.diff(x, n=n, dim=dim, prepend=torch.ones(part)))
                say(lambda n=n, dim=dim, part=part: torch.diff(x.int(), n=n, dim=dim, append=torch.ones(part)))

    compare(program)


@pytest.mark.parametrize("driver", [None, "gels", "gelsd", "gelss"])
def test_least_squares_of_stacks_that_broadcast(driver):
    """Ranks and singular values have the batch shape of the matrices before broadcasting."""

    def program(torch, say):
        for stacks in itertools.product(((), (1,), (3,), (3, 1), (1, 3), (2, 3)), repeat=2):
            a = torch.ones(*stacks[0], 3, 2) + torch.arange(6.0).reshape(3, 2).sin()
            for b in (torch.ones(*stacks[1], 3, 2), torch.ones(*stacks[1], 3)):
                say(lambda a=a, b=b: [list(t.shape) for t in torch.linalg.lstsq(a, b, driver=driver)])

    compare(program)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
def test_normalisations_with_statistics(kind):
    def program(torch, say):
        x = torch.arange(24.0).reshape(2, 4, 3).sin().to(getattr(torch, kind))
        for p in (None, torch.arange(4.0).cos(), torch.arange(4.0).cos().to(x.dtype)):
            say(lambda p=p: torch.native_layer_norm(x.transpose(1, 2), [4], p, p, 1e-5))
            say(lambda p=p: torch.native_layer_norm(x, [4, 3], None, None, 1e-5))
            say(lambda p=p: torch.native_group_norm(x, p, p, 2, 4, 3, 2, 1e-5))
            say(lambda p=p: torch.native_batch_norm(x, p, p, None, None, True, 0.1, 1e-5))
        for sizes in ((2, 4, 3, 3), (2, 4, 6, 2), (1, 8, 3, 2), (2, 4, 3, 0)) if x.is_floating_point() else ():
            say(lambda sizes=sizes: torch.native_group_norm(x, None, None, *sizes, 1e-5))
        if x.is_floating_point():
            y = x.clone().requires_grad_()
            result, *statistics = torch.native_layer_norm(y, [3], None, None, 1e-5)
            say([t.requires_grad for t in statistics])
            (found,) = torch.autograd.grad((result**3).sum(), y)
            say([round(value, 3) for value in found.flatten().tolist()])

    compare(program)


# For a number x and complex numbers z in two dimensions: which of several errors is raised, and what it names
REFUSED = [
    *("torch.renorm(x, 1, 1, 0.5)", "torch.renorm(x[None], 1, 1, 0.5)", "torch.renorm(z, 1, 2, 0.5)"),
    *("torch.gradient(x)", "torch.gradient(x, dim=0)", "torch.gradient(x, dim=-1)", "torch.gradient(x, dim=1)"),
    *("x.split(1)", "x.split([1])", "torch.split_with_sizes(x, [1])", "x.chunk(2)"),
    *("x.unbind()", "x.unbind(-1)", "x.unbind(1)"),
    *("torch.linalg.cross(x, x)", "torch.linalg.cross(x, x, dim=0)", "torch.linalg.cross(z, z)"),
    *("F.cross_entropy(x, x)", "F.cross_entropy(x, x, reduction='none')", "F.cross_entropy(x[None], x[None])"),
    *("F.multilabel_soft_margin_loss(x, x)", "F.multilabel_soft_margin_loss(x, x, reduction='none')"),
    *("z.softmax(0)", "z.softmax(1)", "z.log_softmax(-1)", "z.log_softmax(-2)", "x.int().softmax(0)"),
    *("x[:0].nanquantile(0.3)", "x.nanquantile(1.5)", "x.int().nanquantile(0.5)", "z.quantile(0.5)"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_which_error_comes_first(text):
    def program(torch, say):
        x, z = torch.tensor(0.5), torch.ones(3, 4) * 1j
        say(lambda: eval(text, {"torch": torch, "F": torch.nn.functional, "x": x, "z": z}))

    compare(program)


@pytest.mark.parametrize("kind", ["bool", "uint8", "int32", "int64", "float32"])
def test_einsum_of_integers_that_are_summed_alone(kind):
    """Sums over a single operand are int64, like those of `sum`; products of two operands keep their dtype."""

    def program(torch, say):
        calls = [
            ("ij,k->k", (2, 200), (3,)),
            ("ij,jk->ik", (2, 1), (300, 4)),
            ("ij,jk->ik", (2, 300), (1, 4)),
            ("ij,ik->ik", (2, 300), (2, 3)),
            ("i,j->", (300,), (3,)),
            ("ij,->i", (2, 300), ()),
            ("ij->j", (300, 2)),
        ]
        if kind != "bool":
            calls += [("i,i->", (300,), (300,)), ("ijl,jk->ik", (2, 3, 2), (3, 2)), ("ij,jk", (2, 3), (3, 2))]
        for equation, *shapes in calls:
            operands = [torch.ones(shape).to(getattr(torch, kind)) for shape in shapes]
            say(lambda equation=equation, operands=operands: torch.einsum(equation, *operands))

    compare(program)


def test_an_empty_index_of_any_shape_writes_nothing():
    def program(torch, say):
        for shape, of_index in itertools.product(((4, 3), (4,), (), (2, 0)), ((0,), (0, 3), (1, 0, 3), (2, 0))):
            x, src = torch.ones(shape, requires_grad=True), torch.ones(shape, requires_grad=True)
            index = torch.zeros(of_index, dtype=torch.int64)
            say(lambda x=x, index=index, src=src: torch.scatter(x, 0, index, src))
            say(lambda x=x, index=index: torch.scatter(x, 0, index, 2.0))
            say(lambda x=x, index=index, src=src: torch.scatter_add(x, 0, index, src))
            for reduce in ("sum", "mean", "amax"):
                say(lambda x=x, index=index, src=src, by=reduce: torch.scatter_reduce(x, 0, index, src, by))
            say(lambda x=x, index=index, src=src: (x * 1).scatter_(0, index, src))

    compare(program)


def test_dimensions_that_are_no_integers():
    """The first dimension decides whether a call matches; the others are validated later."""

    def program(torch, say):
        x = torch.ones(2, 2)
        for name, dims in itertools.product(
            ("sum", "mean", "std", "var", "amax", "logsumexp", "nansum", "count_nonzero"),
            ((0, "a"), ("a", 0), [0, 1.5], (0, None)),
        ):
            say(lambda name=name, dims=dims: getattr(torch, name)(x, dims))
        say(lambda: x.sum((0, "a")))
        for dtype in (torch.int64, torch.bool):
            say(lambda dtype=dtype: torch.nanmean(x, dtype=dtype))

    compare(program)


def test_names_of_functions_in_errors_are_those_of_the_call():
    def program(torch, say):
        x = torch.ones(2, 2)
        say(lambda: torch.swapaxes(x, 0, "a"))
        say(lambda: torch.swapdims(x, "a", 0))
        say(lambda: x.swapaxes(0, "a"))
        say(lambda: torch.transpose(x, 0, "a"))
        say(lambda: torch.concat(3))
        say(lambda: torch.concatenate(3))
        say(lambda: torch.cat(3))
        say(lambda: torch.moveaxis(x, 0, "a"))
        say(lambda: torch.movedim(x, 0, "a"))
        say(lambda: torch.row_stack(3))
        say(lambda: torch.vstack(3))
        say(lambda: torch.ger(x, "a"))
        say(lambda: x.ger("a"))
        say(lambda: torch.outer(x, "a"))
        say(lambda: torch.special.expit("a"))
        say(lambda: torch.sigmoid("a"))
        say(lambda: torch.special.multigammaln(x, "a"))
        say(lambda: torch.special.gammaln("a"))
        say(lambda: torch.special.psi("a"))
        say(lambda: torch.special.gammainc(x, "a"))

    compare(program)
