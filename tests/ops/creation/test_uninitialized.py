"""Memory that nobody has set, while a program asks for deterministic algorithms."""

import pytest

import cygrad as torch
from cygrad._core.runtime import filling
from helpers import fails

MARKS = {
    torch.float32: float("nan"),
    torch.float16: float("nan"),
    torch.complex64: complex(float("nan"), 0),
    torch.int8: 127,
    torch.uint8: 255,
    torch.int64: 2**63 - 1,
    torch.uint64: 2**64 - 1,
    torch.bool: True,
}
MAKERS = {
    "empty": lambda kind: torch.empty(2, 3, dtype=kind),
    "0-dim": lambda kind: torch.empty((), dtype=kind),
    "channels last": lambda kind: torch.empty(1, 2, 3, 4, dtype=kind, memory_format=torch.channels_last),
    "out=": lambda kind: torch.empty(3, out=torch.zeros(0, dtype=kind)),
    "empty_like": lambda kind: torch.empty_like(torch.zeros(2, 3, dtype=kind).t()),
    "empty_strided": lambda kind: torch.empty_strided((2, 3), (1, 4), dtype=kind),
    "empty_permuted": lambda kind: torch.empty_permuted((2, 3), (1, 0), dtype=kind),
    "new_empty": lambda kind: torch.zeros(2, dtype=kind).new_empty(3),
    "new_empty_strided": lambda kind: torch.zeros(2, dtype=kind).new_empty_strided((2,), (3,)),
    "resize_": lambda kind: torch.zeros(0, dtype=kind).resize_(3),
}


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("kind", MARKS, ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_is_marked(name, kind, deterministic):
    found = MAKERS[name](kind).flatten().tolist()
    assert found and {repr(value) for value in found} == {repr(MARKS[kind])}


def test_only_what_is_new_is_marked(deterministic):
    assert torch.ones(2).resize_(3).isnan().tolist() == [False, False, True]
    assert torch.empty(2, out=torch.zeros(2)).tolist() == torch.zeros(2).tolist() == [0, 0]
    assert torch.empty(0).shape == (0,)
    assert torch.empty(2, 3, device="meta").shape == (2, 3)


def test_both_settings_count(monkeypatch):
    told: list = []
    monkeypatch.setattr(filling, "followers", [told.append])
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    assert not torch._C._get_deterministic_fill_uninitialized_memory()
    torch._C._set_deterministic_fill_uninitialized_memory(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(False)
    assert told == [True, False, True, False]


def test_warning_only_is_remembered_without_determinism(deterministic):
    torch.use_deterministic_algorithms(False, warn_only=True)
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert not torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 0
    torch.set_deterministic_debug_mode("default")
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    with fails(TypeError, "_set_deterministic_algorithms(): argument 'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(True, warn_only=1)
