"""Event files written by `SummaryWriter` can be read back."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from cygrad.utils.tensorboard import SummaryWriter
from helpers import fails

pytest.importorskip("tensorboardX")


def events(directory):
    """Yield the events of all event files in a directory tree."""
    from tensorboardX.proto.event_pb2 import Event

    for path in Path(directory).rglob("events.*"):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            yield Event.FromString(data[12 : 12 + length])
            data = data[16 + length :]


def summaries(directory):
    """Return {tag: value} from all event files in a directory tree."""
    return {value.tag: (event.step, value) for event in events(directory) for value in event.summary.value}


def nodes(directory):
    """Return {name: (op, inputs, shapes)} of the graph in the event files of a directory."""
    from tensorboardX.proto.graph_pb2 import GraphDef

    (found,) = [GraphDef.FromString(event.graph_def) for event in events(directory) if event.graph_def]

    def shapes(node):
        return [tuple(dim.size for dim in shape.dim) for shape in node.attr["_output_shapes"].list.shape]

    return {node.name: (node.op, list(node.input), shapes(node)) for node in found.node}


def test_what_is_written(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        assert writer.get_logdir() == writer.log_dir == tmp_path
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 3)
        writer.add_scalar("half", torch.tensor(1.5, dtype=torch.bfloat16), global_step=torch.tensor(4).item())
        writer.add_scalars("both", {"train": torch.tensor(2.0), "test": 3}, 1)
        writer.add_histogram("weights", torch.arange(100.0), 1)
        writer.add_image("image", torch.rand(3, 4, 5), 1)
        writer.add_images("images", torch.rand(2, 1, 4, 5), 1)
        writer.add_text("text", "hello", 1)
        writer.add_pr_curve("curve", torch.randint(0, 2, (20,)), torch.rand(20), 1)
        writer.add_mesh("mesh", torch.rand(1, 3, 3))
        writer.add_embedding(torch.rand(3, 2), metadata=["a", "b", "c"])
        writer.add_hparams({"lr": 0.1, "size": torch.tensor(3)}, {"accuracy": torch.tensor(0.25)}, run_name="run")
    found = summaries(tmp_path)
    assert found["loss"][0] == 3 and found["loss"][1].simple_value == 0.5
    assert found["half"][0] == 4 and found["half"][1].simple_value == 1.5
    assert summaries(tmp_path / "both" / "train")["both"][1].simple_value == 2
    assert found["weights"][1].histo.sum == 4950
    assert (found["image"][1].image.height, found["image"][1].image.width) == (4, 5)
    assert found["accuracy"][1].simple_value == 0.25
    assert any("mesh" in tag for tag in found) and (tmp_path / "projector_config.pbtxt").exists()


def test_figures(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    axes.plot(np.arange(3))
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("figure", figure)
    assert summaries(tmp_path)["figure"][1].image.height > 0


class Net(nn.Module):
    """A module with submodules, a buffer, an in-place op, a loop, and outputs in a dictionary."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.body = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))

    def forward(self, x, y):
        h = self.first(x)
        for _ in range(2):
            h = h + 1
        h[0] = 0
        return {"out": self.body(h), "turned": y.T, "number": 3}


def test_graph_of_a_module(tmp_path, capsys):
    net = Net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(net, (torch.ones(2, 3), torch.ones(2, 5)), verbose=True)
    assert "Net/Linear[first]/linear" in capsys.readouterr().out
    found = nodes(tmp_path)
    assert found["input/0"] == ("IO Node", [], [(2, 3)]) and found["input/1"] == ("IO Node", [], [(2, 5)])
    weights = [f"Net/Linear[first]/{name}" for name in ("weight", "bias")]
    assert found["Net/Linear[first]/linear"] == ("aten::linear", ["input/0", *weights], [(2, 4)])
    assert found[weights[0]] == ("Parameter", [], [(4, 3)])
    assert found["Net/Sequential[body]/BatchNorm1d[0]/running_var"] == ("Buffer", [], [(4,)])
    assert found["Net/add_1"][1] == ["Net/add"] and found["Net/setitem"][1] == ["Net/add_1"]
    assert found["Net/Sequential[body]/BatchNorm1d[0]/batch_norm"][1][0] == "Net/setitem"
    assert found["output/output"][1:] == (["Net/Sequential[body]/Linear[1]/linear"], [(2, 2)])
    assert found["output/output_1"][1] == ["Net/T"] and found["Net/T"] == ("aten::T", ["input/1"], [(5, 2)])
    assert all(each in found for _, inputs, _ in found.values() for each in inputs)
    # the module is as before
    assert net.training and all(before[name].equal(value) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


def test_module_that_fails_writes_no_graph(tmp_path):
    net = nn.Linear(3, 4)
    with SummaryWriter(tmp_path) as writer, pytest.raises(RuntimeError):
        writer.add_graph(net, torch.ones(2, 2))
    assert net.training and not net._forward_hooks
    assert not any(event.graph_def for event in events(tmp_path))


def test_what_there_is_not(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with fails(AttributeError, "'SummaryWriter' object has no attribute 'add_smell'"):
            writer.add_smell("x", 1)


def test_without_tensorboardx():
    code = (
        "import sys; sys.modules['tensorboardX'] = None\n"
        "from cygrad.utils.tensorboard import SummaryWriter\nSummaryWriter('x')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: cygrad.utils.tensorboard.SummaryWriter needs the package tensorboardX" in ended.stderr
    assert "pip install tensorboardX" in ended.stderr
