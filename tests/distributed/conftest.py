"""A group of one process, made for each test that asks for it."""

import pytest

import cygrad.distributed as dist


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture(autouse=True)
def no_group_is_left():
    yield
    assert not dist.is_initialized()
