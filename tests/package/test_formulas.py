"""The docstrings of losses, activations, distributions, optimizers, schedules and windows say what is computed."""

import inspect
import re

from checkout import entries_of_reference

from cygrad.distributions import Distribution
from cygrad.nn.modules._loss import Loss
from cygrad.optim import Optimizer
from cygrad.optim.lr_scheduler import LRScheduler

# A function of something, an operator between two operands, an equation, or an inequality.
FORMULA = re.compile(
    r"\b(exp|log|max|min|sigmoid|softmax|digamma)\(|[\w)\]] ?(\*\*?|/|\^) ?[\w(]|[\w)\]] [+-] [\w(|]|"
    r"[\w)\]] = [-\w(]|[\w|] >=? \w"
)
FUNCTIONS = re.compile(r"cygrad\.(nn\.functional\.(\w*_loss|\w*cross_entropy\w*|kl_div)|signal\.windows\.\w+)$")
KINDS = Distribution, Optimizer, LRScheduler, Loss
METHODS = "log_prob", "entropy"
# Names without a formula of their own, and why.
WITHOUT = {
    "cygrad.distributed.optim.PostLocalSGDOptimizer": "that of the optimizer that it wraps",
    "cygrad.distributed.optim.ZeroRedundancyOptimizer": "that of the optimizer that it wraps",
    "cygrad.distributions.Distribution.entropy": "the base of the others, which raises",
    "cygrad.distributions.Distribution.log_prob": "likewise",
    "cygrad.distributions.ExponentialFamily.entropy": "the formula is that of the class",
    "cygrad.distributions.Independent": "that of the distribution whose dimensions it counts in another way",
    "cygrad.distributions.Independent.entropy": "likewise",
    "cygrad.distributions.Independent.log_prob": "likewise",
    "cygrad.distributions.TransformedDistribution.log_prob": "the formula is that of the class",
    "cygrad.nn.NLLLoss2d": "an old name",
    "cygrad.optim.Optimizer": "the base of the others",
    "cygrad.optim.formula.FormulaOptimizer": "the base of some others",
    "cygrad.optim.lr_scheduler.ChainedScheduler": "those of the schedules that it chains",
    "cygrad.optim.lr_scheduler.LRScheduler": "the base of the others",
    "cygrad.optim.lr_scheduler.SequentialLR": "those of the schedules that follow each other",
}


ENTRIES = {name: value for name, (value, _) in entries_of_reference().items()}


def is_activation(value):
    return value.__module__ in ("cygrad.nn.modules.activation", "cygrad.nn.modules.rectifiers")


def needs_a_formula(name):
    value = ENTRIES[name]
    owner, _, last = name.rpartition(".")
    if last in METHODS and isinstance(ENTRIES.get(owner), type):
        return issubclass(ENTRIES[owner], Distribution)
    if isinstance(value, type):
        return issubclass(value, KINDS) or is_activation(value)
    return FUNCTIONS.match(name) is not None


NAMES = [name for name in ENTRIES if needs_a_formula(name)]


def has_a_formula(name):
    """Whether one stands before the example, in a sentence that is not about the gradient."""
    text, _, _ = (inspect.getdoc(ENTRIES[name]) or "").partition(">>>")
    text = re.sub(r"\bGradients?( \w+)*: .*?(\.\s|\.$)", "", text, flags=re.DOTALL)
    return FORMULA.search(text) is not None


def test_names_are_found():
    assert len(NAMES) > 200
    assert {
        "cygrad.distributions.Beta.entropy",
        "cygrad.distributions.Normal",
        "cygrad.nn.CTCLoss",
        "cygrad.nn.GELU",
        "cygrad.nn.functional.kl_div",
        "cygrad.optim.Adam",
        "cygrad.optim.lr_scheduler.StepLR",
        "cygrad.signal.windows.nuttall",
    } <= set(NAMES)


def test_docstrings_have_a_formula():
    assert [name for name in NAMES if name not in WITHOUT and not has_a_formula(name)] == []


def test_exceptions_are_needed():
    assert [name for name in WITHOUT if name not in NAMES or has_a_formula(name)] == []
