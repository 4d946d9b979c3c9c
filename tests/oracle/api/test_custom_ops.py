"""Schemas, errors and counts of operations are those of PyTorch."""

import pytest
from oracle.answers import lines

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

SIGNATURES = """
(x: Tensor, y: Optional[Tensor], n: int, s: float = 2.0, b: bool = True, t: str = "a") -> Tensor
(x: List[Tensor], w: Optional[Sequence[float]] = None) -> List[Tensor]
(x: Tensor, *, d: Optional[torch.dtype] = None, n: Sequence[int]) -> Tuple[Tensor, int]
(x: Tensor, k: Union[int, float, bool] = 1) -> None
(x) -> Tensor
(*x: Tensor) -> Tensor
(x: Tensor)
"""


def answer(library, signature):
    import typing

    space = {**vars(typing), "torch": library, "Tensor": library.Tensor}
    exec(f"def f{signature}: pass", space)
    found = []
    for mutates in ((), {"x"}, "unknown"):
        try:
            found.append(library.library.infer_schema(space["f"], mutates_args=mutates))
        except ValueError as error:
            found.append(str(error).partition(" Got func")[0])
    return found


@pytest.mark.parametrize("signature", lines(SIGNATURES))
def test_same_schemas(signature):
    assert answer(cygrad, signature) == answer(torch, signature)


PRODUCTS = """
leaf(3, 4) @ leaf(4, 5)
leaf(2, 3, 4) @ leaf(4, 5)
leaf(2, 1, 3, 4) @ leaf(6, 4, 5)
torch.addmm(leaf(3, 5), leaf(3, 4), leaf(4, 5))
torch.baddbmm(leaf(2, 3, 5), leaf(2, 3, 4), leaf(2, 4, 5))
torch.nn.Linear(4, 5)(leaf(2, 3, 4))
torch.nn.functional.conv2d(leaf(2, 3, 10, 11), leaf(4, 3, 3, 2), stride=2, padding=1)
torch.nn.functional.conv2d(leaf(2, 4, 8, 8), leaf(6, 2, 3, 3), groups=2)
torch.nn.functional.conv_transpose2d(leaf(2, 3, 5, 5), leaf(3, 4, 3, 3))
torch.einsum("bij,bjk->bik", leaf(2, 3, 4), leaf(2, 4, 5))
torch.nn.RNN(3, 4)(leaf(5, 2, 3))[0]
torch.nn.GRU(3, 4)(leaf(5, 2, 3))[0]
leaf(3, 4) @ leaf(4)
torch.outer(leaf(3), leaf(4))
"""


@pytest.mark.parametrize("product", lines(PRODUCTS))
def test_same_counts(product):
    def counts(library):
        from importlib import import_module

        counter = import_module(f"{library.__name__}.utils.flop_counter").FlopCounterMode

        def leaf(*shape):
            return library.ones(shape, requires_grad=True)

        found = []
        with counter(display=False) as forward:
            result = eval(product, {"torch": library, "leaf": leaf})
        with counter(display=False) as backward:
            result.sum().backward()
        for one in (forward, backward):
            counted = one.get_flop_counts()
            found.append({name: {str(op): n for op, n in ops.items()} for name, ops in counted.items()})
            found.append(one.get_table())
        return found

    assert counts(cygrad) == counts(torch)
