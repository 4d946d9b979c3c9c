"""Autocast against PyTorch's: which ops cast their operands, and how it is switched."""

import pytest
from ops.calls import SAMPLES, Call, Cygrad
from oracle.ops.test_ops import SHARED, Torch
from oracle.programs import compare, fill

import cygrad
from cygrad.amp import op_lists

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytest.importorskip("ml_dtypes")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),  # these are the same with and without autocast
]

# Reasons for dtypes that differ from PyTorch's: {name: reason}.
OTHER_TYPES = {
    **dict.fromkeys(
        ("bilinear", "inner", "tensordot", "linalg_lu_solve", "linalg_pinv", "affine_grid_generator", "lobpcg"),
        "made of products here where PyTorch has an op of its own, or the reverse",
    ),
    **dict.fromkeys(("lstm", "gru"), "PyTorch has two implementations, of which one keeps what it is given"),
    "multi_head_attention_forward": "the weights of attention stay in float32",
    "msort": "NumPy sorts what it is given",
}
# Ops whose dtypes are compared: those in autocast's lists, and some others.
OTHERS = "mv dot add mul exp softmax log_softmax layer_norm batch_norm sum mean norm cumsum einsum chain_matmul".split()
LISTED = [name for names in op_lists("cpu").values() for name in names]
NAMES = [name for name in SHARED if name.partition(".")[0] in {*LISTED, *OTHERS} - {*OTHER_TYPES}]


class In:
    """Runs samples with floats in one dtype, under autocast."""

    def __init__(self, on, dtype):
        self.on, self.library, self.dtype = on, on.library, dtype
        self.function = on.function

    def tensor(self, array):
        tensor = self.on.tensor(array)
        return tensor.to(getattr(self.library, self.dtype)) if tensor.is_floating_point() else tensor

    def types(self, name, sample):
        """The dtypes of the floating-point results, or "error"."""
        try:
            self.library.manual_seed(0)
            call = Call(name, sample, requires_grad=False, on=self)
            with self.library.autocast("cpu", dtype=self.library.bfloat16):
                results = call.run()
        except Exception:
            return "error"
        tensors = [r for r in results if isinstance(r, self.library.Tensor)]
        return [str(r.dtype) for r in tensors if r.is_floating_point() or r.is_complex()]


@pytest.mark.parametrize("name", NAMES)
def test_types_of_results(name):
    for sample in SAMPLES[name][:2]:
        for dtype in ("float32", "bfloat16"):
            theirs = In(Torch, dtype).types(name, sample)
            if theirs != "error":
                ours = In(Cygrad, dtype).types(name, sample)
                assert ours == theirs, dtype


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding(mode):
    """Padding is a different op for each mode and number of dimensions."""

    def program(lib, say):
        for dims in (1, 2, 3):
            for dtype in (lib.bfloat16, lib.float16, lib.float32, lib.float64):
                x = lib.ones(1, 2, *(4,) * dims, dtype=dtype, requires_grad=True)
                with lib.autocast("cpu"):
                    y = lib.nn.functional.pad(x, (1, 2) * dims, mode=mode)
                    say(y.dtype)
                y.sum().backward()
                say(x.grad)

    compare(program)


def test_switching():
    def program(lib, say):
        on, x = lib.autocast, lib.ones(3, 3)

        def state():
            return [lib.is_autocast_enabled("cpu"), lib.is_autocast_enabled(), (x @ x).dtype]

        say(lambda: on(3))
        say(lambda: on(lib.device("cpu")))
        say(lambda: lib.amp.is_autocast_available("cpu"))
        for dtype in (lib.float64, lib.float32, lib.int64):
            say(lambda: on("cpu", dtype=dtype)._enabled)
        say(lambda: on("cuda")._enabled)
        say([lib.get_autocast_dtype("cpu"), lib.get_autocast_dtype("cuda"), lib.is_autocast_cache_enabled()])
        say(state())
        with on("cpu"):
            say(state())
            with on("cpu", enabled=False):
                say(state())
                with on("cpu", dtype=lib.float16):
                    say(state())
                    say(lib.get_autocast_dtype("cpu"))
                say(state())
            say(state())
            try:
                with on("cpu", enabled=False, cache_enabled=False):
                    say(lib.is_autocast_cache_enabled())
                    raise ValueError
            except ValueError:
                say([state(), lib.is_autocast_cache_enabled()])
        say(state())
        say(lambda: on("cpu")(state)())
        say(lambda: on("cpu", dtype=lib.float16)(state)())
        say(lambda: on("cpu", enabled=False)(state)())
        say(on("cpu")(state).__name__)
        for call in [
            lambda: lib.set_autocast_enabled("cpu", True),
            lambda: lib.set_autocast_dtype("cpu", lib.float16),
            lambda: lib.set_autocast_cache_enabled(False),
            lambda: lib.set_autocast_cache_enabled(True),
            lambda: lib.autocast_increment_nesting(),
            lambda: lib.autocast_decrement_nesting(),
            lambda: lib.clear_autocast_cache(),
            lambda: lib.set_autocast_dtype("cpu", lib.bfloat16),
            lambda: lib.set_autocast_enabled("cpu", False),
            lambda: lib.set_autocast_enabled(False),
        ]:
            say(call)
            say([state(), lib.is_autocast_cache_enabled()])

    compare(program)


def test_gradients_arrive_in_the_type_of_the_parameters():
    def program(lib, say):
        model = fill(lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.Tanh(), lib.nn.LayerNorm(5), lib.nn.Linear(5, 2)))
        x, target = lib.arange(12.0).reshape(3, 4) / 7, lib.tensor([0, 1, 1])
        with lib.autocast("cpu", dtype=lib.bfloat16):
            hidden = model(x)
            loss = lib.nn.functional.cross_entropy(hidden, target)
        say([hidden.dtype, loss.dtype])
        loss.backward()
        say([p.grad.dtype for p in model.parameters()])
        shared = lib.nn.Parameter(lib.ones(2, 2))
        for cached in (True, False):
            with lib.autocast("cpu", cache_enabled=cached):
                nodes = [(x[:2, :2] @ shared).grad_fn.next_functions[1][0] for _ in range(2)]
            say(nodes[0] is nodes[1])

    compare(program)


def test_custom_functions():
    def program(lib, say):
        amp = lib.amp

        def function(cast_inputs):
            class Square(lib.autograd.Function):
                @staticmethod
                @amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
                def forward(ctx, x, others):
                    say([lib.is_autocast_enabled("cpu"), x.dtype, others[0].dtype, others[1]["a"].dtype])
                    return x @ x

                @staticmethod
                @amp.custom_bwd(device_type="cpu")
                def backward(ctx, grad):
                    say([lib.is_autocast_enabled("cpu"), grad.dtype])
                    return grad.float(), None

            return Square

        x = lib.ones(2, 2, requires_grad=True)
        for cast_inputs in (None, lib.float32, lib.float16):
            for enabled in (True, False):
                half = x.detach().half()
                with lib.autocast("cpu", enabled=enabled):
                    y = function(cast_inputs).apply(x, [half, {"a": half.double()}])
                say(y.dtype)
                y.sum().backward()
        say(lambda: amp.custom_fwd(lambda ctx: 0))
        say(lambda: amp.custom_fwd(lambda ctx: 0, device_type=3))
        say(lambda: amp.custom_bwd(device_type=3)(lambda ctx: 0))

    compare(program)


# ------------------------------------------------------------------ scaling


def scaled(lib, *grads, **options):
    """A scaler in use, parameters with these gradients, and their optimizer."""
    scaler = lib.amp.GradScaler("cpu", **options)
    scaler.scale(lib.tensor(1.0))
    params = []
    for grad in grads:
        params.append(lib.nn.Parameter(lib.ones(2)))
        params[-1].grad = None if grad is None else lib.full((2,), float(grad))
    return scaler, params, lib.optim.SGD(params, lr=0.1)


@pytest.mark.parametrize("grads", [(1.0,), (65536.0, 2.0), (1.0, "inf"), ("nan",), (None, 3.0), (None,)], ids=str)
@pytest.mark.parametrize("calls", ["step update", "unscale_ step update", "step step", "step unscale_", "update"])
def test_iterations(grads, calls):
    def program(lib, say):
        scaler, params, optimizer = scaled(lib, *grads)
        for _ in range(2):
            for call in [*calls.split(), *calls.split()[:2]]:
                say(lambda: getattr(scaler, call)(*([] if call == "update" else [optimizer])))
                say([params, [p.grad for p in params], scaler.state_dict()])

    compare(program)


def test_growth_and_options():
    def program(lib, say):
        make = lib.amp.GradScaler
        say(lambda: make("cpu", growth_factor=1.0))
        say(lambda: make("cpu", backoff_factor=1.0))
        say(lambda: make().is_enabled())
        scaler, params, optimizer = scaled(lib, 1.0, growth_interval=2, init_scale=4.0, growth_factor=3.0)
        for step in range(7):
            params[0].grad = lib.full((2,), float("inf") if step == 4 else 1.0)
            say(lambda: scaler.step(optimizer))
            say(lambda: scaler.update())
            say([scaler.get_scale(), scaler.state_dict()])
        for new in (3.0, lib.tensor([5.0, 6.0]), lib.tensor(5.0), lib.tensor(5.0, requires_grad=True)):
            say(lambda: scaler.update(new))
            say(scaler.get_scale())
        other = make("cpu")
        say(lambda: other.load_state_dict(scaler.state_dict()))
        say([other.state_dict(), other.get_growth_factor(), other.get_backoff_factor(), other.get_growth_interval()])
        say(lambda: other.load_state_dict({}))
        say(lambda: make("cpu", enabled=False).load_state_dict({}))
        say(lambda: make("cpu").unscale_(optimizer))
        say(lambda: make("cpu").step(optimizer))
        say(lambda: make("cpu").update())
        say(lambda: scaler.step(optimizer, closure=lambda: 3))
        say(lambda: scaler.scale([lib.ones(1), (lib.ones(2).double(),)]))
        say(lambda: scaler.scale(3))
        huge, params, optimizer = scaled(lib, 1.0, init_scale=2.0**127, growth_interval=1)
        huge.step(optimizer)
        huge.update()
        say(huge.get_scale())
        off, params, optimizer = scaled(lib, float("nan"), enabled=False)
        say([off.state_dict(), off.get_scale(), off.scale("x")])
        say(lambda: off.unscale_(optimizer))
        say(lambda: off.step(optimizer, lambda: 3.0))
        say(lambda: off.update())
        say(params)

    compare(program)


def test_two_optimizers_and_half_precision():
    def program(lib, say):
        scaler, a, first = scaled(lib, 1.0)
        _, b, second = scaled(lib, "inf")
        say(lambda: scaler.step(first))
        say(lambda: scaler.step(second))
        say(lambda: scaler.update())
        say([scaler.get_scale(), a, b])
        half = lib.nn.Parameter(lib.ones(2).half())
        half.grad = lib.ones(2).half()
        say(lambda: scaler.unscale_(lib.optim.SGD([half], lr=0.1)))

    compare(program)


@pytest.mark.parametrize(
    ("name", "args", "shape"),
    [
        ("LayerNorm", (6,), (4, 6)),
        ("RMSNorm", (6,), (4, 6)),
        ("BatchNorm1d", (6,), (4, 6)),
        ("BatchNorm2d", (6,), (2, 6, 3, 3)),
        ("GroupNorm", (2, 6), (2, 6, 3, 3)),
        ("PReLU", (), (4, 6)),
        ("LSTM", (6, 3), (4, 6)),
        ("GRU", (6, 3), (4, 6)),
        ("LSTMCell", (6, 3), (4, 6)),
        ("TransformerEncoderLayer", (6, 2, 8), (4, 6)),
    ],
)
def test_layers_take_what_a_product_gives(name, args, shape):
    """The parameters are float32, while the input comes from a previous layer in bfloat16."""

    def program(lib, say):
        layer = getattr(lib.nn, name)(*args)
        x = lib.ones(shape).bfloat16()
        with lib.autocast("cpu", dtype=lib.bfloat16):
            out = layer(x)
        out = out[0] if isinstance(out, tuple) else out
        say(out.dtype)
        out.float().sum().backward()
        say([p.grad is not None and p.grad.dtype for p in layer.parameters()])

    compare(program)


EQUATIONS = {"ij,jk->ik": "lf", "ij,ij->ij": "lf", "ij,ij->": "lf", "i...,...j->ij": "fl", "ij,jk,kl->il": "flf"}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_takes_operands_of_two_types(equation):
    found = []
    for library in (cygrad, torch):
        kinds = {"l": library.bfloat16, "f": library.float32}
        operands = [library.full((2, 2), 1.5, dtype=kinds[kind]) for kind in EQUATIONS[equation]]
        operands = [t[0] if "..." in equation else t for t in operands]
        with library.autocast("cpu"):
            result = library.einsum(equation, *operands)
        found.append((str(result.dtype), result.tolist()))
    assert found[0] == found[1]
