"""`distributed.elastic` and `collective_utils`: what programs of launchers import."""

import json
import threading
from datetime import timedelta

import pytest

import cygrad.distributed as dist
from cygrad.distributed import collective_utils
from cygrad.distributed._fake import simulate
from cygrad.distributed.elastic import events, metrics, rendezvous, timer, utils
from cygrad.distributed.elastic.multiprocessing import Std, errors
from cygrad.distributed.elastic.utils import store as meeting
from cygrad.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from cygrad.distributed.elastic.utils.distributed import create_c10d_store
from cygrad.distributed.elastic.utils.logging import get_logger


def in_threads(count, function):
    """The results, or errors, of a function that as many threads call with their numbers."""
    results = [None] * count

    def call(rank):
        try:
            results[rank] = function(rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=call, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_processes_meet_by_a_store():
    store = dist.HashStore()
    found = in_threads(3, lambda rank: meeting.synchronize(store, f"of {rank}".encode(), rank, 3, "data", 30))
    assert found == [[b"of 0", b"of 1", b"of 2"]] * 3
    assert in_threads(3, lambda rank: meeting.barrier(store, 3, "here", 30)) == [None] * 3


def test_a_meeting_names_who_is_missing():
    store = dist.HashStore()
    found = in_threads(
        2, lambda rank: meeting.barrier(store, 3, "here", 0.3, rank, lambda rank: f"host{rank}", trace_timeout=0.05)
    )
    assert all(isinstance(error, dist.DistStoreError) for error in found)
    assert "missing_ranks=[host2]" in str(found[0])
    assert "missing_ranks=[[<check rank 0 (host0) for missing rank info>]]" in str(found[1])
    with pytest.raises(AssertionError, match="Tracing requires rank information"):
        meeting.barrier(store, 3, "here", 0.1, rank_tracing_decoder=str)


def test_stores_of_launchers():
    with pytest.raises(ValueError, match="server_port must be specified when world_size > 1"):
        create_c10d_store(True, "localhost", world_size=2)
    store = create_c10d_store(True, "localhost", timeout=20)
    assert meeting.synchronize(store, b"data", 0, 1, "data", 30) == [b"data"]
    assert store.timeout == timedelta(seconds=20)


def test_an_epoch_goes_on():
    samplers = [ElasticDistributedSampler(range(20), 3, rank, start_index=12) for rank in range(3)]
    found = sorted(index for sampler in samplers for index in sampler)
    assert set(found) == set(range(12, 20)) and len(found) == 9
    first = list(samplers[0])
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != first
    with pytest.raises(ValueError, match="Start index 20 should be less than dataset size 20"):
        ElasticDistributedSampler(range(20), 3, 0, start_index=20)
    empty = [[1], [], [], [2, 3]]
    assert list(CyclingIterator(4, lambda epoch: iter(empty[epoch]))) == [1, 2, 3]


def test_events_reach_the_console(capfd, monkeypatch):
    import logging
    import sys

    monkeypatch.setitem(events._HANDLERS, "console", logging.StreamHandler(sys.stderr))
    event = events.Event("saved", events.EventSource.AGENT, 3, {"step": 1})
    try:
        events.record(event, "console")
        events.record(event)
        assert json.loads(capfd.readouterr().err)["source"] == "AGENT"
    finally:
        logging.getLogger("torchelastic-events-console").handlers.clear()
    assert events.Event.deserialize(event) is event
    with pytest.raises(KeyError):
        events.record(event, "nowhere")


def test_metrics_of_functions():
    found = []

    class Kept(metrics.MetricHandler):
        def emit(self, metric_data):
            found.append((metric_data.group_name, metric_data.name, metric_data.value))

    metrics.configure(Kept(), "a group")

    @metrics.prof(group="a group")
    def divide(a, b):
        return a / b

    assert divide(1, 2) == 0.5
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    metrics.put_metric("images", 3, "another group")
    assert [name.rpartition("<locals>.")[2] for _, name, _ in found] == [
        "divide.success", "divide.duration.ms", "divide.failure", "divide.duration.ms",
    ]  # fmt: skip
    assert {group for group, *_ in found} == {"a group"} and found[0][2] == found[2][2] == 1


def test_times_are_told(monkeypatch):
    told = []

    class Client(timer.TimerClient):
        def acquire(self, scope_id, expiration_time):
            told.append((scope_id, expiration_time))

        def release(self, scope_id):
            told.append(scope_id)

    monkeypatch.setattr(timer, "_clients", [])
    with pytest.raises(RuntimeError, match="Configure timer client before using countdown timers."), timer.expires(1):
        pass
    timer.configure(Client())
    with pytest.raises(KeyError), timer.expires(60):
        raise KeyError
    assert told[0][0] == told[1] and told[1].rpartition("#")[0] == __file__


def test_a_table_of_failures(tmp_path):
    file = tmp_path / "error.json"
    message = {"message": "KeyError: 1", "extraInfo": {"py_callstack": "Traceback\nKeyError: 1", "timestamp": "1000"}}
    file.write_text(json.dumps({"message": message}))
    first, second = errors.ProcessFailure(0, 11, 1, str(file)), errors.ProcessFailure(1, 12, -9, "none")
    assert first.timestamp == 1000 and first.signal_name() == "<N/A>" and second.error_file == "<N/A>"
    error = errors.ChildFailedError("train.py", {4: second, 3: first})
    assert error.get_first_failure() == (3, first)
    text = str(error)
    others, _, root = text.partition("Root Cause (first observed failure):")
    assert "rank      : 4 (local_rank: 1)" in others and "Signal 9 (SIGKILL) received by PID 12" in others
    assert "rank      : 3 (local_rank: 0)" in root and "traceback : Traceback\n  KeyError: 1" in root


def test_errors_of_children_are_passed_on(tmp_path, monkeypatch):
    theirs, ours = tmp_path / "theirs.json", tmp_path / "ours.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(ours))
    theirs.write_text(json.dumps({"message": {"message": "KeyError: 1", "extraInfo": {"timestamp": "1000"}}}))

    @errors.record
    def main():
        raise errors.ChildFailedError("train.py", {0: errors.ProcessFailure(0, 11, 3, str(theirs))})

    with pytest.raises(errors.ChildFailedError):
        main()
    found = json.loads(ours.read_text())["message"]
    assert found["message"] == "KeyError: 1" and found["errorCode"] == 3


def test_streams_of_processes():
    assert Std.from_str("0:3,2:1") == {0: Std.ALL, 2: Std.OUT}
    for text in ("4", "0:4", "", "a"):
        with pytest.raises(ValueError, match="std stream value must match"):
            Std.from_str(text)


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [
        (None, ("localhost", 7)), ("host", ("host", 7)), ("host:80", ("host", 80)), ("[::1]:80", ("::1", 80)),
        ("[::1]", ("::1", 7)), (" 10.0.0.1:0 ", ("10.0.0.1", 0)),
    ],
)  # fmt: skip
def test_endpoints(endpoint, found):
    assert rendezvous.parse_rendezvous_endpoint(endpoint, 7) == found


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [("host:", "port number"), ("host:65536", "port number"), ("a b:80", "hostname"), (":80", "hostname")],
)
def test_no_endpoints(endpoint, text):
    with pytest.raises(ValueError, match=f"The {text} of the rendezvous endpoint"):
        rendezvous.parse_rendezvous_endpoint(endpoint, 7)


def test_ways_to_meet():
    class Files(rendezvous.RendezvousHandler):
        get_backend = get_run_id = lambda self: "files"
        next_rendezvous = is_closed = set_closed = num_nodes_waiting = shutdown = lambda self: None

    def make(parameters):
        return Files()

    registry = rendezvous.RendezvousHandlerRegistry()
    registry.register("files", make)
    registry.register("files", make)
    registry.register("others", make)
    assert isinstance(registry.create_handler(rendezvous.RendezvousParameters("files", "", "", 1, 1)), Files)
    with pytest.raises(ValueError, match="as it is already registered"):
        registry.register("files", Files)
    with pytest.raises(RuntimeError, match="'files' does not match the requested backend 'others'"):
        registry.create_handler(rendezvous.RendezvousParameters("others", "", "", 1, 1))
    given = rendezvous.RendezvousParameters("files", "", "", 1, 1, retries="three", verbose="perhaps")
    for read, text in ((given.get_as_int, "integer"), (given.get_as_bool, "boolean")):
        with pytest.raises(ValueError, match=f"does not represent a valid {text} value"):
            read("retries" if text == "integer" else "verbose")
    for limits in ((0, 1), (2, 1)):
        with pytest.raises(ValueError, match="number of rendezvous nodes"):
            rendezvous.RendezvousParameters("files", "", "", *limits)


def test_variables_and_loggers(monkeypatch):
    monkeypatch.setenv("OF_THIS_TEST", "set")
    assert utils.get_env_variable_or_raise("OF_THIS_TEST") == "set"
    assert get_logger().name == __name__
    monkeypatch.setenv("LOGLEVEL", "INFO")
    assert get_logger("of this test").level == 20


def test_results_for_all():
    def check():
        rank, group = dist.get_rank(), dist.group.WORLD
        assert collective_utils.broadcast(lambda: 10 + rank, rank=1, pg=group) == 11
        assert collective_utils.all_gather(lambda: 10 + rank, pg=group) == [10, 11, 12]
        with pytest.raises(RuntimeError, match="Rank 1 failed: stage loading: exception division by zero"):
            collective_utils.broadcast(lambda: 1 / 0, rank=1, pg=group, stage_name="loading")
        with pytest.raises(RuntimeError) as caught:
            collective_utils.all_gather(lambda: 1 / (rank - 2), pg=group)
        assert [each for each, _ in caught.value.args[1]] == [2]
        with pytest.raises(RuntimeError, match="Unexpected stage name received from rank 1: of 1"):
            collective_utils.all_gather(3, f"of {rank}", group)
        with pytest.raises(TypeError, match="Object type at index 2"):
            collective_utils.all_gather_object_enforce_type(group, [None] * 3, "text" if rank == 2 else rank)

    simulate(check, 3)


def test_devices_of_other_processes():
    from cygrad.distributed.remote_device import _remote_device

    for text, name, rank, device in (
        ("cpu", None, None, "cpu"), ("worker1", "worker1", None, "cpu"), ("worker1/cpu", "worker1", None, "cpu"),
        ("rank:1/cuda:0", None, 1, "cuda:0"),
    ):  # fmt: skip
        found = _remote_device(text)
        assert (found.worker_name(), found.rank(), str(found.device())) == (name, rank, device)
        assert found == _remote_device(repr(found))
    for text in ("a/b/cpu", "/cpu", "a:1/cpu", "rank:x/cpu"):
        with pytest.raises(ValueError, match="Could not parse remote_device"):
            _remote_device(text)
    with pytest.raises(TypeError, match="Invalid type for remote_device"):
        _remote_device(3)
