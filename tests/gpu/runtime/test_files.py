"""Files and state dicts across devices, on a GPU or the stand-in."""

import io

import numpy as np
import pytest
from serialization.archives import archive, storage, tensor

import cygrad as torch

FLOATS = np.arange(6, dtype=np.float32).tobytes()


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def from_pytorch(location="cuda:0"):
    """A file of two views of one storage: all of it, and every second element."""
    memory = storage("FloatStorage", "0", 6, location)
    return io.BytesIO(archive((tensor(memory, (2, 3), (3, 1)), tensor(memory, (3,), (2,))), {"0": FLOATS}))


def again(value, **how):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **how)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (None, "cuda:0"),
        ("cpu", "cpu"),
        ("cuda", "cuda:0"),
        (torch.device("cuda", 0), "cuda:0"),
        ({"cuda:0": "cpu"}, "cpu"),
        ({"cuda:1": "cpu"}, "cuda:0"),
        (lambda storage, location: None, "cuda:0"),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: storage.cpu(), "cpu"),
        (lambda storage, location: storage.cuda(), "cuda:0"),
    ],
)
def test_map_location(place, expected):
    whole, part = torch.load(from_pytorch(), map_location=place)
    assert str(whole.device) == str(part.device) == expected
    whole[0, 2] = 50
    assert part.tolist() == [0, 50, 4]  # they share memory after loading as well
    loaded = again({"a": torch.arange(3.0, device="cuda"), "b": torch.ones(2)}, map_location=place)
    assert str(loaded["a"].device) == expected
    assert loaded["a"].tolist() == [0, 1, 2]


def test_a_second_gpu(second):
    for place in (second, {"cuda:0": second}, lambda storage, location: storage.cuda(1)):
        assert str(torch.load(from_pytorch(), map_location=place)[1].device) == second
    moved = again([torch.ones(2, device="cuda"), torch.ones(2)], map_location={"cpu": second})
    assert [str(x.device) for x in moved] == ["cuda:0", second]
    x = torch.nn.Parameter(torch.ones(2, 3, device=second))
    for value in (x, {"x": x, "n": 3}):
        loaded = again(value)
        assert str((loaded if value is x else loaded["x"]).device) == second


def test_places_that_are_not_there():
    count = torch.cuda.device_count()
    line = (
        f"^Attempting to deserialize object on CUDA device 77 but torch.cuda.device_count\\(\\) is {count}. Please use"
    )
    for make in (
        lambda: torch.load(from_pytorch(), map_location="cuda:77"),
        lambda: torch.load(from_pytorch("cuda:77")),
    ):
        with pytest.raises(RuntimeError, match=line):
            make()
    with pytest.raises(RuntimeError, match="returned a int\n.*storage.cuda"):
        torch.load(from_pytorch(), map_location=lambda storage, location: 5)


def test_a_file_of_tensors_on_a_gpu_says_where_they_were(cupy, monkeypatch):
    file = io.BytesIO()
    torch.save({"w": torch.ones(2, device="cuda"), "b": torch.ones(1)}, file)
    monkeypatch.setattr("cygrad.cuda.is_available", lambda: False)
    file.seek(0)
    with pytest.raises(RuntimeError, match="^Attempting to deserialize object on a CUDA device but torch.cuda.is_a"):
        torch.load(file)
    file.seek(0)
    assert torch.load(file, map_location="cpu")["w"].tolist() == [1, 1]


def test_mapped_files_go_to_a_gpu(tmp_path):
    torch.save(torch.nn.Linear(3, 2).state_dict(), tmp_path / "model.safetensors")
    loaded = torch.load(tmp_path / "model.safetensors", map_location="cuda")
    assert all(value.is_cuda for value in loaded.values())
    loaded["weight"].add_(1)  # does not alias the file


def trained(place, optimizer, steps=2):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).to(place)
    stepper = optimizer(model.parameters())
    go_on(model, stepper, steps)
    return model, stepper


def go_on(model, stepper, steps):
    x = torch.linspace(-1, 1, 15).reshape(5, 3).to(next(model.parameters()).device)
    for _ in range(steps):
        stepper.zero_grad()
        (model(x) ** 3).sum().backward()
        stepper.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "RAdam", "ASGD", "Adagrad", "Adafactor", "RMSprop", "Rprop"])
@pytest.mark.parametrize(("source", "target"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_state_dicts_cross_devices(name, source, target):
    options = {"momentum": 0.9} if name == "SGD" else {}

    def optimizer(parameters):
        return getattr(torch.optim, name)(parameters, lr=0.05, **options)

    expected, _ = trained(source, optimizer, 4)
    model, stepper = trained(source, optimizer)
    held = again({"model": model.state_dict(), "optimizer": stepper.state_dict()})
    other, other_stepper = trained(target, optimizer, 1)
    other.load_state_dict(held["model"])
    other_stepper.load_state_dict(held["optimizer"])
    for parameter, state in other_stepper.state.items():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                assert value.device == parameter.device or value.ndim == 0, key
    go_on(other, other_stepper, 2)
    for a, b in zip(other.state_dict().values(), expected.state_dict().values(), strict=True):
        assert a.device.type == target
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), 1e-4, 1e-5)


def test_steps_that_are_counted_on_the_gpu_stay_there():
    def optimizer(parameters):
        return torch.optim.Adam(parameters, lr=0.05, capturable=True)

    expected, _ = trained("cuda", optimizer, 4)
    model, stepper = trained("cuda", optimizer)
    held = again({"model": model.state_dict(), "optimizer": stepper.state_dict()}, map_location="cpu")
    other, other_stepper = trained("cuda", optimizer, 1)
    other.load_state_dict(held["model"])
    other_stepper.load_state_dict(held["optimizer"])
    assert all(state["step"].is_cuda for state in other_stepper.state.values())
    go_on(other, other_stepper, 2)
    for a, b in zip(other.parameters(), expected.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), 1e-4, 1e-5)


def test_assigned_state_is_where_it_was():
    model = torch.nn.Linear(2, 2)
    model.load_state_dict({key: value.cuda() for key, value in model.state_dict().items()}, assign=True)
    assert model.weight.is_cuda
