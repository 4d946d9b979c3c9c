"""Errors name the responsible lines: which line saved, changed, freed, or cut the gradient.

The first line of each error is PyTorch's and is tested along with the behavior; these tests check the lines after it.
A test marks the responsible lines with comments (`# saved`, `# changed`, ...), and the error must name those lines.
"""

import linecache
import re
import warnings

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import errors
from helpers import first_line, in_thread, leaf, line_marked

TWICE = "Trying to backward through the graph a second time (or directly access saved tensors after"
NO_GRAD = "element 0 of tensors does not require grad and does not have a grad_fn"
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."


def names(caught, first, **sites):
    """Check that the error starts with `first` and contains `<verb> <what> at <file:line>` for each site.

    `saved_by="MulBackward0"` stands for "saved by MulBackward0 at" the caller's line that is marked `# saved`; `what`
    is a regular expression.
    """
    text = str(caught.value)
    assert first_line(caught.value).startswith(first)
    for key, what in sites.items():
        verb = key.replace("_", " ")
        where = line_marked(verb.split()[0], depth=2)
        assert re.search(rf"{verb} {what} at {where}", text), text


# ------------------------------------------------------------------ saved, then changed


MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace"


def test_saved_input_changed_by_an_operator():
    x = leaf(1.0)
    y = x * 1
    z = y.sin()  # saved
    y += 1  # changed
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    names(caught, MODIFIED, saved_by="SinBackward0", changed_by="add_")


def test_saved_input_changed_by_a_method():
    x, w = leaf(1.0), leaf(2.0)
    y = x * 1
    z = y * w  # saved
    y.mul_(3)  # changed
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by="mul_")


def test_saved_result_changed():
    y = leaf(1.0).exp()  # saved
    y.add_(1)  # changed
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    names(caught, MODIFIED, saved_by="ExpBackward0", changed_by="add_")


@pytest.mark.parametrize(
    "kind", ["ReLU", "ReLU6", "ELU", "SELU", "CELU", "LeakyReLU", "RReLU", "Hardtanh", "SiLU", "Mish", "Hardswish"]
)
def test_module_that_works_in_place(kind):
    def run(**how):
        y = leaf(1.0).exp()
        z = y * y  # saved
        getattr(torch.nn, kind)(**how)(y)  # changed
        z.backward()

    with pytest.raises(RuntimeError) as caught:
        run(inplace=True)
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by=".*_")
    assert "to fix it: leave out `inplace=True`" in str(caught.value)
    run()


def test_changed_through_a_slice():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y**2  # saved
    y[0] = 5.0  # changed
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    names(caught, MODIFIED, saved_by="PowBackward0", changed_by=r"\w+")


def test_changed_through_a_view_made_elsewhere():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y.view(2, 1)
    z = y.tanh() * y  # saved
    view.zero_()  # changed
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by="zero_")


def test_changed_through_detach():
    x, w = leaf(1.0), leaf(2.0)
    z = x * w  # saved
    w.detach().add_(1)  # changed
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by="add_")


def test_weight_changed_under_no_grad():
    w = leaf(2.0)
    loss = (w * w).sum()  # saved
    with torch.no_grad():
        w -= 0.1  # changed
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by="sub_")


def test_weight_changed_by_an_optimizer_between_forward_and_backward():
    w = leaf(2.0)
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss = (w * w).sum()  # saved
    loss.backward(retain_graph=True)
    optimizer.step()  # changed
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by=r"\w+")


def test_last_of_several_changes_is_named():
    y = leaf(1.0) * 1
    z = y.cos()  # saved
    y.add_(1)
    y.mul_(2)  # changed
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    names(caught, MODIFIED, saved_by="CosBackward0", changed_by="mul_")


def test_saved_by_a_custom_function():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    y = leaf(1.0) * 1
    z = Square.apply(y)  # saved
    y.add_(1)  # changed
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    names(caught, MODIFIED, saved_by="SquareBackward", changed_by="add_")


def helper_that_changes(tensor):
    tensor.add_(1)


def test_change_inside_a_function_names_the_line_in_that_function():
    y = leaf(1.0) * 1
    z = y.sin()
    helper_that_changes(y)
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    first = helper_that_changes.__code__.co_firstlineno
    assert re.search(rf"changed by add_ at \S*test_golden_sites.py:{first + 1}\b", str(caught.value))


def test_lines_are_right_from_another_thread():
    def work():
        y = leaf(1.0) * 1
        z = y.sin()  # saved
        y.add_(1)  # changed
        with pytest.raises(RuntimeError) as caught:
            z.backward()
        names(caught, MODIFIED, saved_by="SinBackward0", changed_by="add_")

    in_thread(work)


def test_modified_error_says_how_to_mend_it():
    y = leaf(1.0) * 1
    z = y.sin()
    y += 1
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    assert "clone()" in str(caught.value)
    assert "x = x + y" in str(caught.value)


# ------------------------------------------------------------------ freed


def test_freed_by_backward():
    y = leaf(1.0).exp()
    y.backward()  # freed
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    names(caught, TWICE, freed_by="backward")


def test_freed_by_autograd_backward():
    y = leaf(1.0).exp()
    torch.autograd.backward(y)  # freed
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    names(caught, TWICE, freed_by="backward")


def test_freed_by_grad():
    x = leaf(1.0)
    y = x.exp()
    torch.autograd.grad(y, x)  # freed
    with pytest.raises(RuntimeError) as caught:
        torch.autograd.grad(y, x)
    names(caught, TWICE, freed_by="grad")


def test_second_of_two_retained_runs_freed():
    y = leaf(1.0).exp()
    y.backward(retain_graph=True)
    y.backward()  # freed
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    names(caught, TWICE, freed_by="backward")


def test_tensor_carried_into_the_next_iteration():
    w = leaf(0.5)
    hidden = torch.ones(1)
    with pytest.raises(RuntimeError) as caught:
        for _ in range(2):
            hidden = (hidden * w).tanh()
            hidden.backward()  # freed
    names(caught, TWICE, freed_by="backward")
    assert ".detach()" in str(caught.value)


def test_tensor_built_once_outside_the_loop():
    w = leaf(0.5)
    scale = w.exp()  # recorded
    with pytest.raises(RuntimeError) as caught:
        for _ in range(2):
            (scale * 2).backward()  # freed
    names(caught, TWICE, freed_by="backward")
    assert re.search(rf"ExpBackward0 recorded at {line_marked('recorded')}", str(caught.value))


def test_saved_tensor_read_after_it_was_freed():
    y = leaf(1.0).exp()
    y.backward()  # freed
    with pytest.raises(RuntimeError) as caught:
        y.grad_fn._saved_result  # noqa: B018
    names(caught, TWICE, freed_by="backward")


# ------------------------------------------------------------------ no gradient: the site that cut it


def backward_of(tensor):
    with pytest.raises(RuntimeError) as caught:
        tensor.sum().backward()
    return caught


def test_cut_by_detach():
    y = leaf(1.0).detach()  # cut
    names(backward_of(y * 2 + 1), NO_GRAD, cut_by="detach")


def test_cut_by_detach_in_place():
    y = leaf(1.0) * 2
    y.detach_()  # cut
    names(backward_of(y), NO_GRAD, cut_by="detach_?")


def test_cut_by_no_grad():
    x = leaf(1.0)
    with torch.no_grad():
        y = x * 2  # cut
    names(backward_of(y + 1), NO_GRAD, cut_by="no_grad")


def test_cut_by_a_decorated_function():
    @torch.no_grad()
    def double(x):
        return x * 2  # cut

    caught = backward_of(double(leaf(1.0)))
    first = double.__wrapped__.__code__.co_firstlineno
    assert re.search(rf"cut by no_grad at \S*test_golden_sites.py:{first + 2}\b", str(caught.value))


def test_cut_by_data():
    y = leaf(1.0).data  # cut
    names(backward_of(y.exp()), NO_GRAD, cut_by=r"\.data")


def test_cut_by_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        y = x * 2  # cut
    names(backward_of(y + 1), NO_GRAD, cut_by="inference_mode")


def test_cut_by_set_grad_enabled():
    x = leaf(1.0)
    torch.set_grad_enabled(False)
    y = x * 2  # cut
    torch.set_grad_enabled(True)
    names(backward_of(y), NO_GRAD, cut_by="no_grad")


def test_cut_by_a_backward_pass_that_is_not_recorded():
    x = leaf(3.0)
    (x * x).backward()  # cut
    names(backward_of(x.grad * 2), NO_GRAD, cut_by="backward without create_graph=True")


def test_cut_by_grad_that_is_not_recorded():
    x = leaf(3.0)
    (slope,) = torch.autograd.grad(x * x, x)  # cut
    names(backward_of(slope**2), NO_GRAD, cut_by="grad without create_graph=True")


def test_cut_at_a_retained_gradient():
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    (y * 2).backward()  # cut
    names(backward_of(y.grad), NO_GRAD, cut_by="backward without create_graph=True")


def test_cut_in_a_backward_of_ones_own():
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            (x * 2).backward()  # cut

    with pytest.raises(RuntimeError) as caught:
        Inner.apply(leaf(3.0)).backward()
    names(caught, NO_GRAD, cut_by="no_grad")


def test_cut_by_argmax():
    x = leaf(1.0, 2.0)
    y = x.argmax()  # cut
    names(backward_of(y), NO_GRAD, cut_by="(integer|non-differentiable) op argmax")


def test_cut_by_argmax_and_then_converted():
    x = leaf(1.0, 2.0)
    y = x.argmax()  # cut
    names(backward_of(y.float() * 2), NO_GRAD, cut_by="(integer|non-differentiable) op argmax")


def test_cut_by_a_comparison():
    x = leaf(1.0, 2.0)
    correct = x > 1  # cut
    names(backward_of(correct.float().mean()), NO_GRAD, cut_by=r"(integer|non-differentiable) op \w+")


def test_all_inputs_frozen():
    frozen = torch.ones(2)
    caught = backward_of(frozen * 2 + 1)
    assert first_line(caught.value) == NO_GRAD
    assert "every input has requires_grad=False" in str(caught.value)


def test_frozen_model():
    model = torch.nn.Linear(2, 1)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    caught = backward_of(model(torch.ones(3, 2)))
    assert "every input has requires_grad=False" in str(caught.value)


def test_autograd_grad_says_the_same():
    x = leaf(1.0)
    y = x.detach()  # cut
    with pytest.raises(RuntimeError) as caught:
        torch.autograd.grad(y.sum(), x)
    names(caught, NO_GRAD, cut_by="detach")


def test_why_follows_the_operand_that_was_cut():
    x = leaf(1.0)
    y = x.detach()  # cut
    names(backward_of(torch.ones(1) + y), NO_GRAD, cut_by="detach")


# ------------------------------------------------------------------ in-place on leaves and views


def test_leaf_changed_names_the_line_and_three_idioms():
    w = leaf(1.0)
    with pytest.raises(RuntimeError) as caught:
        w += 1  # changed
    names(caught, LEAF, changed_by="add_")
    for idiom in ("no_grad()", ".data", "clone()"):
        assert idiom in str(caught.value)


@pytest.mark.parametrize("op", ["mul_", "sub_", "zero_", "copy_"])
def test_leaf_error_names_the_op(op):
    w = leaf(1.0)
    args = {"zero_": (), "copy_": (torch.zeros(1),)}.get(op, (2,))
    with pytest.raises(RuntimeError) as caught:
        getattr(w, op)(*args)  # changed
    names(caught, LEAF, changed_by=op)


def test_view_of_a_leaf_names_both_lines():
    w = leaf(1.0, 2.0)
    row = w[:1]  # made
    with pytest.raises(RuntimeError) as caught:
        row.mul_(2)  # changed
    first = "a view of a leaf Variable that requires grad is being used in an in-place operation."
    names(caught, first, changed_by="mul_")
    assert re.search(rf"made at {line_marked('made')}", str(caught.value))


def test_one_of_several_views_names_both_lines():
    y = leaf(1.0, 2.0) * 1
    part = y.split(1)[0]  # made
    with pytest.raises(RuntimeError) as caught:
        part.mul_(2)  # changed
    names(caught, "Output 0 of Split is a view and is being modified inplace.", changed_by="mul_")
    assert re.search(rf"made at {line_marked('made')}", str(caught.value))


def test_view_made_under_no_grad_names_both_lines():
    y = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        part = y[:1]  # made
    with pytest.raises(RuntimeError) as caught:
        part.mul_(2)  # changed
    names(caught, "A view was created in no_grad mode", changed_by="mul_")
    assert re.search(rf"made at {line_marked('made')}", str(caught.value))


def test_overlapping_memory_names_the_line():
    wide = torch.ones(2, 1).expand(2, 3)
    with pytest.raises(RuntimeError) as caught:
        wide.mul_(2)  # changed
    assert re.search(rf"changed .*at {line_marked('changed')}", str(caught.value))
    assert "expand" in str(caught.value)


def test_read_only_memory_names_the_line():
    import numpy as np

    array = np.ones(3, dtype=np.float32)
    array.flags.writeable = False
    x = torch.from_numpy(array)
    with pytest.raises(RuntimeError, match="read-only") as caught:
        x.add_(1)  # changed
    assert re.search(rf"changed .*at {line_marked('changed')}", str(caught.value))
    assert array.tolist() == [1.0, 1.0, 1.0]


# ------------------------------------------------------------------ other errors


def reads_of_grad(action):
    """The warnings raised by reading `.grad` inside `action`."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        action()
    return [str(warning.message) for warning in seen]


def test_reading_grad_of_a_non_leaf_warns_once_for_each_line_that_made_one():
    x = leaf(1.0)

    def action():
        for _ in range(3):
            y = x * 2  # first
            y.grad  # noqa: B018
            y.grad  # noqa: B018
        (x * 3).grad  # noqa: B018  second

    texts = reads_of_grad(action)
    assert len(texts) == 2
    assert re.search(rf"made by MulBackward0 at {line_marked('first')}", texts[0])


def test_reading_grad_of_a_leaf_or_with_retain_grad_does_not_warn():
    y = leaf(1.0) * 2
    y.retain_grad()
    assert reads_of_grad(lambda: (leaf(1.0).grad, y.grad)) == []


def test_debuggers_and_hasattr_do_not_warn():
    import inspect
    import pprint

    y = leaf(1.0) * 2

    def probe():
        hasattr(y, "grad")
        getattr(y, "grad", None)
        inspect.getmembers_static(y)
        vars(type(y))["grad"].__get__(y)
        pprint.pformat([getattr(y, name, None) for name in ("grad", "shape")])

    assert [text for text in reads_of_grad(probe) if "leaf" in text] == []


def test_non_scalar_backward_says_what_to_write():
    with pytest.raises(RuntimeError) as caught:
        (leaf(1.0, 2.0) * 2).backward()
    assert first_line(caught.value) == "grad can be implicitly created only for scalar outputs"
    assert "sum()" in str(caught.value)


def test_wrong_gradient_of_a_custom_function_names_the_call():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(7)

    y = Wrong.apply(leaf(1.0, 2.0))  # recorded
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    assert "returned an invalid gradient at index 0" in first_line(caught.value)
    assert re.search(rf"recorded at {line_marked('recorded')}", str(caught.value))


def test_lines_survive_a_long_way_to_the_error():
    x = leaf(1.0, 2.0)
    y = F.relu(x * 1)
    z = (y * y).sum()  # saved
    for _ in range(1000):
        z = z + 0
    y[0] = 0.0  # changed
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    names(caught, MODIFIED, saved_by="MulBackward0", changed_by=r"\w+")


@pytest.mark.parametrize("kind", ["lambda", "comprehension", "exec"])
def test_lines_in_unusual_code(kind):
    y = leaf(1.0) * 1
    z = y.sin()
    if kind == "lambda":
        (lambda: y.add_(1))()  # lambda
    elif kind == "comprehension":
        [y.add_(1) for _ in range(1)]  # comprehension
    else:
        exec(compile("\n\ny.add_(1)", "made_up.py", "exec"), {"y": y})
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    where = r"made_up\.py:3" if kind == "exec" else line_marked(kind)
    assert re.search(rf"changed by add_ at {where}", str(caught.value))


@pytest.mark.parametrize(
    "lines",
    ["for v in [w]: v -= 0.5", "if True: w.mul_(2)", "w += (\n  1)", "(lambda v: v.sub_(0.1))(w)", "π = w; π -= 0.5"],
)
def test_the_statement_to_write_under_no_grad_is_one_that_runs(lines):
    w, name = leaf(1.0), f"<cell {lines}>"
    given = {"w": w}
    linecache.cache[name] = (len(lines), None, lines.splitlines(True), name)
    try:
        with pytest.raises(errors.LeafChangedError) as caught:
            exec(compile(lines, name, "exec"), given)
    finally:
        del linecache.cache[name]
        given.clear()  # without the GIL, a lambda that references it stays alive
    mended = re.search(r"with torch\.no_grad\(\): .*", str(caught.value))[0]
    given |= {"torch": torch, "w": w, "v": w, "π": w}
    exec(mended, given)
    given.clear()
    assert w.item() != 1
