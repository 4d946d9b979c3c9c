"""The layers, one file for each family."""

from cygrad.nn.modules.activation import LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from cygrad.nn.modules.container import ModuleDict, ModuleList, Sequential
from cygrad.nn.modules.dropout import Dropout
from cygrad.nn.modules.flatten import Flatten
from cygrad.nn.modules.linear import Identity, Linear
from cygrad.nn.modules.loss import CrossEntropyLoss, MSELoss, NLLLoss
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.parameter_containers import ParameterDict, ParameterList

__all__ = [
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Identity",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "ParameterDict",
    "ParameterList",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
]
