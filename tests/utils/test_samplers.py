"""Samplers, splits, and collation of samples into batches."""

import pytest

import cygrad as torch
from cygrad.utils.data import DataLoader, RandomSampler, default_collate


def test_random_sampler_seeds():
    sampler = RandomSampler(range(50))
    torch.manual_seed(0)
    first = list(sampler), list(sampler)
    torch.manual_seed(0)
    assert (list(sampler), list(sampler)) == first and first[0] != first[1]
    own = torch.Generator().manual_seed(1)
    before = torch.get_rng_state()
    assert list(RandomSampler(range(50), generator=own)) != list(RandomSampler(range(50), generator=own))
    assert torch.equal(torch.get_rng_state(), before)


def test_errors_of_samples_say_what_to_do():
    for samples in ([torch.ones(2), torch.ones(3)], [[1, 2], [1]]):
        with pytest.raises(RuntimeError, match="equal size(.|\\n)*`collate_fn` for samples of different lengths"):
            next(iter(DataLoader(samples, batch_size=2)))
    with pytest.raises(ValueError, match="got num_samples=0\\n  the dataset is empty"):
        DataLoader([], shuffle=True)
    assert list(DataLoader([])) == []


def test_random_split_warns_of_empty_parts():
    with pytest.warns(UserWarning, match="^Length of split at index 1 is 0. This might result in an empty dataset.$"):
        assert [len(part) for part in torch.utils.data.random_split(range(3), [0.9, 0.1])] == [3, 0]


def test_samples_of_other_types_are_collated_by_functions_of_the_caller(monkeypatch):
    from cygrad.utils.data._utils import collate

    def largest(batch, *, collate_fn_map):
        assert collate_fn_map
        return max(batch)

    batch = [{"x": {1, 2}, "y": 1.0}, {"x": {1}, "y": 2.0}]
    with pytest.raises(TypeError, match="found <class 'set'>"):
        default_collate(batch)
    monkeypatch.setitem(collate.default_collate_fn_map, set, lambda batch, *, collate_fn_map: list(map(len, batch)))
    found = default_collate(batch)
    assert found["x"] == [2, 1] and found["y"].equal(torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert collate.collate([(1, 3), (4, 2)], collate_fn_map={(int, float): largest}) == [4, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_may_be_endless(workers):
    sampler = RandomSampler(range(5), replacement=True, num_samples=10**12)
    loader = DataLoader(range(5), batch_size=8, sampler=sampler, num_workers=workers)
    batches = iter(loader)
    drawn = [i for _ in range(300) for i in next(batches).tolist()]
    assert len(loader) == 10**12 // 8 and set(drawn) == set(range(5))
    del batches


def test_indices_with_replacement_are_as_many_as_asked_for():
    for count in (1, 1024, 2500):
        drawn = list(RandomSampler(range(7), replacement=True, num_samples=count, generator=torch.Generator()))
        assert len(drawn) == count and set(drawn) <= set(range(7))
