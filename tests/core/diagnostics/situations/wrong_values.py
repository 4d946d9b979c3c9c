"""Gradients that are NaN or would be wrong."""

from core.diagnostics.situations.table import leaf, situation

import cygrad as torch
from cygrad.autograd import Function, nan_check, set_detect_anomaly
from cygrad.utils.checkpoint import checkpoint

# ------------------------------------------------------------------ NaN (rows 7 and 12)


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
