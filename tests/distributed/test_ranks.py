"""Data parallel training in simulated worlds: ranks are threads."""

import pytest
from support import data_parallel_checks as checks
from support import sharding_checks

from cygrad.distributed._fake import simulate


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", checks.CHECKS)
def test_data_parallel(name, size):
    simulate(checks.CHECKS[name], size, timeout=30.0)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", sharding_checks.CHECKS)
def test_sharding(name, size):
    simulate(sharding_checks.CHECKS[name], size, timeout=30.0)


@pytest.mark.parametrize("shards", [4, 6, 8])
def test_the_same_bits_for_any_number_of_ranks(shards):
    results = [simulate(checks.weights_in_order, size, shards) for size in (1, 2, 3, 4)]
    assert all(each == results[0][0] for ranks in results for each in ranks)
