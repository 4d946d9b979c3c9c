"""In-place changes of saved tensors, leaves and views."""

import numpy as np
from core.diagnostics.situations.table import leaf, situation

import cygrad as torch
import cygrad.nn.functional as F
from cygrad.autograd import Function

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
def leaf_changed_by_an_activation():
    w = leaf(1.0, 2.0)
    F.relu6(w.view(2), inplace=True)


@situation
def leaf_changed_by_a_module():
    net = torch.nn.Dropout(inplace=True)
    w = leaf(1.0, 2.0)
    net(w)


@situation
def leaf_changed_by_another_name_of_a_method():
    w = leaf(1.0, 2.0)
    w[:1].view(-1).multiply_(2)


@situation
def saved_input_changed_by_another_name_of_a_method():
    y = leaf(1.0, 2.0).exp()
    z = y * y
    y.multiply_(2)
    z.sum().backward()


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
