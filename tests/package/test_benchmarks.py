"""The benchmarks run, and their NumPy versions compute the same as cygrad. Nothing is timed."""

import importlib
import warnings

import numpy as np
import pytest
from checkout import CHECKOUT, rows_of_benchmarks

import cygrad

FOLDER = CHECKOUT / "benchmarks"


@pytest.fixture(scope="module")
def rows():
    """`benchmarks.rows`, imported from the checkout because it is not installed."""
    with rows_of_benchmarks() as module:
        yield module


def test_every_row_runs_and_has_its_own_name(rows):
    names = [row.name for row in rows.ROWS]
    assert len(set(names)) == len(names)
    for row in rows.ROWS:
        if not row.is_installed():
            continue
        exec(row.statement, row.setup(cygrad))
        rival = row.for_rival(cygrad, None)
        if rival is not None:
            _, statement, namespace = rival
            exec(statement, namespace)


def test_the_row_without_a_rival_runs(rows):
    exec(rows.SITE_STATEMENT, dict(rows.SITE_NAMES))


def test_every_small_call_runs(rows):
    small = importlib.import_module("benchmarks.small")
    statements = small.read_statements()
    assert len(set(statements)) == len(statements)
    for given in statements:
        statement, names = small.prepared(*given, cygrad)
        exec(statement, names)
        names.clear()  # free-threaded CPython 3.13 never frees functions made by `exec`, nor what they reference


def test_the_chain_by_hand_has_the_same_gradient(rows):
    ours, by_hand = rows.scalars(cygrad), rows.numpy_chain()
    exec(rows.CHAIN.rsplit("\n", 2)[0], ours)  # all but the line that drops the gradients
    exec(rows.NUMPY_CHAIN, by_hand)
    np.testing.assert_allclose(ours["w"].grad.numpy(), by_hand["grad_w"], rtol=1e-5)
    np.testing.assert_allclose(ours["x"].grad.numpy(), by_hand["grad"], rtol=1e-5)


def test_the_network_by_hand_takes_the_same_step(rows):
    ours = rows.network("SGD", 8, lr=0.01)(cygrad)
    by_hand = rows.numpy_network(8)()
    parameters = ours["model"].state_dict()
    for name, number in (("0", "1"), ("2", "2")):
        by_hand[f"w{number}"] = parameters[f"{name}.weight"].numpy().copy()
        by_hand[f"b{number}"] = parameters[f"{name}.bias"].numpy().copy()
    by_hand["images"] = ours["images"].numpy()
    by_hand["labels"] = ours["labels"].numpy()
    exec(rows.STEP, ours)
    exec(rows.NUMPY_STEP, by_hand)
    for name, number in (("0", "1"), ("2", "2")):
        for kind in ("weight", "bias"):
            np.testing.assert_allclose(parameters[f"{name}.{kind}"].numpy(), by_hand[kind[0] + number], atol=1e-6)


def test_ops_compute_what_numpy_computes(rows):
    """Every line runs on both sides, and the first results have the same number of elements if comparable."""
    ops = importlib.import_module("benchmarks.ops")
    ours, theirs = ops.namespaces()
    pairs = ops.lines()
    assert len({statement for statement, _ in pairs}) == len(pairs) > 400
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for statement, expression in pairs:
            found, expected = eval(statement, ours, {}), eval(expression, theirs, {})
            if isinstance(found, cygrad.Tensor) and isinstance(expected, np.ndarray):
                assert found.shape == expected.shape, statement


@pytest.mark.oracle
def test_statements_compared_with_pytorch_mean_the_same(rows):
    """The statements that are not in the op table run in both libraries, and at another size."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
    beside, ops = (importlib.import_module(f"benchmarks.{name}") for name in ("beside", "ops"))
    ours, theirs = (beside.operands(library, 25, False) for library in (cygrad, torch))
    own = beside.statements()[len(ops.lines()) :]
    assert len(set(own)) == len(own) > 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in own:
            found, expected = eval(statement, ours, {}), eval(statement, theirs, {})
            if isinstance(found, cygrad.Tensor):
                assert tuple(found.shape) == tuple(expected.shape), statement
                assert str(found.dtype) == str(expected.dtype), statement


def test_the_digits_are_learnt_by_the_example(rows):
    for module in ("sklearn", "matplotlib", "threadpoolctl", "tqdm"):
        pytest.importorskip(module, reason="needs cygrad[examples]")
    digits = importlib.import_module("benchmarks.digits")
    assert digits.training("cygrad")(3, 0) > 0.8


@pytest.mark.oracle
def test_the_digits_are_learnt_by_the_example_in_pytorch(rows):
    for module in ("torch", "sklearn", "matplotlib", "threadpoolctl", "tqdm"):
        pytest.importorskip(module, reason="compares with PyTorch (tox -e oracle)")
    digits = importlib.import_module("benchmarks.digits")
    assert digits.training("torch")(3, 0) > 0.8


def test_the_kept_figures_can_be_drawn(rows, tmp_path):
    pytest.importorskip("matplotlib")
    dots = importlib.import_module("benchmarks.dots")
    kept = dots.kept()
    table = {row["name"]: row for row in kept["main"]["rows"]}
    assert table["LeNet, batch 64, SGD step"] == {
        "name": "LeNet, batch 64, SGD step",
        "one thread each": 0.521,
        "two threads each": 0.475,
    }
    assert not any("nan_check" in name for name in table)  # whose rival is cygrad itself
    assert set(dots.series_of(kept["small"]["rows"])) == {"forward", "with gradient"}
    for name, figures in kept.items():
        drawn = []
        for _ in range(2):
            dots.draw(figures, tmp_path / f"{name}.svg")
            drawn.append((tmp_path / f"{name}.svg").read_bytes())
        assert drawn[0] == drawn[1]
        assert b"<svg" in drawn[0]
