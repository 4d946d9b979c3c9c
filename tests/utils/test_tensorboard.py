"""Event files written by `SummaryWriter` can be read back."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad as torch
from cygrad.utils.tensorboard import SummaryWriter
from helpers import fails

pytest.importorskip("tensorboardX")


def summaries(directory):
    """Return {tag: value} from all event files in a directory tree."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for path in Path(directory).rglob("events.*"):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + length])
            data = data[16 + length :]
            found |= {value.tag: (event.step, value) for value in event.summary.value}
    return found


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


def test_what_there_is_not(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with fails(RuntimeError, "SummaryWriter.add_graph is not supported"):
            writer.add_graph(torch.nn.ReLU())
        with fails(AttributeError, "'SummaryWriter' object has no attribute 'add_smell'"):
            writer.add_smell("x", 1)


def test_without_tensorboardx():
    code = (
        "import sys; sys.modules['tensorboardX'] = None\n"
        "from cygrad.utils.tensorboard import SummaryWriter\nSummaryWriter('x')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: cygrad.utils.tensorboard.SummaryWriter needs the package tensorboardX" in ended.stderr
    assert "pip install cygrad[tensorboard]" in ended.stderr
