"""Tasks and actors of Ray, and tasks of Dask: what travels there and back. `tox -e schedulers` installs both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scheduler_tasks import Learner, Run, changes_what_is_needed, drawn, lacks_a_gradient, trained, warned

import cygrad as torch
from cygrad import nn
from cygrad.errors import AutogradError, ChangedInPlaceError, NoGradientError

pytestmark = [
    pytest.mark.slow,  # they start programs of their own
    pytest.mark.leaks_ok("what travels is kept for the workers"),
    pytest.mark.filterwarnings("ignore"),  # those of Ray and Dask; the workers' own are errors nowhere
]
PATHS = os.pathsep.join([str(Path(torch.__file__).parents[1]), str(Path(__file__).resolve().parents[1] / "support")])


def made():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(200, 300), nn.BatchNorm1d(300), nn.Linear(300, 4))
    return (model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)), torch.randn(64, 200)


def same(ours, expected):
    for a, b in zip(ours.state_dict().values(), expected.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)  # products may be divided among threads in other ways


# --- Ray ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    module = pytest.importorskip("ray")
    variables = {"PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    module.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": variables},
        _temp_dir=str(tmp_path_factory.mktemp("ray")),
    )  # fmt: skip
    yield module
    module.shutdown()


def test_a_module_and_its_optimizer_train_in_a_task(ray):
    pair, x = made()
    task = ray.remote(trained)
    arrived = ray.get(task.remote(pair, x))
    expected = trained(pair, x)
    same(arrived[0], expected[0])
    again = ray.get(task.remote(ray.put(arrived), ray.put(x)))  # what came back goes on, there and here
    same(again[0], trained(expected, x)[0])
    same(trained(again, x)[0], trained(expected, x)[0])


def test_an_optimizer_that_travels_alone_is_warned_of(ray):
    (model, optimizer), x = made()
    texts = ray.get(ray.remote(warned).remote(model, optimizer, x))
    assert len(texts) == 1 and texts[0].startswith("SGD.step() has changed nothing"), texts


def test_errors_arrive_as_themselves(ray):
    with pytest.raises(NoGradientError, match="element 0 of tensors does not require grad"):
        ray.get(ray.remote(lacks_a_gradient).remote())
    with pytest.raises(AutogradError) as caught:
        ray.get(ray.remote(changes_what_is_needed).remote())
    assert isinstance(caught.value, ChangedInPlaceError) and type(caught.value.cause) is ChangedInPlaceError
    assert "scheduler_tasks.py:" in str(caught.value.cause)  # the line of the task


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_tensors_are_not_copied(ray, dtype):
    reference = ray.put(torch.ones(300_000).to(dtype))
    first, second = ray.get(reference), ray.get(reference)
    assert first.data_ptr() == second.data_ptr() and first.dtype == dtype
    with pytest.raises(torch.errors.ReadOnlyError, match="one that Ray or Dask shares"):
        first.zero_()
    assert second.all()


def test_actors(ray):
    (model, _), x = made()
    actor = ray.remote(Learner).remote(model)
    here = Learner(model)
    for _ in range(3):
        loss, gradients = ray.get(actor.step.remote(x))
        expected, _ = here.step(x)
        torch.testing.assert_close(loss, expected)
        assert [g.shape for g in gradients] == [p.shape for p in model.parameters()]
    state = ray.get(actor.state.remote())
    other = made()[0][0]
    other.load_state_dict(state)
    same(other, model)
    trained((other, torch.optim.SGD(other.parameters())), x)  # loading has copied what is read-only
    with pytest.raises(ChangedInPlaceError):
        ray.get(actor.fail.remote())


def test_generators(ray):
    generator = torch.Generator().manual_seed(5)
    values, advanced = ray.get(ray.remote(drawn).remote(generator))
    assert values.equal(torch.randn(3, generator=generator))
    assert torch.randn(2, generator=advanced).equal(torch.randn(2, generator=generator))


# --- Dask -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dask():
    pytest.importorskip("dask")  # without it, `distributed` could be found as this folder
    distributed = pytest.importorskip("distributed")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = PATHS
    try:
        with (
            distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def test_dask(dask):
    pair, x = made()
    run = Run(pair)
    arrived = dask.submit(Run.go_on, run, x).result()
    same(arrived.model, run.go_on(x).model)
    same(arrived.go_on(x).model, run.go_on(x).model)
    scattered = dask.scatter(torch.ones(300_000))
    assert dask.submit(torch.sum, scattered).result() == 300_000
    with pytest.raises(NoGradientError):
        dask.submit(lacks_a_gradient).result()
    with pytest.raises(ChangedInPlaceError):
        dask.submit(changes_what_is_needed).result()


# --- The example ----------------------------------------------------------------------------------


def test_the_sweep_gives_the_same_on_ray_and_on_dask(tmp_path):
    pytest.importorskip("ray")
    pytest.importorskip("dask")  # without it, `distributed` could be found as this folder
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("sklearn")
    example = Path(__file__).resolve().parents[2] / "examples" / "sweep.py"
    environment = {**os.environ, "PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def run(*options):
        line = [
            sys.executable,
            str(example),
            "--trials",
            "4",
            "--rounds",
            "2",
            "--jobs",
            "2",
            "--out",
            str(tmp_path),
            *options,
        ]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        *lines, picture = done.stdout.splitlines()
        assert picture == f"wrote {tmp_path / 'sweep.png'}"
        return [line.split(" in ")[0] + line.split(";")[-1] for line in lines]

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = PATHS
    try:
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            results = [run(), run("--scheduler", "ray"), run("--scheduler", cluster.scheduler_address)]
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)
    assert results[0][-1].startswith("the best: ") and results[0] == results[1] == results[2], results
