"""Warnings name the line of the user's program, however many frames of the package are above it."""

import re
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest

import cygrad as torch
from cygrad import nn

SOURCES = Path(torch.__file__).parent


def hook(*arguments):
    return None


def backward_hook_without_inputs_that_require_grad():
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(hook)
    layer(torch.ones(1, 2)).sum().backward()


def backward_hook_in_nested_modules():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(nn.Sequential(layer))
    layer.register_full_backward_hook(hook)
    model(torch.ones(1, 2)).sum().backward()


class OwnLoader(torch.utils.data.DataLoader):
    pass


def length_of_an_iterable_dataset():
    class Numbers(torch.utils.data.IterableDataset):
        def __len__(self):
            return 1

        def __iter__(self):
            return iter(range(3))

    loader = torch.utils.data.DataLoader(Numbers())
    len(loader)
    list(loader)


def scheduler_before_optimizer():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scheduler.step()


def epoch_of_a_sequence():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    scheduler.step(1.0, epoch=3)


SITUATIONS = [
    backward_hook_without_inputs_that_require_grad,
    backward_hook_in_nested_modules,
    length_of_an_iterable_dataset,
    scheduler_before_optimizer,
    epoch_of_a_sequence,
    lambda: nn.LSTM(2, 2, dropout=0.5),
    lambda: nn.L1Loss(reduce=True),
    lambda: nn.NLLLoss(size_average=False),
    lambda: nn.Linear(1, 1).to(torch.complex64),
    lambda: nn.Linear(1, 1).state_dict(None, "", True),
    lambda: nn.init.uniform(torch.ones(2)),
    lambda: nn.Linear(0, 2),
    lambda: nn.utils.weight_norm(nn.Linear(1, 1)),
    lambda: nn.utils.clip_grad_norm([torch.ones(1)], 1.0),
    lambda: torch.utils.data.random_split(range(3), [0.9, 0.1]),
    lambda: torch.ones(2, 3, 4).T,
    lambda: torch.tensor(1.0).mT,
    lambda: torch.where(torch.ones(2, dtype=torch.uint8), torch.ones(2), torch.zeros(2)),
    lambda: torch.ones(2)[torch.ones(2, dtype=torch.uint8)],
    lambda: torch.tensor(torch.ones(2)),
    lambda: torch.ones(2, dtype=torch.complex64).to(torch.float32),
    lambda: torch.ones(1, requires_grad=True).sum().backward(retain_variables=True),
    lambda: torch.autograd.detect_anomaly(),
    lambda: torch.optim.SGD([torch.ones(1, requires_grad=True)] * 2, lr=0.1),
]
if not torch.cuda.is_available():
    SITUATIONS.append(lambda: iter(OwnLoader([1.0], pin_memory=True)))


@pytest.mark.parametrize("number", range(len(SITUATIONS)))
def test_situations(number):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SITUATIONS[number]()
    assert caught and {warning.filename for warning in caught} == {__file__}


def test_the_line_below_a_block_of_contextlib():
    from cygrad._core.errors.sites import warn

    block = contextmanager(load("def block():\n    warn('text')\n    yield\n", {"warn": warn})["block"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 1
        with block():
            pass
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def load(text, names):
    """Execute text as if it were a file of the package."""
    exec(compile(text, str(SOURCES / "made_up.py"), "exec"), names)
    return names


def test_warnings_are_shown_once_for_each_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            torch.tensor(1.0).mT  # noqa: B018
        torch.tensor(1.0).mT  # noqa: B018
    assert len(caught) == 2


def test_only_one_function_calls_warn_of_the_standard_library():
    """It finds the user's line; a fixed `stacklevel` is wrong as soon as a frame is added between."""
    call = re.compile(r"\bwarnings\.warn\(|from warnings import")
    files = [path for pattern in ("*.py", "*.pyx") for path in SOURCES.rglob(pattern)]
    found = [path.relative_to(SOURCES) for path in files if call.search(path.read_text("utf-8"))]
    assert found == [Path("_core/errors/sites.py")]
