"""Files written by `save`: round trips, what other readers see, and invalid files."""

import errno
import io
import json
import math
import mmap as maps
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter, OrderedDict
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64".split()


def saved(value):
    """The bytes of a saved file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "x.safetensors")
        torch.save(value, path)
        return path.read_bytes()


def again(value, **options):
    """Save and load an object."""
    return torch.load(io.BytesIO(saved(value)), **options)


def header(content):
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def file_of(text, data=b""):
    """A file with that header, given as an object or as text."""
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape=(1,), begin=0, end=4, dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


# --- Tensors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 5), (2, 3, 4)])
def test_every_type_comes_back(dtype, shape, tmp_path):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = torch.randint(0, 2, shape).to(getattr(torch, dtype))
    torch.save({"x": x}, tmp_path / "x.safetensors")
    for found in (
        torch.load(tmp_path / "x.safetensors")["x"],
        torch.load(tmp_path / "x.safetensors", mmap=False)["x"],
        again({"x": x})["x"],
    ):
        assert found.dtype is x.dtype and found.shape == x.shape and torch.equal(found, x)


def test_a_file_that_can_not_be_copied_is_read_only(tmp_path, monkeypatch):
    """If a file is larger than the memory, the system refuses a copy-on-write mapping."""

    class Mapped(maps.mmap):
        def __new__(cls, *args, access):
            if access == maps.ACCESS_COPY:
                raise OSError(errno.ENOMEM, "Cannot allocate memory")
            return super().__new__(cls, *args, access=access)

    torch.save({"x": torch.ones(3)}, tmp_path / "x.safetensors")
    monkeypatch.setattr(maps, "mmap", Mapped)
    x = torch.load(tmp_path / "x.safetensors")["x"]
    assert x.sum() == 3
    with pytest.raises(RuntimeError, match="read-only"):
        x.fill_(2)


def test_strided_tensors_are_written_in_order():
    x = torch.arange(24.0).reshape(2, 3, 4)
    value = {"t": x.mT, "step": x[:, ::2], "expanded": torch.ones(1).expand(4), "flipped": x.flip(0)}
    found = again(value)
    assert all(torch.equal(found[name], value[name]) for name in value)


def test_order_of_names_and_alignment():
    pytest.importorskip("ml_dtypes")
    value = {name: torch.ones(3).to(getattr(torch, name)) for name in DTYPES}
    content = saved(value)
    assert list(torch.load(io.BytesIO(content))) == DTYPES
    first = 8 + int.from_bytes(content[:8], "little")
    assert first % 8 == 0
    for name, entry in header(content).items():
        if name != "__metadata__":
            assert (first + entry["data_offsets"][0]) % min(getattr(torch, name).itemsize, 8) == 0


def test_plain_state_dicts_have_no_structure():
    state = OrderedDict(a=torch.ones(2), b=torch.zeros(()))
    assert header(saved(state))["__metadata__"] == {"format": "pt"}
    assert type(again(state)) is dict
    assert again({}) == {}
    assert "cygrad" in header(saved({"__metadata__": torch.ones(1)}))["__metadata__"]


def test_the_file_stays_where_mapped_tensors_are_changed(tmp_path):
    path = tmp_path / "x.safetensors"
    torch.save({"weight": torch.ones(1, 3), "bias": torch.ones(1)}, path)
    for mmap in (None, True, False):
        state = torch.load(path, mmap=mmap)
        state["weight"].add_(1)
        state["bias"][0] = 5
        assert state["weight"].tolist() == [[2, 2, 2]] and state["bias"].item() == 5
    module = torch.nn.Linear(3, 1)
    module.load_state_dict(torch.load(path), assign=True)
    module(torch.ones(3)).backward()
    torch.optim.SGD(module.parameters(), 1.0).step()
    assert module.weight.tolist() == [[0, 0, 0]]
    assert torch.load(path)["weight"].tolist() == [[1, 1, 1]]


def test_a_replaced_file_lives_on_while_it_is_mapped(tmp_path):
    path = tmp_path / "x.safetensors"
    torch.save({"x": torch.ones(3)}, path)
    x = torch.load(path)["x"]
    torch.save({"x": torch.zeros(3)}, path)
    assert x.tolist() == [1, 1, 1]


def test_tensors_of_an_odd_place_are_aligned(tmp_path):
    content = file_of({"a": entry([1], 0, 1, "U8"), "b": entry([2], 1, 9)}, b"\7" + np.float32([1, 2]).tobytes())
    (tmp_path / "x.safetensors").write_bytes(content)
    found = torch.load(tmp_path / "x.safetensors")
    assert found["b"].tolist() == [1, 2] and found["b"].data_ptr() % 4 == 0
    assert found["b"].numpy().flags.writeable


# --- Other objects ---------------------------------------------------------------------------------------


def test_objects_come_back():
    value = {
        "numbers": [1, -(10**30), 1.5, math.inf, -math.inf, 1 + 2j, complex(0, -math.inf), True, None, 1e-320],
        "texts": ("x", "ü\0\n", b"\0\xff", bytearray(b"ab"), ""),
        "kinds": [torch.float32, torch.bfloat16, torch.device("cpu"), torch.Size([1, 2])],
        "containers": [[], (), {}, {1, "a"}, ((1,), [2]), {(1, "a"): 2, None: 3, 4.0: 5, "dict": {"list": []}}],
        3: {"tensor": "no tensor"},
    }
    found = again(value)
    assert found == value
    counts = Counter([3, 3, 5])
    assert again([counts]) == [counts] and type(again(counts)) is Counter
    assert [type(x) for x in found["kinds"]] == [type(x) for x in value["kinds"]]
    assert math.isnan(again(math.nan))
    assert again([np.float32(0.5), np.int64(3), np.float64(0.25)]) == [0.5, 3, 0.25]
    assert type(again(np.bool_(True))) is bool


def test_tensors_in_objects():
    p = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    x = torch.zeros(3, requires_grad=True)
    value = {"p": p, "list": [x, (frozen,)], "a": {"b": x * 2}, "a.b": torch.ones(1), "__metadata__": torch.ones(4)}
    content = saved(value)
    names = "__metadata__ p list.0 list.1.0 a.b a.b#2 __metadata__#2".split()
    assert list(header(content)) == names
    found = torch.load(io.BytesIO(content))
    assert list(found) == list(value)
    assert type(found["p"]) is torch.nn.Parameter and found["p"].requires_grad
    assert type(found["list"][1][0]) is torch.nn.Parameter and not found["list"][1][0].requires_grad
    assert type(found["list"][0]) is torch.Tensor and found["list"][0].requires_grad
    assert found["a"]["b"].is_leaf and found["a"]["b"].shape == (3,)
    assert again(torch.ones(2)).tolist() == [1, 1]


def test_a_run_goes_on_as_if_it_had_not_stopped(tmp_path):
    def make():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)

    def train(model, optimizer, schedule, epochs):
        for _ in range(epochs):
            optimizer.zero_grad()
            model(torch.rand(5, 3)).square().sum().backward()
            optimizer.step()
            schedule.step()

    whole = make()
    train(*whole, 6)
    part = make()
    train(*part, 3)
    checkpoint = {"states": [x.state_dict() for x in part], "rng": torch.get_rng_state(), "epoch": 3}
    torch.save(checkpoint, tmp_path / "run.safetensors")
    resumed, found = make(), torch.load(tmp_path / "run.safetensors")
    for x, state in zip(resumed, found["states"]):
        x.load_state_dict(state)
    torch.set_rng_state(found["rng"])
    assert found["states"][0]._metadata == checkpoint["states"][0]._metadata
    train(*resumed, 3)
    for a, b in zip(whole[0].parameters(), resumed[0].parameters()):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("value", "line", "cure"),
    [
        ({"a": {"m": torch.nn.ReLU()}}, "a cygrad.nn.modules.rectifiers.ReLU at 'a.m'", "state_dict"),
        ([np.ones(3)], "a numpy.ndarray at '0'", "torch.from_numpy"),
        (torch.Generator(), "a cygrad.Generator", "get_state"),
        ({"f": [len]}, "a builtins.builtin_function_or_method at 'f.0'", "pickle"),
    ],
)
def test_other_objects_are_refused(value, line, cure, tmp_path):
    with pytest.raises(TypeError, match=cure) as info:
        torch.save(value, tmp_path / "x.safetensors")
    assert str(info.value).startswith(f"cygrad.save does not save {line}\n")
    assert not os.listdir(tmp_path)


def test_what_the_format_lacks():
    with fails(TypeError, "tensor 'a.0' is of type torch.complex128, which the format safetensors lacks"):
        saved({"a": [torch.ones(2, dtype=torch.complex128)]})
    itself = {}
    itself["x"] = [itself]
    with fails(ValueError, "the object at 'x.0' contains itself, which cygrad cannot save"):
        saved(itself)
    deep = []
    for _ in range(150):
        deep = [deep]
    with fails(ValueError, "the object is nested more than 100 levels deep: at '0.0.0.0.0.0.0.0.0'..."):
        saved(deep)
    again(deep[0][0][0][0][0] and [1])


def test_arguments():
    with fails(AttributeError, "expected 'f' to be string, path, or a file-like object with a 'write' attribute"):
        torch.save({}, 5)
    with fails(
        RuntimeError,
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you...",
    ):
        again({}, map_location="cuda")
    assert again({"a": torch.ones(1)}, map_location=lambda storage, location: storage, weights_only=True)["a"] == 1


def test_files_that_can_only_be_read():
    class Plain:
        def __init__(self, content, shorter=0):
            stream = io.BytesIO(content)
            self.seek, self.tell = stream.seek, stream.tell
            self.read = lambda count=-1: stream.read(count - shorter if count == 12 else count)

    content = saved({"a": torch.arange(3.0)})
    assert torch.load(Plain(content))["a"].add_(1).tolist() == [1, 2, 3]
    line = "this file is damaged, or not a safetensors file: 12 bytes should follow, but there are 11"
    with fails(RuntimeError, line):
        torch.load(Plain(content, 1))


def test_several_objects_in_a_file():
    stream = io.BytesIO()
    for value in (torch.ones(3), {"a": 1}, [torch.zeros(2)]):
        stream.write(saved(value))
    stream.seek(0)
    assert torch.load(stream).sum() == 3
    assert torch.load(stream) == {"a": 1}
    assert torch.load(stream)[0].shape == (2,)
    with fails(EOFError, "Ran out of input"):
        torch.load(stream)


# --- Invalid files ---------------------------------------------------------------------------------------

WRONG = {
    "a header longer than the file": (10**6).to_bytes(8, "little") + b"{}",
    "a header of 2**63 bytes": (2**63).to_bytes(8, "little") + b"{}",
    "no JSON": file_of(b"{no}"),
    "no text": file_of(b'{"\xff": 1}'),
    "deep JSON": file_of(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "a number of too many digits": file_of(b'{"a":' + b"9" * 10_000 + b"}"),
    "a name twice": file_of(b'{"a":1,"a":1}'),
    "metadata that are no strings": file_of({"__metadata__": {"a": 1}}),
    "metadata that are no dictionary": file_of({"__metadata__": []}),
    "an entry that is none": file_of({"a": 3}),
    "an entry that lacks a shape": file_of({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4)),
    "an entry with more": file_of({"a": entry() | {"x": 1}}, bytes(4)),
    "an unknown type": file_of({"a": entry(dtype="F8_E4M3")}, bytes(4)),
    "a type that is no text": file_of({"a": entry(dtype=["F32"])}, bytes(4)),
    "a negative length": file_of({"a": entry([-1])}, bytes(4)),
    "negative lengths": file_of({"a": entry([-1, -1])}, bytes(4)),
    "a length that is no integer": file_of({"a": entry([1.0])}, bytes(4)),
    "a length that is a truth": file_of({"a": entry([True])}, bytes(4)),
    "a length past 64 bits": file_of({"a": entry([2**64], 0, 2**66)}, bytes(4)),
    "lengths past 64 bits": file_of({"a": entry([2**33, 2**33], 0, 2**68)}, bytes(4)),
    "an empty tensor past 64 bits": file_of({"a": entry([0, 2**62, 2**62], 0, 0)}),
    "too many dimensions": file_of({"a": entry([1] * 65)}, bytes(4)),
    "a place of one number": file_of({"a": entry() | {"data_offsets": [0]}}, bytes(4)),
    "a negative place": file_of({"a": entry([1], -4, 0)}, bytes(4)),
    "an end before the beginning": file_of({"a": entry([1], 4, 0)}, bytes(4)),
    "more bytes than elements": file_of({"a": entry([1], 0, 8)}, bytes(8)),
    "fewer bytes than elements": file_of({"a": entry([3], 0, 8)}, bytes(8)),
    "tensors that overlap": file_of({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, bytes(12)),
    "tensors of the same memory": file_of({"a": entry(), "b": entry()}, bytes(4)),
    "a gap": file_of({"a": entry(), "b": entry([1], 8, 12)}, bytes(12)),
    "a gap at the beginning": file_of({"a": entry([1], 4, 8)}, bytes(8)),
    "less memory than said": file_of({"a": entry([2], 0, 8)}, bytes(7)),
    "more memory than said": file_of({"a": entry([2], 0, 8)}, bytes(9)),
    "booleans that are neither": file_of({"a": entry([4], 0, 4, "BOOL")}, b"\0\1\2\1"),
    "a structure that is no JSON": file_of({"__metadata__": {"cygrad": "{"}}),
    "a structure without a version": file_of({"__metadata__": {"cygrad": "{}"}}),
    "a structure of a later version": file_of({"__metadata__": {"cygrad": '{"version": 2}'}}),
    **{
        f"the object {tree!r:.40}": file_of({"__metadata__": {"cygrad": f'{{"version": 1, "object": {tree}}}'}})
        for tree in (
            '{"tensor": "x"}',
            '{"tensor": []}',
            '{"parameter": {}}',
            '{"unknown": 1}',
            "{}",
            '{"dict": 3}',
            '{"dict": [[1]]}',
            '{"dict": [[[], 1]]}',
            '{"dict": [], "_metadata": 3}',
            '{"set": [[]]}',
            '{"float": []}',
            '{"float": "x"}',
            '{"complex": [1]}',
            '{"bytes": "0"}',
            '{"Size": ["a"]}',
            '{"dtype": "Tensor"}',
            '{"dtype": 3}',
            '{"device": "tpu"}',
            "[" * 5000 + "]" * 5000,
        )
    },
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_wrong_files(content, tmp_path):
    path = tmp_path / "wrong.safetensors"
    path.write_bytes(content)
    for mmap in (None, False):
        with pytest.raises(RuntimeError, match="wrong.safetensors"):
            torch.load(path, mmap=mmap)


def good():
    return saved({"w": torch.arange(6.0).reshape(2, 3), "mask": torch.tensor([True, False]), "epoch": 3})


def test_truncated_at_every_byte(tmp_path):
    content = good()
    for length in range(len(content)):
        (tmp_path / "x.safetensors").write_bytes(content[:length])
        for mmap in (None, False):
            with pytest.raises((RuntimeError, EOFError, UnpicklingError)):
                torch.load(tmp_path / "x.safetensors", mmap=mmap)


def test_changed_bytes():
    content, draw = good(), random.Random(0)
    refused = 0
    for _ in range(1500):
        wrong = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            wrong[draw.randrange(len(wrong))] = draw.choice((0, 0x22, 0x5B, 0x7B, 0x39, 0xFF, draw.randrange(256)))
        try:
            torch.load(io.BytesIO(bytes(wrong)))
        except (RuntimeError, UnpicklingError):
            refused += 1
    assert refused > 500


def test_bfloat16_without_its_package(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(file_of({"a": entry([2], 0, 4, "BF16")}, bytes(4)))
    code = (
        "import io, sys; sys.modules['ml_dtypes'] = None\n"
        "import cygrad as torch\n"
        "stream = io.BytesIO(); torch.save([torch.bfloat16], stream); stream.seek(0)\n"
        "assert torch.load(stream) == [torch.bfloat16]\n"
        "torch.load(sys.argv[1])"
    )
    ended = subprocess.run([sys.executable, "-c", code, tmp_path / "x.safetensors"], capture_output=True, text=True)
    assert ended.stderr.strip().split("\n")[-1].startswith("ImportError: torch.bfloat16 needs the package ml_dtypes")
