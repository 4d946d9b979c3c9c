"""Situations that users get into, each a function that ends in an error or a warning; golden.json has the whole texts.

After a change of a text, `python tests/errors/situations.py` writes the file anew: read the difference before you
commit it. Names of files and numbers of lines are taken out, so that this file may be edited.
"""

import copy
import json
import re
import sys
import threading
import warnings
from pathlib import Path

import numpy as np

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._core import faults
from cygrad.autograd import Function, gradcheck, nan_check, set_detect_anomaly
from cygrad.utils.checkpoint import checkpoint

GOLDEN = Path(__file__).with_name("golden.json")
SITUATIONS = {}


def situation(function):
    """Enter a function into the table."""
    SITUATIONS[function.__name__] = function
    return function


def leaf(*values):
    """A leaf that requires grad."""
    return torch.tensor(values, requires_grad=True)


def text_of(function):
    """The text of the error or warning that a situation ends in, without places."""
    faults._warned.clear()  # which lines have been warned of
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            function()
        except Exception as error:
            names = [kind.__name__ for kind in type(error).__mro__]
            text = "\n".join([f"{type(error).__name__} ({names[-4]}): {error}", *getattr(error, "__notes__", [])])
        else:
            text = f"{seen[-1].category.__name__}: {seen[-1].message}" if seen else "nothing"
    return without_places(text)


def without_places(text):
    """The text with FILE and LINE for places, and N for numbers that differ from machine to machine."""
    text = re.sub(r"(?:[\w.:~-]*[/\\])+[\w.-]+\.py:\d+", "FILE:LINE", text)
    text = re.sub(r"0x[0-9a-f]+", "0xN", text)
    text = re.sub(r"(maximum recursion depth exceeded).*", r"\1", text)  # the rest is the interpreter's
    return re.sub(r"Function\.<locals>\.", "", text)


# ------------------------------------------------------------------ saved, then changed (row 1)


@situation
def saved_input_changed_by_an_operator():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y.sin()
    y += 1
    z.sum().backward()


@situation
def saved_result_changed_by_a_method():
    y = leaf(1.0, 2.0).exp()
    y.mul_(2)
    y.sum().backward()


@situation
def changed_through_a_slice():
    y = leaf(1.0, 2.0) * 1
    z = y**2
    y[0] = 5.0
    z.sum().backward()


@situation
def changed_through_a_view():
    y = leaf(1.0, 2.0) * 1
    view = y.view(2, 1)
    z = y * y
    view.zero_()
    z.sum().backward()


@situation
def changed_through_detach():
    w = leaf(2.0)
    z = leaf(1.0) * w
    w.detach().copy_(torch.zeros(1))
    z.backward()


@situation
def changed_by_out():
    y = leaf(1.0) * 1
    z = y.cos()
    torch.add(torch.ones(1), 1, out=y.detach())
    z.backward()


@situation
def relu_in_place():
    y = leaf(1.0, 2.0).sigmoid()
    F.relu(y, inplace=True)
    y.sum().backward()


@situation
def dropout_in_place():
    y = leaf(1.0, 2.0).sigmoid()
    F.dropout(y, 0.5, inplace=True)
    y.sum().backward()


@situation
def weight_changed_without_grad():
    w = leaf(2.0)
    loss = (w * w).sum()
    with torch.no_grad():
        w -= 0.1 * w
    loss.backward()


@situation
def optimizer_step_between():
    w = leaf(2.0)
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    loss.backward()


@situation
def masked_fill_in_place():
    y = leaf(1.0, 2.0) * 1
    z = y.tanh() * y
    y.masked_fill_(y > 1, 0.0)
    z.sum().backward()


@situation
def filled_in_place():
    y = leaf(1.0, 2.0) * 1
    z = y**3
    y.fill_(1)
    z.sum().backward()


@situation
def saved_by_a_custom_function():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    y = leaf(1.0) * 1
    z = Square.apply(y)
    y.clamp_(0, 1)
    z.backward()


@situation
def counted_by_hand():
    y = leaf(1.0) * 1
    z = y.sin()
    torch.autograd.graph.increment_version(y)
    z.backward()


# ------------------------------------------------------------------ backward a second time (row 2)


@situation
def twice_over_the_same_loss():
    loss = leaf(1.0).exp()
    loss.backward()
    loss.backward()


@situation
def built_once_outside_the_loop():
    w = leaf(0.5)
    scale = w.exp()
    for _ in range(2):
        (scale * 2).backward()


@situation
def hidden_state_carried_over():
    w = leaf(0.5)
    hidden = torch.ones(1)
    for _ in range(2):
        hidden = (hidden * w).tanh()
        hidden.backward()


@situation
def running_total_of_losses():
    w = leaf(0.5)
    total = torch.zeros(1)
    for _ in range(2):
        total = total + (w * w).exp()
        total.backward()


@situation
def two_losses_with_a_common_part():
    features = leaf(0.5).exp()
    (features * 2).backward()
    (features * 3).backward()


@situation
def freed_by_grad():
    x = leaf(1.0)
    y = x.exp()
    torch.autograd.grad(y, x)
    torch.autograd.grad(y, x)


@situation
def saved_value_read_when_freed():
    y = leaf(1.0).exp()
    y.backward()
    return y.grad_fn._saved_result


# ------------------------------------------------------------------ no gradient (row 3)


@situation
def cut_by_detach():
    y = leaf(1.0).detach() * 2
    y.backward()


@situation
def cut_by_no_grad():
    x = leaf(1.0)
    with torch.no_grad():
        y = x * 2
    (y + 1).backward()


@situation
def cut_by_data():
    leaf(1.0).data.exp().backward()


@situation
def cut_by_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        y = x * 2
    y.backward()


@situation
def cut_by_argmax():
    x = leaf(1.0, 2.0)
    x.argmax().float().backward()


@situation
def cut_by_a_comparison():
    x = leaf(1.0, 2.0)
    (x > 1).float().mean().backward()


@situation
def cut_by_item():
    loss = (leaf(3.0) * 2).sum()
    torch.tensor(loss.item()).backward()


@situation
def all_inputs_frozen():
    model = torch.nn.Linear(2, 1)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    model(torch.ones(3, 2)).sum().backward()


@situation
def requires_grad_set_on_a_loss_without_history():
    loss = (leaf(1.0).detach() * 2).sum()
    loss.requires_grad = True
    loss.backward()


@situation
def cut_by_a_round_trip_through_numpy():
    torch.from_numpy((leaf(1.0) * 2).detach().numpy()).sum().backward()


@situation
def cut_by_float():
    torch.tensor(float((leaf(3.0) * 2).sum())).backward()


@situation
def cut_by_making_a_tensor_of_tensors():
    w = leaf(1.0, 2.0)
    torch.tensor([w[0] * 2, w[1] * 3]).sum().backward()


@situation
def cut_by_conversion_to_integers():
    (leaf(1.0) * 2).long().sum().backward()


@situation
def cut_by_a_decorator():
    @torch.no_grad()
    def model(x):
        return (x * 3).sum()

    model(leaf(1.0)).backward()


@situation
def gradient_that_was_not_recorded():
    x = leaf(3.0)
    (slope,) = torch.autograd.grad(x * x, x)
    slope.backward()


@situation
def input_without_gradient():
    x = leaf(1.0)
    torch.autograd.grad(x * 2, x.detach())


@situation
def input_that_was_not_used():
    x = leaf(1.0)
    copied = x.clone()
    torch.autograd.grad(x * 2, copied)


@situation
def several_elements():
    (leaf(1.0, 2.0) * 2).backward()


# ------------------------------------------------------------------ nan (rows 7 and 12)


@situation
def nan_of_the_branch_not_taken():
    x = leaf(0.0, 4.0)
    y = torch.where(x > 0, x.sqrt(), 0.0)
    with set_detect_anomaly(True):
        y.sum().backward()


@situation
def nan_of_a_division():
    x = leaf(0.0)
    with set_detect_anomaly(True):
        (x / x).backward()


@situation
def nan_in_a_result():
    with nan_check():
        torch.tensor([[1.0, 2.0], [-1.0, 4.0]]).log()


@situation
def infinite_result():
    with nan_check(inf=True):
        torch.tensor([1.0, 200.0]).exp()


@situation
def nan_in_a_gradient_only():
    x = leaf(0.0, 1.0)
    with nan_check():
        (x.sqrt() * torch.tensor([0.0, 1.0])).sum().backward()


@situation
def nan_of_a_product_with_a_mask():
    x = leaf(0.0, 1.0)
    with set_detect_anomaly(True):
        (x.log() * torch.tensor([0.0, 1.0])).sum().backward()


@situation
def nan_in_a_checkpoint():
    x = leaf(0.0, 4.0)
    with set_detect_anomaly(True):
        y = checkpoint(lambda t: torch.where(t > 0, t.sqrt(), 0.0), x, use_reentrant=False)
        y.sum().backward()


# ------------------------------------------------------------------ derivatives that would be wrong (row 8)


@situation
def eigenvectors_times_a_phase():
    x = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], requires_grad=True)
    torch.linalg.eig(x).eigenvectors.real.sum().backward()


@situation
def forward_mode_of_a_function_without_jvp():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    torch.func.jvp(Double.apply, (torch.ones(2),), (torch.ones(2),))


@situation
def tensor_of_inference_mode_saved():
    with torch.inference_mode():
        features = torch.ones(2).exp()
    features * leaf(1.0, 2.0)


@situation
def result_of_inference_mode_saved():
    w = leaf(1.0, 2.0)
    with torch.inference_mode():
        features = w.exp()
    features * w


@situation
def view_whose_base_was_changed():
    y = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        part = y[:1]
    y.mul_(2)
    part.sum().backward()


@situation
def saved_tensor_detached():
    y = leaf(1.0, 2.0) * 1
    z = y.sin()
    y.detach_()
    z.sum().backward()


# ------------------------------------------------------------------ what keeps graphs alive (rows 10 and 11)


def train(loss_of, keep=lambda loss: None, **how):
    """Ten steps of SGD that `cygrad.debug()` watches."""
    w = leaf(0.5, 0.5)
    optimizer = torch.optim.SGD([w], lr=0.01)
    with torch.debug():
        for _ in range(10):
            loss = loss_of(w)
            optimizer.zero_grad()
            loss.backward(**how)
            optimizer.step()
            keep(loss)


@situation
def losses_added_up():
    total = [torch.zeros(())]

    def add(loss):
        total[0] = total[0] + loss

    train(lambda w: (w * w).sum(), add)


@situation
def losses_kept_in_a_list():
    losses = []
    train(lambda w: (w * w).sum(), losses.append)


@situation
def moving_average_of_losses():
    average = [0.0]

    def follow(loss):
        average[0] = 0.9 * average[0] + 0.1 * loss

    train(lambda w: (w * w).sum(), follow)


@situation
def state_carried_from_step_to_step():
    state = [torch.ones(2)]

    def loss(w):
        state[0] = (state[0] + w).tanh()
        return state[0].sum()

    train(loss, retain_graph=True)


# ------------------------------------------------------------------ graphs within graphs, and threads (rows 13 and 14)


@situation
def hook_that_calls_itself():
    y = leaf(1.0) * 1
    y.register_hook(lambda grad: y.backward(retain_graph=True))
    y.backward(retain_graph=True)


@situation
def backward_that_calls_itself():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                x = torch.ones(1, requires_grad=True)
                return torch.autograd.grad(Double.apply(x), x)[0]

    Double.apply(leaf(1.0)).backward()


@situation
def graph_freed_by_another_thread():
    loss = leaf(1.0).exp()
    other = threading.Thread(target=lambda: loss.backward())
    other.start()
    other.join()
    loss.backward()


@situation
def hook_on_a_leaf_that_fails():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.no_such_attribute)
    (x * 2).backward()


# ------------------------------------------------------------------ in-place on leaves and views (rows 9, 15, 18)


@situation
def leaf_changed():
    w = leaf(1.0, 2.0)
    w -= 0.1 * torch.ones(2)


@situation
def leaves_changed_in_a_loop_of_one_line():
    for w in [leaf(1.0, 2.0)]: w -= 0.1 * torch.ones(2)  # fmt: skip # noqa: E701


@situation
def leaf_changed_over_several_lines():
    w = leaf(1.0, 2.0)
    w -= 0.1 * torch.full(
        (2,), 3.0
    )  # fmt: skip


@situation
def attribute_changed():
    model = torch.nn.Linear(2, 1)
    model.weight[0, 0] = 1.0


@situation
def leaf_changed_by_a_method():
    w = leaf(1.0, 2.0)
    w.clamp_(min=0)


@situation
def view_of_a_leaf_changed():
    w = leaf(1.0, 2.0)
    row = w[:1]
    row.mul_(2)


@situation
def elements_of_a_leaf_changed():
    w = leaf(1.0, 2.0)
    w[0] = 2.0


@situation
def one_of_several_views_changed():
    y = leaf(1.0, 2.0) * 1
    first, _ = y.split(1)
    first.mul_(2)


@situation
def view_made_without_grad_changed():
    y = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        part = y[:1]
    part.mul_(2)


@situation
def expanded_memory_changed():
    torch.ones(2, 1).expand(2, 3).mul_(2)


@situation
def read_only_memory_changed():
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    torch.from_numpy(array).add_(1)


# ------------------------------------------------------------------ .grad, NumPy, types (rows 16, 17, 19)


@situation
def grad_of_a_non_leaf():
    y = leaf(1.0) * 2
    return y.grad


@situation
def numpy_of_a_tensor_with_gradient():
    (leaf(1.0) * 2).numpy()


@situation
def numpy_function_without_gradient():
    np.unwrap(leaf(1.0, 2.0))


@situation
def deep_copy_of_a_result():
    copy.deepcopy(leaf(1.0) * 2)


@situation
def matmul_of_two_types():
    torch.ones(2, 3) @ torch.from_numpy(np.ones((3, 2)))


@situation
def linear_of_two_types():
    torch.nn.Linear(3, 2)(torch.from_numpy(np.ones((1, 3))))


@situation
def shapes_that_do_not_broadcast():
    torch.ones(2, 3) + torch.ones(4)


@situation
def shapes_that_do_not_multiply():
    torch.ones(2, 3) @ torch.ones(2, 3)


@situation
def loss_of_two_shapes():
    F.cross_entropy(torch.ones(3, 5), torch.zeros(2, dtype=torch.long))


@situation
def scatter_of_two_types():
    torch.ones(2, 3).scatter(0, torch.zeros(1, 3, dtype=torch.long), torch.ones(1, 3, dtype=torch.double))


@situation
def gather_with_another_number_of_dimensions():
    torch.ones(2, 3).gather(0, torch.zeros(3, dtype=torch.long))


@situation
def integers_that_require_grad():
    torch.tensor([1, 2]).requires_grad_()


# ------------------------------------------------------------------ custom functions and gradcheck (rows 25, 26)


def apply(backward, *args):
    """A custom function of `a` and `b` with this backward, applied and differentiated."""

    class Given(Function):
        @staticmethod
        def forward(ctx, a, b=None):
            return a * 2

    Given.backward = staticmethod(backward)
    Given.apply(*args).sum().backward()


@situation
def too_few_gradients():
    apply(lambda ctx, grad: grad, leaf(1.0), leaf(2.0))


@situation
def gradient_of_the_wrong_shape():
    apply(lambda ctx, grad: torch.ones(7), leaf(1.0, 2.0))


@situation
def gradient_that_is_no_tensor():
    apply(lambda ctx, grad: 5.0, leaf(1.0))


@situation
def gradient_of_a_number():
    apply(lambda ctx, grad: (grad, grad), leaf(1.0), 3.0)


@situation
def backward_that_fails():
    apply(lambda ctx, grad: grad.no_such_attribute, leaf(1.0))


@situation
def differentiated_twice():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    (g,) = torch.autograd.grad(Once.apply(x) ** 2, x, create_graph=True)
    g.backward()


@situation
def intermediate_value_differentiated_twice():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(1.0)
    (slope,) = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
    slope.backward()


@situation
def saved_value_that_is_no_tensor():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3.0)
            return x * 3.0

    Scale.apply(leaf(1.0))


@situation
def gradcheck_in_float32():
    gradcheck(lambda x: x * x, leaf(0.5, 4.0))


@situation
def gradcheck_at_a_kink():
    gradcheck(torch.relu, torch.tensor([0.0, 1.0], dtype=torch.double, requires_grad=True), eps=2**-10)


@situation
def gradcheck_of_a_formula_that_changes():
    factors = iter([2.0, 2.5] * 20)

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * next(factors)

    gradcheck(Double.apply, torch.tensor([0.5], dtype=torch.double, requires_grad=True), eps=2**-10)


@situation
def gradcheck_of_a_wrong_formula():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    gradcheck(Square.apply, torch.tensor([0.5, 4.0], dtype=torch.double, requires_grad=True), eps=2**-10)


def main():
    """Write all texts."""
    texts = {name: text_of(function).split("\n") for name, function in SITUATIONS.items()}
    GOLDEN.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(texts)} texts written to {GOLDEN}")


if __name__ == "__main__":
    sys.exit(main())
