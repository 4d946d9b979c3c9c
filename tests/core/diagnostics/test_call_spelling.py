"""Errors name a function and number its arguments as the program spelled the call."""

import pytest

import cygrad as torch

X = torch.tensor([1.0, 2.0])
REFUSED = {
    "X.matmul('a')": "matmul(): argument 'other' (position 1) must be Tensor, not str",
    "torch.matmul(X, 'a')": "matmul(): argument 'other' (position 2) must be Tensor, not str",
    "X.cumsum('a')": "cumsum(): argument 'dim' (position 1) must be int, not str",
    "torch.transpose(X, 'a', 0)": "transpose(): argument 'dim0' (position 2) must be int, not str",
    "X.transpose('a', 0)": "transpose(): argument 'dim0' (position 1) must be int, not str",
    "torch.gather(X, 0, 'a')": "gather(): argument 'index' (position 3) must be Tensor, not str",
    "torch.absolute('a')": "absolute(): argument 'input' (position 1) must be Tensor, not str",
    "torch.arccos(3)": "arccos(): argument 'input' (position 1) must be Tensor, not int",
    "X.add(X, alpha='a')": "add(): argument 'alpha' must be Number, not str",
    "torch.abs(X, 1)": "abs() takes 1 positional argument but 2 were given",
    "X.addmv(X, X, X)": "addmv() takes 2 positional arguments but 3 were given",
    "X.pow('a')": "pow() received an invalid combination of arguments - got (str), but expected one of:",
    "torch.pow(X, 'a')": "pow() received an invalid combination of arguments - got (Tensor, str), but expected one of:",
    "X.max(keepdim=True)": "max() received an invalid combination of arguments - got (keepdim=bool, ), but ...",
}


@pytest.mark.parametrize("call", REFUSED)
def test_words(call):
    with pytest.raises(TypeError) as caught:
        eval(call)
    line = str(caught.value).split("\n")[0]
    assert line == REFUSED[call] or REFUSED[call].endswith("...") and line.startswith(REFUSED[call][:-3])


def test_a_list_of_arguments_is_left_alone():
    with pytest.raises(TypeError, match=r"^matmul\(\): argument 'other' \(position 2\) must be Tensor, not str"):
        torch.matmul(*[X, "a"])
