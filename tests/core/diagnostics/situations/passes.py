"""Backward passes: second passes, growing graphs, graphs within graphs, and threads."""

import threading

from core.diagnostics.situations.table import leaf, situation

import cygrad as torch
from cygrad.autograd import Function

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


# ------------------------------------------------------------------ graphs kept alive (rows 10 and 11)


def train(loss_of, keep=lambda loss: None, **how):
    """Run ten steps of SGD under `cygrad.debug()`."""
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
