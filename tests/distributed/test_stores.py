"""Stores."""

import threading
from datetime import timedelta

import pytest

import cygrad.distributed as dist

SOON = timedelta(milliseconds=20)


@pytest.fixture(params=["hash", "file", "prefix", "tcp"])
def store(request, tmp_path):
    return {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(tmp_path / "store", 1),
        "prefix": lambda: dist.PrefixStore("part", dist.HashStore()),
        "tcp": lambda: dist.TCPStore("127.0.0.1", 0, 1, is_master=True),
    }[request.param]()


def test_values(store):
    store.set("a", "text")
    store.set("b", b"\x01")
    assert (store.get("a"), store.get("b")) == (b"text", b"\x01")
    assert (store.add("n", 3), store.add("n", 4), store.get("n")) == (3, 7, b"7")
    assert store.check(["a", "n"]) and not store.check(["a", "missing"])
    assert store.num_keys() == 3 and store.delete_key("a") and not store.delete_key("a") and store.num_keys() == 2
    assert [store.compare_set("k", *pair) for pair in (("", "1"), ("1", "2"), ("no", "3"))] == [b"1", b"2", b"2"]
    store.append("k", "x")
    store.multi_set(["p", "q"], ["1", "2"])
    assert store.get("k") == b"2x" and store.multi_get(["p", "q"]) == [b"1", b"2"]


def test_waiting(store):
    store.set_timeout(SOON)
    assert store.timeout == SOON
    error = RuntimeError if isinstance(store, dist.FileStore) else dist.DistStoreError  # as in PyTorch
    with pytest.raises(error, match="^Timeout waiting for key: missing after 20 ms|^[Ww]ait timeout"):
        store.get("missing")
    with pytest.raises(error, match="^[Ww]ait timeout"):
        store.wait(["missing"], SOON)
    store.set_timeout(timedelta(seconds=20))
    threading.Timer(0.05, store.set, ("late", "here")).start()
    assert store.get("late") == b"here"


def test_queues():
    store = dist.HashStore()
    store.queue_push("q", "a")
    store.queue_push("q", "b")
    assert (store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q")) == (2, b"a", b"b")
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", block=False)


def test_a_file_is_shared_by_those_who_open_it(tmp_path):
    first, second = (dist.FileStore(str(tmp_path / "store"), 2) for _ in range(2))
    first.set("a", "1")
    assert second.get("a") == b"1" and second.add("n", 1) == 1 and first.add("n", 1) == 2
    assert second.delete_key("a") and not first.check(["a"])


def test_a_client_finds_the_server_by_its_port():
    server = dist.TCPStore("127.0.0.1", 0, 1, is_master=True)
    client = dist.TCPStore("127.0.0.1", server.port, 1, is_master=False)
    server.set("a", "1")
    assert client.get("a") == b"1"
    with pytest.raises(dist.DistNetworkError, match="is_master=True"):
        dist.TCPStore("127.0.0.1", 1, 1, is_master=False)


def test_arguments_are_checked(store):
    for call in (
        lambda: store.set("k", 3), lambda: store.set(3, "k"), lambda: store.add("k", "1"), lambda: store.check("k"),
        lambda: store.wait(["k"], 3), lambda: store.set_timeout(None), lambda: store.compare_set("k", "1", 2),
        lambda: store.multi_set(["k"], [1]),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"^\w+\(\): incompatible function arguments"):
            call()
    store.set("word", "one")
    with pytest.raises(ValueError, match="^stoll"):
        store.add("word", 1)
    with pytest.raises(dist.DistStoreError, match="must be of same size"):
        store.multi_set(["a", "b"], ["1"])
    assert not store.check(["a"]) and store.get("word") == b"one"


def test_the_time_to_wait_is_that_of_the_whole_store():
    whole = dist.HashStore()
    part = dist.PrefixStore("a", dist.PrefixStore("b", whole))
    part.set_timeout(SOON)
    with pytest.raises(dist.DistStoreError, match="^Wait timeout"):
        part.wait(["missing"])
    assert whole.timeout == SOON
