"""Files of traced modules and functions: they load without the model's code, and damaged ones do no harm."""

import io
import json
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.export._programs.files import from_text, to_text

DAMAGED = (RuntimeError, ValueError, pickle.UnpicklingError, EOFError)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = self.tied = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("shift", torch.ones(2), persistent=False)

    def forward(self, x, y):
        z = self.norm(self.linear(x)) + self.tied(x)[:, [1, 0]] / x.size(0)
        return (z.view(x.size(0), -1) + self.shift).clamp(max=float("inf")).to(torch.float64), y[..., ::2]


def traced():
    model = Model().eval()
    model.linear.bias.requires_grad_(False)
    return model, torch.jit.trace(model, (torch.randn(2, 3), torch.randn(2, 4)))


def saved(value, **options):
    stream = io.BytesIO()
    torch.jit.save(value, stream, **options)
    return stream.getvalue()


def test_module():
    model, program = traced()
    extra = {"note": "", "missing": "kept"}
    loaded = torch.jit.load(io.BytesIO(saved(program, _extra_files={"note": "text"})), _extra_files=extra)
    assert extra == {"note": b"text", "missing": "kept"}
    assert type(loaded).__name__ == "RecursiveScriptModule" and isinstance(loaded, torch.jit.RecursiveScriptModule)
    args = torch.randn(5, 3), torch.randn(5, 4)
    assert all(a.equal(b) for a, b in zip(loaded(*args), model(*args)))
    assert list(loaded.state_dict()) == list(model.state_dict()) and loaded.tied.weight is loaded.linear.weight
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in model.parameters()]
    assert not loaded.training and not loaded.norm.training and loaded.original_name == "Model"
    loaded(*args)[0].sum().backward()
    assert loaded.linear.weight.grad is not None
    assert loaded.code == program.code
    again = torch.jit.load(io.BytesIO(saved(loaded)))
    assert all(a.equal(b) for a, b in zip(again(*args), model(*args)))


def test_function_and_paths(tmp_path):
    path = tmp_path / "f.pt"
    torch.jit.trace(lambda x: x * 2 + torch.ones(1), torch.ones(2)).save(path)
    assert torch.jit.load(path, map_location="cpu")(torch.ones(3)).tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match="The provided filename .*nothing.pt does not exist"):
        torch.jit.load(tmp_path / "nothing.pt")
    with pytest.raises(ValueError, match="is a directory"):
        torch.jit.load(tmp_path)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'save'"):
        torch.jit.save(3, path)
    with pytest.raises(RuntimeError, match="torch.jit.trace records a program"):
        torch.jit.save(torch.jit.script(nn.Linear(1, 1)), path)
    with pytest.raises(RuntimeError, match="cannot be saved using torch.save"):
        torch.save(traced()[1], io.BytesIO())
    torch.save({"a": torch.ones(1)}, path)
    with pytest.raises(RuntimeError, match="the file holds no program\n"):
        torch.jit.load(path)


def test_loading_needs_no_code_of_the_model(tmp_path):
    model, program = traced()
    program.save(tmp_path / "m.pt")
    code = (
        "import sys, cygrad as torch; m = torch.jit.load(sys.argv[1]); assert '__main__' not in str(type(m)); "
        "print(m(torch.ones(1, 3), torch.ones(1, 4))[0].tolist())"
    )
    root = Path(torch.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "m.pt"], capture_output=True, text=True, cwd=root, check=True
    )
    assert json.loads(done.stdout) == model(torch.ones(1, 3), torch.ones(1, 4))[0].tolist()


def plain():
    program = torch.jit.trace(lambda x: x.view(x.size(0), -1)[:, 0:2] * 2.5, torch.ones(2, 3))._program
    return json.loads(to_text(program))


def with_call(*call):
    content = plain()
    content["calls"][0] = list(call)
    return content


CALL = ["add", {"tuple": [{"tensor": "x"}, 1]}, {"dict": []}, [[[], "view"]], ""]


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"name": "f"},
        {**plain(), "name": "f(); import os"},
        {**plain(), "output": {"tensor": "nothing"}},
        {**plain(), "output": {"import": "os"}},
        {**plain(), "parameters": [["x", {"tensor": "self.x"}]]},
        with_call("os.system", *CALL[1:]),
        with_call("load", *CALL[1:]),
        with_call("save", *CALL[1:]),
        with_call("from_file", *CALL[1:]),
        with_call("Tensor.apply_", *CALL[1:]),
        with_call("Tensor.__reduce_ex__", *CALL[1:]),
        with_call("Tensor.__class__", *CALL[1:]),
        with_call("hub.load", *CALL[1:]),
        with_call(["add"], *CALL[1:]),
        with_call("add", {"tuple": [{"tensor": "later"}]}, *CALL[2:]),
        with_call("add", [{"tensor": "x"}], *CALL[2:]),
        with_call("add", {"tuple": [{"dtype": "torch.nothing"}]}, *CALL[2:]),
        with_call("add", {"tuple": [{"device": "nowhere"}]}, *CALL[2:]),
        with_call("add", {"tuple": [{"size": [[[1, [["x", "0"]]]], 1, 1]}]}, *CALL[2:]),
        with_call("add", CALL[1], {"dict": [[1.5, 2]]}, *CALL[3:]),
        with_call(*CALL[:3], [[[], "self.weight"]], ""),
        with_call(*CALL[:4]),
    ],
)
def test_text_that_is_no_program(content):
    from_text(json.dumps(plain()), {}, set())
    with pytest.raises(RuntimeError, match="the file holds no program that can be run"):
        from_text(json.dumps(content), {}, set())


def test_deep_text():
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(RuntimeError, match="the file holds no program that can be run"):
        from_text(deep, {}, set())


def test_changed_programs_raise_or_run():
    text, draw = json.dumps(plain()), random.Random(1)
    loaded = 0
    for _ in range(2000):
        new = list(text)
        for _ in range(draw.randint(1, 3)):
            new[draw.randrange(len(new))] = draw.choice(text)
        try:
            program = from_text("".join(new), {}, set())
        except RuntimeError:
            continue
        loaded += 1
        try:
            program.run((torch.ones(2, 3),), {}, {}.__getitem__)
        except Exception as error:
            assert not isinstance(error, (SystemError, MemoryError)), "".join(new)
    assert loaded > 10


def test_changed_files_raise():
    content, draw = saved(traced()[1]), random.Random(2)
    for _ in range(300):
        new = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            new[draw.randrange(len(new))] = draw.randrange(256)
        try:
            torch.jit.load(io.BytesIO(bytes(new)))
        except DAMAGED:
            pass
