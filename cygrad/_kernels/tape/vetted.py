"""What may run while a step is noted: kernels that compute by noted loops alone, callers that do not read values.

A compiled kernel whose loops are not noted leaves memory that nobody wrote, which the tape notices. Code in Python
could also read values and decide by them, which leaves no trace. Hence this list. Add to it only what reads no element,
in any branch that the tape does not refuse by itself; `tests/compile/test_every_row.py` compares each op with other
values.
"""

# Compiled modules whose kernels note their loops, or refuse where they read values.
MODULES = frozenset(
    "cygrad._kernels." + name
    for name in (
        "array_ops cpu.base.arrays cpu.base.elementwise cpu.base.matmul cpu.base.reduce cpu.base.ufunc "
        "cpu.base.view_geometry cpu.nn.activations cpu.nn.softmax cpu.optim.formulas "
        "cpu.optim.optim cpu.random.draw"
    ).split()
)

# Kernels in Python: {module: names}
KERNELS: dict[str, frozenset[str]] = {
    "cygrad._core.engine.blocked_gradients": frozenset({"gradients"}),
    "cygrad._ops.base.products": frozenset({"linear_array"}),
    "cygrad._ops.linalg.addmm": frozenset({"add_product_array"}),
}

# Functions in Python that get arrays and hand them on to kernels: (end of the file's name, function)
CALLERS = frozenset(
    {
        ("cygrad/optim/sgd.py", "_step_compiled"),
        ("cygrad/optim/adam.py", "arrays"),
        ("cygrad/optim/formula.py", "_step_arrays"),
        ("cygrad/optim/adam.py", "_step_compiled"),
        # these look at shapes and dtypes, and hand the arrays on to vetted kernels
        ("_ops/linalg/addmm.py", "added"),
        ("_ops/random/dropout.py", "_dropped"),
        ("base/checks/common.py", "require_broadcast"),
        ("_ops/nn/activations.py", "gelu_rule"),
        ("_ops/nn/activations.py", "mish_rule"),
        ("_ops/nn/activations.py", "silu_rule"),
        ("_ops/common/gradients.py", "fused_gradient"),
        ("_ops/loss/reductions.py", "finished"),
        ("_ops/loss/reductions.py", "<setcomp>"),  # in `finished`
        ("_ops/loss/classifier_losses.py", "_array"),
        ("_ops/loss/classifier_losses.py", "_nll"),
        ("_ops/loss/classifier_losses.py", "cross_entropy"),
        ("_ops/loss/classifier_losses.py", "cross_entropy_of_softmax"),
        ("_ops/loss/classifier_losses.py", "fused_rule"),
        ("_ops/loss/classifier_losses.py", "nll_loss"),
        ("_ops/loss/classifier_losses.py", "nll_rule"),
        ("_ops/loss/pointwise_losses.py", "_absolute_errors"),
        ("_ops/loss/pointwise_losses.py", "huber_loss"),
        ("_ops/loss/pointwise_losses.py", "mse_loss"),
        ("_ops/loss/pointwise_losses.py", "smooth_l1_loss"),
    }
)


def is_vetted(kernel):
    """Whether a kernel, or what a partial function calls, is on the list."""
    while hasattr(kernel, "func"):
        kernel = kernel.func
    if type(kernel).__name__ == "_ByLoop":  # a loop of fused_loops.h, or a formula without conditions on values
        return True
    module = getattr(kernel, "module", None) or getattr(kernel, "__module__", None)
    if module in MODULES:
        return True
    return getattr(kernel, "__name__", None) in KERNELS.get(module or "", ())


def may_have_arrays(frame):
    """Whether the function that runs in a frame is on the list."""
    code = frame.f_code
    place = "/".join(code.co_filename.replace("\\", "/").rsplit("/", 3)[-3:])
    return any(place.endswith(end) and code.co_name == name for end, name in CALLERS)
