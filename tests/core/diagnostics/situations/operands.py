"""Operands of the wrong type, dtype or shape: NumPy functions, `.grad` of results, copies (rows 16, 17, 19)."""

import copy

import numpy as np
from core.diagnostics.situations.table import leaf, situation

import cygrad as torch
import cygrad.nn.functional as F


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
