"""Losses without a path to any leaf (row 3)."""

from core.diagnostics.situations.table import leaf, situation

import cygrad as torch


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
