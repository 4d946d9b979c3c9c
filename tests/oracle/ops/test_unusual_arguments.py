"""Rare arguments, valid or invalid in PyTorch: the same results, dtypes, and errors."""

import pytest
from oracle.programs import compare

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def described(tensor):
    plain = tensor if tensor.is_complex() else tensor.nan_to_num(777.0, float("inf"), float("-inf"))
    return str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), plain.tolist()


def check(*expressions):
    """Check that each expression of `torch`, `x` and `y` gives the same in both libraries."""

    def program(torch, say):
        for text in expressions:
            x = torch.arange(1.0, 7.0).reshape(2, 3)
            given = {"torch": torch, "F": torch.nn.functional, "x": x, "i": torch.zeros(2, 3, dtype=torch.int64)}
            say(lambda text=text, given=given: result(eval(text, given), torch))
            say(x.tolist())

    def result(value, torch):
        if isinstance(value, torch.Tensor):
            return described(value)
        return [described(item) for item in value] if isinstance(value, (list, tuple)) else repr(value)

    compare(program)


def test_ranges_of_integers_between_fractions():
    types = "uint8 int8 int32 int64 float32".split()
    bounds = "5.5", "1.0, 2.0, 0.25", "0.5, 9.7, 2.6", "0.5, 9", "9.9, 0.2, -1", "0, 5, 2", "3, 1", "1, 5, 0"
    check(*(f"torch.arange({b}, dtype=torch.{t})" for b in bounds for t in types))
    ends = "0, 1.5, 5", "0.5, 3.7, 4", "-3.5, 10.5, 6", "0, 10, 4"
    check(*(f"torch.linspace({e}, dtype=torch.{t})" for e in ends for t in types))


def test_ranges_to_infinity():
    types = "uint8 int8 int32 int64 float32".split()
    ends = "0, float('inf')", "float('-inf'), 0", "0, float('nan')", "1e30, 1", "0, 300", "1.7, 2.9"
    for name in ("linspace", "logspace"):
        check(
            *(
                f"torch.{name}({e}, {n}, dtype=torch.{t})"
                for e in ends
                for n in (0, 1, 3)
                for t in types
                if e != "0, 300" or "int" in t
            )
        )


def test_permutations_that_a_type_just_holds():
    bounds = {"uint8": 256, "int8": 128, "int16": 2**15, "float16": 2049, "float32": 2**24 + 1, "bfloat16": 300}
    check(*(f"torch.randperm({n}, dtype=torch.{t}).sort()[0][-3:]" for t, n in bounds.items() if n < 2**24))
    check(*(f"torch.randperm({n + 1}, dtype=torch.{t})" for t, n in bounds.items() if t != "bfloat16"))


def test_medians_of_nothing():
    types = "bool uint8 int16 int64 float16 float32".split()
    check(
        *(
            f"torch.{name}(torch.empty(0, 2, dtype=torch.{t}){dim})"
            for name in ("median", "nanmedian")
            for t in types
            for dim in ("", ", 0", ", 1")
        )
    )
    check(
        *(
            f"torch.{name}(torch.tensor([1, 0], dtype=torch.{t}){dim})"
            for name in ("median", "nanmedian")
            for t in types
            for dim in ("", ", 0")
        )
    )


@pytest.mark.parametrize("size_average", [None, True, False, 0, 1])
def test_former_flags_of_losses(size_average):
    check(
        *(
            f"F.{loss}(x, 2 * x, size_average={size_average}, reduce={reduce})"
            for loss in ("mse_loss", "l1_loss", "smooth_l1_loss", "soft_margin_loss")
            for reduce in (None, True, False, 0, 1)
        ),
        f"torch.nn.MSELoss(size_average={size_average})(x, 2 * x)",
    )


def test_sums_of_numbers_have_the_type_that_is_asked_for():
    check(*(f"torch.nansum(x, dtype=torch.{kind})" for kind in "bool uint8 int32 int64 float64".split()))


def test_dimensions_one_by_one():
    check(
        *("x.count_nonzero(0, 1)", "x.hsplit(1, 2)", "x.vsplit(1, 1)", "x[None].dsplit(1, 2)"),
        *("x[None].squeeze(0, 1)", "x[:, None].squeeze(0, 1)", "x[None].squeeze_(0, 1)"),
        *("x.sum_to_size(size=(2, 1))", "x.sum_to_size(2, 1)"),
    )


def test_other_names():
    check(
        *("x.clone().copy_(other=x)", "torch.result_type(tensor=x, other=x)", "torch.result_type(x, other=i)"),
        *("torch.xlogy(self=0.0, other=x)", "torch.float_power(self=2, exponent=x)"),
        *("torch.where(condition=x > 2, self=2, other=x)", "torch.searchsorted(sorted_sequence=x, self=3.0)"),
    )


def test_extrema_scattered_by_their_former_names():
    check(*(f"torch.zeros(2, 3).scatter_reduce(0, i, x, '{name}')" for name in ("max", "min", "amax", "add")))


def test_scattering_by_no_index():
    none = "torch.zeros(0, dtype=torch.int64)"
    check(*(f"x.scatter_reduce(0, {none}, x, '{name}')" for name in ("sum", "amax", "mean", "prod")))


def test_size_of_random_numbers_between_tensors():
    def program(torch, say):
        zero, one = torch.tensor(0.0), torch.tensor(1.0, dtype=torch.float64)
        for given in ((zero, one), (zero, 1.0), (0.0, one), (torch.zeros(2), 1.0), (0.0, torch.ones(2))):
            say(lambda given=given: described(torch.normal(*given, (2, 3)))[:2])

    compare(program)


def test_numbers_of_numpy_have_types():
    check("torch.result_type(__import__('numpy').float32(1), i)", "torch.result_type(2, __import__('numpy').int64(1))")


def test_nothing_is_written_before_all_arguments_are_known():
    check("x.fill_diagonal_(7, torch.ones(2))", "x.fill_diagonal_(7, wrap='a')", "x.fill_diagonal_(7, wrap=True)")


# -- error messages -------


def test_words_of_arguments_by_keyword():
    check(
        *(
            "torch.flip(x, dims='a')",
            "torch.cumsum(x, dim=1.5)",
            "torch.chunk(x, chunks='a')",
            "torch.cat([x], dim='a')",
        ),
        *("torch.cumsum(x, dim=0, dtype='float32')", "torch.softmax(x, 0, dtype=7)", "torch.softmax(x, 0, 7)"),
    )


def test_words_of_flags_and_numbers():
    check(
        *("torch.kthvalue(x, 1, 0, torch.ones(2))", "torch.logit(x, 'a')"),
        *(
            "torch.layer_norm(x, (3,), None, None, 'a')",
            "torch.isclose(x, x, torch.ones(2))",
            "torch.rms_norm(x, (3,), None, [])",
        ),
        *("torch.rms_norm(x, (3,), eps='a')", "torch.layer_norm(x, (3,), eps=None)"),
    )


def test_words_of_calls_that_fit_no_signature():
    check(
        *("torch.max(x, 0, 1, 2, 3)", "torch.sum()", "torch.eq(x)", "torch.pow(x, 'a')", "x.pow_('a')"),
        *("torch.clamp(x, unexpected=1)", "torch.std(x, 'a')", "torch.where(x)", "torch.narrow(x, 0)"),
        *("torch.linalg.norm()", "torch.linalg.norm(x, unexpected=1)", "torch.div(x)", "torch.div(x, 'a')"),
        *("torch.special.zeta(x)", "torch.special.ndtr()", "torch.special.ndtr('a')", "torch.fft.fft()"),
        *("x.div_('a')", "torch.mean('a')", "torch.mean('a', 0, 1)", "torch.squeeze()"),
    )


def test_parameters_of_normalisations_of_another_type():
    types = ["None", *(f"torch.ones(4, dtype=torch.{kind})" for kind in ("float32", "float64", "float16", "int64"))]
    calls = (
        "F.layer_norm({x}, (4,), {a}, {b})",
        "F.group_norm({x}, 2, {a}, {b})",
        "F.batch_norm({x}, None, None, {a}, {b}, True)",
        "F.batch_norm({x}, {a}, {a}, {b}, {b}, False)",
        "F.instance_norm({x}[..., None].expand(2, 4, 3), None, None, {a}, {b})",
    )
    for kind in ("float32", "float64", "float16"):
        x = f"torch.ones(2, 4, dtype=torch.{kind})"
        check(*(call.format(x=x, a=a, b=b) + ".dtype" for call in calls for a in types for b in types))


def test_probabilities_of_dropout():
    names = [f"torch.{kind}dropout" for kind in ("", "alpha_", "feature_", "feature_alpha_")]
    numbers = "-1.0", "1.5", "float('nan')", "-float('inf')"
    check(*(f"{name}(x, {p}, True)" for name in (*names, "F.dropout", "F.alpha_dropout") for p in numbers))
    check(*(f"{name}(x, {p}, True)" for name in names for p in ("'a'", "None", "[]", "1j")))
    check("torch.dropout(x, 0.5, 1)", "torch.dropout_(x, 2, True)")


def test_reductions_that_are_none():
    names = "mse_loss", "kl_div", "hinge_embedding_loss", "soft_margin_loss", "binary_cross_entropy_with_logits"
    check(*(f"F.{name}(x, x, reduction={how})" for name in names for how in ("None", "1.5", "True", "'foo'", "0")))


def test_tolerances_that_are_tensors():
    check(*(f"torch.linalg.{name}(x.half(), atol=torch.ones(2))" for name in ("matrix_rank", "pinv")))


def test_windows_of_pooling_are_checked_before_the_images():
    sizes = {"max_pool2d": "(0, 1, 49)", "avg_pool2d": "(2, 0, 5, 5)", "max_pool3d": "(2, 1, 5, 5, 0)"}
    windows = "2, padding=-1", "2, padding=4", "3, padding=4", "2, stride=0", "2, stride=-1", "0"
    check(*(f"F.{name}(torch.zeros{size}, {how})" for name, size in sizes.items() for how in windows))


def test_averages_of_integers_by_negative_divisors_round_towards_zero():
    image = "torch.arange(-8, 8).reshape(1, 1, 4, 4)"
    check(*(f"F.avg_pool2d({image}, 2, divisor_override={n})" for n in (-3, -2, 2, 3)))
    check(*(f"F.avg_pool3d({image}[None], (1, 2, 2), divisor_override={n})" for n in (-3, -2, 3)))


def test_factors_wrap_around_in_unsigned_integers():
    zeros, one = "torch.zeros(3, dtype=torch.uint8)", "torch.ones(1, dtype=torch.uint8)"
    check(*(f"{zeros}.index_add{way}(0, torch.tensor([1]), {one}, alpha=-1)" for way in ("", "_")))


def test_random_numbers_for_more_images_than_there_are():
    samples = "torch.linspace(0, 0.9, 12, dtype=torch.float32)"
    check(
        f"F.fractional_max_pool2d(torch.arange(50.0).reshape(2, 5, 5), 2, (2, 3), _random_samples={samples}"
        ".reshape(3, 2, 2))",
        f"F.fractional_max_pool3d(torch.arange(64.0).reshape(1, 4, 4, 4), 2, (2, 2, 2), _random_samples={samples}"
        ".reshape(4, 1, 3))",
    )


def test_a_sum_of_whole_numbers_to_no_dimension_is_int64():
    check(*(f"torch.tensor({x}).sum_to_size(())" for x in ("True", "3", "2.5")), "torch.tensor([True]).sum_to_size(1)")


def test_counts_of_elements_have_no_gradient():
    leaf = "(lambda x: repr(torch.autograd.grad({}, x, allow_unused=True)))(torch.ones(2, 3, requires_grad=True))"
    calls = "torch.norm(x, 0)", "torch.linalg.vector_norm(x, 0, dim=1).sum()", "torch.dist(x, x.detach() * 2, 0)"
    check(*(leaf.format(call) for call in calls))


def test_words_of_settings():
    check(
        *(
            f"F.batch_norm(x, torch.zeros(3), torch.ones(3), training={t}, eps={e})"
            for t in (True, False)
            for e in (-1, 0)
        ),
        *(f"torch.nn.HuberLoss(delta={d})" for d in ("1j", "'a'", "None", "0.5")),
        *(f"F.huber_loss(x, x, delta={d})" for d in ("1j", "'a'", "None", "0", "True")),
        *(
            f"torch.nn.{kind}(3, 4, {word}={v})"
            for kind in ("RNN", "LSTM")
            for word in ("bias", "batch_first")
            for v in (0, "'a'")
        ),
        *("torch.nn.GRU(0, 4)", "torch.nn.LSTM(-1, 4)"),
        *(f"F.adaptive_{kind}_pool1d(x, {size})" for kind in ("avg", "max") for size in ("()", "(1, 2)")),
        *(f"torch.{name}({a}, {b}, 3)" for name in ("linspace", "logspace") for a in ("x", "1") for b in ("x", "2")),
        *(f"torch.multinomial(torch.tensor([1.0, {p}]), {n}, True)" for p in ("-1", "float('inf')") for n in (1, 2)),
        "torch.multinomial(torch.ones(1).expand(2**24 + 1), 1)",
        *(f"torch._{name}_backward_data(x, x, -1, torch.float32)" for name in ("softmax", "log_softmax")),
    )
