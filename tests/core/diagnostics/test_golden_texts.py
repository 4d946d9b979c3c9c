"""Full error texts: each situation in `situations` must produce the text in `golden.json`."""

import json

import pytest
from core.diagnostics.situations import GOLDEN, SITUATIONS, text_of

import cygrad as torch
from cygrad.autograd.anomaly_mode import is_anomaly_enabled

TEXTS = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SITUATIONS)
def test_text(name):
    assert text_of(SITUATIONS[name]).split("\n") == TEXTS[name]


def test_no_situation_is_lost():
    assert set(SITUATIONS) == set(TEXTS)


def test_all_is_as_before_after_an_error():
    for situation in SITUATIONS.values():
        text_of(situation)
        assert torch.is_grad_enabled()
        assert not is_anomaly_enabled()
