"""Round trips through PyTorch's zip format: tensors and their memory, modules, and whatever else can be pickled."""

import argparse
import datetime
import io
import mmap
import os
import pickle
import random
import zipfile
from collections import Counter, OrderedDict, defaultdict, namedtuple
from pathlib import Path

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
FORMATS = [{}, {"_use_new_zipfile_serialization": False}]


def saved(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    return stream.getvalue()


def again(value, how=None, **options):
    return torch.load(io.BytesIO(saved(value, **(how or {}))), **options)


def records(content):
    return {name.partition("/")[2]: size for name, size in sizes(content).items()}


def sizes(content):
    return {entry.filename: entry.file_size for entry in zipfile.ZipFile(io.BytesIO(content)).infolist()}


# --- Tensors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 5), (2, 3, 4)])
def test_every_type_comes_back(dtype, shape, how):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = torch.randint(0, 2, shape).to(getattr(torch, dtype))
    found = again(x, how)
    assert found.dtype is x.dtype and found.shape == x.shape and found.stride() == x.stride() and torch.equal(found, x)


@pytest.mark.parametrize("how", FORMATS)
def test_shared_memory_stays_shared_and_is_written_once(how):
    x = torch.arange(6.0)
    value = {"all": x, "part": x[2:4], "turned": x.view(2, 3).T, "same": x, "wide": x[:1].expand(3)}
    found = again(value, how)
    assert found["same"] is found["all"]
    found["all"].mul_(10)
    assert found["part"].tolist() == [20, 30] and found["turned"].tolist() == [[0, 30], [10, 40], [20, 50]]
    assert found["wide"].tolist() == [0, 0, 0] and found["wide"].stride() == (0,)
    if not how:
        assert [size for name, size in records(saved(value)).items() if name.startswith("data/")] == [24]


def test_views_that_lost_their_base_share_memory_too():
    x = torch.arange(100.0)
    parts = [x[k : k + 2].detach() for k in (90, 0, 50, 51, 49, 98, 3)]
    content = saved(parts)
    found = torch.load(io.BytesIO(content))
    assert [part.tolist() for part in found] == [part.tolist() for part in parts]
    found[2].fill_(-1)
    assert found[3].tolist() == [-1, 52] and found[4].tolist() == [49, -1]
    sizes = [size for name, size in records(content).items() if name.startswith("data/")]
    assert sizes == [x.nbytes]  # once, and whole, as in PyTorch


def test_many_views_without_a_base():
    x = torch.arange(3000.0)
    parts = [x[k : k + 1].detach() for k in range(3000)]
    random.Random(0).shuffle(parts)
    assert [part.item() for part in again(parts)] == [part.item() for part in parts]


def test_a_part_of_an_array_is_written_without_the_rest():
    content = saved(torch.from_numpy(np.arange(1000.0)[10:20]))
    assert records(content)["data/0"] == 80


def test_memory_with_gaps_is_written_without_them():
    grid = torch.from_numpy(np.arange(24.0).reshape(4, 6)[:, ::2])
    content = saved([grid, grid[1:]])
    assert [x.tolist() for x in torch.load(io.BytesIO(content))] == [grid.tolist(), grid[1:].tolist()]
    assert sum(size for name, size in records(content).items() if name.startswith("data/")) <= 2 * grid.nbytes


def test_arrays_in_the_order_of_fortran():
    x = torch.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    found = again(x)
    assert found.tolist() == x.tolist() and found.stride() == x.stride() == (1, 2)


@pytest.mark.parametrize("how", FORMATS)
def test_what_tensors_are(how):
    z = torch.tensor([1 + 2j])
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.mark = "a"
    plain = torch.ones(1)
    plain.mark = [1]
    value = {
        "conj": z.conj(),
        "neg": torch.tensor([1 + 2j]).conj().imag,
        "leaf": torch.ones(2, requires_grad=True),
        "result": torch.ones(2, requires_grad=True) * 2,
        "parameter": parameter,
        "marked": plain,
        "buffer": torch.nn.Buffer(torch.ones(1), persistent=False),
        "meta": torch.ones(2, 3, device="meta").T,
    }
    found = again(value, how)
    assert found["conj"].is_conj() and found["conj"].item() == 1 - 2j
    assert found["neg"].is_neg() and found["neg"].item() == -2
    assert found["leaf"].requires_grad and found["result"].requires_grad and found["result"].is_leaf
    assert type(found["parameter"]) is torch.nn.Parameter and not found["parameter"].requires_grad
    assert found["parameter"].mark == "a" and found["marked"].mark == [1]
    assert type(found["buffer"]) is torch.nn.Buffer and found["buffer"].persistent is False
    assert found["meta"].is_meta and found["meta"].shape == (3, 2) and found["meta"].stride() == (1, 3)


class Named(torch.Tensor):
    """A tensor with a slot."""

    __slots__ = ("name",)


class Owned(torch.Tensor):
    """A tensor that decides on its state."""

    def __getstate__(self):
        return {"owner": "me"}

    def __setstate__(self, state):
        self.owner = state["owner"]


def test_tensors_of_other_classes():
    x = torch.ones(2).as_subclass(Named)
    x.name = "x"
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL test_saving.Named was not an allowed|test_saving.Named"):
        again(x)
    for found in (again(x, weights_only=False), allowed(x, [Named])):
        assert type(found) is Named and found.name == "x" and found.tolist() == [1, 1]
    found = again(torch.ones(1).as_subclass(Owned), weights_only=False)
    assert type(found) is Owned and found.owner == "me"


def test_hooks_on_tensors_are_lost_with_a_warning():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="backward hook <built-in function print> on tensor will not be serialized"):
        saved(x)


def test_types_that_disagree():
    x = torch.ones(2)
    with fails(RuntimeError, "Cannot save multiple tensors or storages that view the same data as different types"):
        saved([x, x.view(torch.int32)])
    assert again(x.view(torch.int32)).tolist() == [0x3F800000] * 2


def test_storages():
    x = torch.arange(4, dtype=torch.int16)
    typed, untyped = again([x._typed_storage(), torch.ones(2).untyped_storage()])
    assert typed.tolist() == [0, 1, 2, 3] and typed.dtype is torch.int16 and type(typed) is torch.TypedStorage
    assert bytes(untyped.tolist()) == np.ones(2, "<f4").tobytes()
    both = again([x, x._typed_storage()])
    both[0].fill_(7)
    assert both[1].tolist() == [7] * 4
    assert again(x._typed_storage()[1:3]).tolist() == [1, 2]


# --- Other objects ---------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


class Config:
    """An object of the program."""

    def __init__(self, **values):
        vars(self).update(values)

    def __eq__(self, other):
        return vars(self) == vars(other)

    __hash__ = None


def objects():
    return {
        "args": argparse.Namespace(lr=0.1, path=Path("a/b")),
        "numpy": [np.arange(6.0).reshape(2, 3), np.float32(0.5), np.int64(3), np.dtype("f4")],
        "dates": [datetime.datetime(2024, 2, 29, 12), datetime.timedelta(3)],
        "python": [Point(1, 2), defaultdict(list, a=[1]), Counter("aab"), {1, 2}, frozenset([3]), 1j, b"\0", 10**40],
        "rng": [random.Random(0).getstate(), torch.get_rng_state(), np.random.RandomState(0).get_state()],
        "classes": [Config, torch.nn.Linear, torch.optim.Adam, len, torch.relu, torch.nn.functional.gelu],
        "own": Config(a=1, b=[2]),
        "torch": [torch.float16, torch.device("cuda:1"), torch.Size([1]), torch.strided, torch.channels_last],
        "result": torch.max(torch.ones(2, 2), 0),
    }


def same(a, b):
    if isinstance(b, (np.ndarray, torch.Tensor)):
        return type(a) is type(b) and a.dtype == b.dtype and bool((a == b).all())
    if isinstance(b, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in b)
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("how", [*FORMATS, *({"pickle_protocol": protocol} for protocol in (1, 3, 4, 5))])
def test_whatever_can_be_pickled(how):
    value = objects()
    found = again(value, how, weights_only=False)
    for name in value:
        assert same(found[name], value[name]), name


def test_objects_that_contain_themselves():
    knot = [torch.ones(1)]
    knot.append({"knot": knot})
    found = again(knot, weights_only=False)
    assert found[1]["knot"] is found
    assert again(knot)[1]["knot"][0].item() == 1


def test_generators():
    generator = torch.Generator().manual_seed(7)
    torch.rand(3, generator=generator)
    found = again(generator, weights_only=False)
    assert torch.rand(2, generator=found).tolist() == torch.rand(2, generator=generator).tolist()


def test_state_dicts_keep_their_metadata():
    state = torch.nn.Sequential(torch.nn.BatchNorm1d(2)).state_dict()
    found = again(state)
    assert type(found) is OrderedDict and found._metadata == state._metadata
    assert all(torch.equal(found[name], state[name]) for name in state)


class Net(torch.nn.Module):
    """A module of the program, with tied weights."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.LSTM(3, 3, batch_first=True)
        self.out = torch.nn.Linear(3, 3)
        self.tied = torch.nn.Linear(3, 3)
        self.tied.weight = self.out.weight
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        return self.tied(self.out(self.inner(x)[0]))


def doubled(module, args, output):
    return output * 2


@pytest.mark.parametrize("how", FORMATS)
def test_whole_modules(how):
    model = Net().eval()
    model.register_forward_hook(doubled)
    found = again(model, how, weights_only=False)
    assert type(found) is Net and not found.training and found.tied.weight is found.out.weight
    x = torch.ones(1, 2, 3)
    assert torch.equal(found(x), model(x))
    found._forward_hooks.clear()
    assert torch.equal(found(x) * 2, model(x))
    with pytest.raises(pickle.UnpicklingError, match="^Weights only load failed. This file can still be loaded"):
        again(model, how)


def shifted(module, args, kwargs):
    return (args[0] + 1,), kwargs


def renamed(module, state_dict, prefix, *rest):
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")


def test_hooks_come_along():
    layer = torch.nn.Linear(1, 1, bias=False)
    layer.register_forward_pre_hook(shifted, with_kwargs=True)
    layer.register_forward_hook(doubled, always_call=True)
    layer.register_load_state_dict_pre_hook(renamed)
    found = again(layer, weights_only=False)
    assert type(found._forward_hooks) is type(layer._forward_hooks)
    found.load_state_dict({"w": torch.full((1, 1), 3.0)})
    assert found(torch.ones(1, 1)).item() == 12
    assert layer(torch.ones(1, 1)).item() != 12


def test_lazy_layers():
    model = torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.LazyConv1d(2, 1))
    found = again(model, weights_only=False)
    assert type(found[0].weight) is torch.nn.UninitializedParameter
    assert found(torch.ones(2, 3, 4)).shape == (2, 2, 2) and type(found[1]) is torch.nn.Conv1d


@pytest.mark.parametrize(
    ("own", "name"),
    [
        (torch.nn.ReLU, "torch.nn.modules.activation.ReLU"),
        (torch.optim.AdamW, "torch.optim.adamw.AdamW"),
        (torch.optim.lr_scheduler.StepLR, "torch.optim.lr_scheduler.StepLR"),
        (torch.distributions.Normal, "torch.distributions.normal.Normal"),
        (torch.Generator, "torch._C.Generator"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch.Size, "torch.Size"),
    ],
)
def test_files_contain_the_names_of_pytorch(own, name):
    module, _, last = name.rpartition(".")
    content = saved(own)
    assert f"c{module}\n{last}\n".encode() in content
    assert torch.load(io.BytesIO(content), weights_only=False) is own
    with torch.serialization.safe_globals([own]):
        assert torch.load(io.BytesIO(content)) is own


def test_modules_and_optimizers_stay_connected():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).backward()
    optimizer.step()
    found, stepper = again((model, optimizer), weights_only=False)
    assert stepper.param_groups[0]["params"][0] is found.weight
    assert torch.equal(stepper.state[found.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"])


def test_other_pickle_modules():
    cloudpickle = pytest.importorskip("cloudpickle")
    square = lambda x: x * x  # noqa: E731
    found = again([square, torch.ones(2), torch.nn.Linear(2, 2)], {"pickle_module": cloudpickle}, weights_only=False)
    assert found[0](3) == 9 and found[1].tolist() == [1, 1] and type(found[2]) is torch.nn.Linear


# --- Files -----------------------------------------------------------------------------------------------


def test_the_ending_decides_on_the_format(tmp_path):
    for name, beginning in (("x.pt", b"PK\3\4"), ("x", b"PK\3\4"), ("x.ckpt", b"PK"), ("x.safetensors", None)):
        torch.save({"w": torch.ones(2)}, tmp_path / name)
        content = (tmp_path / name).read_bytes()
        assert content.startswith(beginning) if beginning else content[8:9] == b"{"
        assert torch.load(tmp_path / name)["w"].tolist() == [1, 1]


def test_memory_begins_at_multiples_of_64(tmp_path):
    content = saved([torch.ones(3), torch.ones(5, dtype=torch.int8), torch.ones(7, dtype=torch.float64)])
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.testzip() is None
        for entry in file.infolist():
            head = content[entry.header_offset :]
            start = entry.header_offset + 30 + sum(int.from_bytes(head[k : k + 2], "little") for k in (26, 28))
            assert start % 64 == 0


def test_mapped_files(tmp_path):
    path = tmp_path / "x.pt"
    x = torch.arange(6.0)
    torch.save([x, x[2:]], path)
    found = torch.load(path, mmap=True)
    found[0].add_(1)
    assert found[1].tolist() == [3, 4, 5, 6] and torch.load(path)[0].tolist() == x.tolist()


def test_changes_of_shared_mappings_reach_the_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(3), path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True).fill_(2)
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path, mmap=True).tolist() == [2, 2, 2]
    with fails(
        ValueError,
        "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
        "mmap.MAP_SHARED, but got 77",
    ):
        torch.serialization.set_default_mmap_options(77)


def test_the_old_format_is_not_mapped(tmp_path):
    torch.save(torch.ones(2), tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="^mmap can only be used with files saved with `torch.save"):
        torch.load(tmp_path / "x.pt", mmap=True)


def test_several_objects_of_the_old_format_in_a_file():
    stream = io.BytesIO()
    for value in (torch.ones(3), {"a": 1}, [torch.zeros(2)]):
        torch.save(value, stream, _use_new_zipfile_serialization=False)
    stream.seek(0)
    assert torch.load(stream).sum() == 3 and torch.load(stream) == {"a": 1}
    assert torch.load(stream, weights_only=False)[0].shape == (2,)


def test_files_without_data():
    with torch.serialization.skip_data():
        content = saved(torch.ones(1000))
        with fails(RuntimeError, "Cannot use skip_data=True with _use_new_zipfile_serialization=False"):
            saved(torch.ones(1), _use_new_zipfile_serialization=False)
    assert torch.load(io.BytesIO(content)).tolist() == [0] * 1000
    full = saved(torch.ones(1000))
    assert len(content) == len(full)
    with torch.serialization.skip_data():
        assert torch.load(io.BytesIO(full)).tolist() == [0] * 1000
    assert torch.load(io.BytesIO(full)).tolist() == [1] * 1000


def test_files_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        assert torch.serialization.get_crc32_options() is False
        content = saved(torch.ones(3))
    finally:
        torch.serialization.set_crc32_options(True)
    with pytest.raises(RuntimeError, match="does not match its checksum"):
        torch.load(io.BytesIO(content))


def test_the_byte_order_of_files_that_do_not_state_it():
    big = np.arange(3, dtype=">f4")
    content = saved(torch.from_numpy(big.view("<f4")), _disable_byteorder_record=True)
    assert "byteorder" not in records(content)
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
    try:
        assert torch.load(io.BytesIO(content)).tolist() == [0, 1, 2]
    finally:
        torch.serialization.set_default_load_endianness(None)
    assert torch.load(io.BytesIO(content)).tolist() == big.view("<f4").tolist()
    with fails(TypeError, "Invalid argument type in function set_default_load_endianness"):
        torch.serialization.set_default_load_endianness("big")


# --- Locations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", FORMATS)
def test_no_memory_is_needed_on_meta(how):
    x = torch.ones(2, 3)
    found = again([x, x.T, 3], how, map_location="meta")
    assert [y.device.type for y in found[:2]] == ["meta", "meta"] and found[1].stride() == (1, 3) and found[2] == 3


def test_a_function_gets_storages_and_locations():
    seen = []

    def place(storage, location):
        seen.append((type(storage), storage.nbytes(), location))
        return storage

    x = torch.arange(6.0)
    assert again([x, x[1:], torch.ones(1)], map_location=place)[1].tolist() == [1, 2, 3, 4, 5]
    assert seen == [(torch.UntypedStorage, 24, "cpu"), (torch.UntypedStorage, 4, "cpu")]


def test_locations_of_the_program():
    serialization = torch.serialization
    before = list(serialization._locations._packages)

    def tag(storage):
        return "vault" if storage.nbytes() == 12 else None

    def restore(storage, location):
        if location == "vault":
            storage[0] = 77
            return storage

    serialization.register_package(5, tag, restore)
    try:
        content = saved([torch.zeros(3, dtype=torch.int32), torch.ones(1)])
        assert serialization.location_tag(torch.zeros(3).untyped_storage()) == "vault"
        assert torch.load(io.BytesIO(content))[0].tolist() == [77, 0, 0]
    finally:
        serialization._locations._packages[:] = before
    with fails(
        RuntimeError, "don't know how to restore data location of torch.storage.UntypedStorage (tagged with vault)"
    ):
        torch.load(io.BytesIO(content))
    assert torch.load(io.BytesIO(content), map_location={"vault": "cpu"})[0].tolist() == [0, 0, 0]


# --- weights_only ----------------------------------------------------------------------------------------


def allowed(value, names, **options):
    with torch.serialization.safe_globals(names):
        return again(value, **options)


def test_names_that_the_program_allows():
    value = argparse.Namespace(a=1, b=[torch.ones(2)])
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL argparse.Namespace was not an allowed global by default"):
        again(value)
    found = allowed(value, [argparse.Namespace])
    assert found.a == 1 and found.b[0].tolist() == [1, 1]
    assert torch.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals([Config])
    try:
        assert again(Config(a=1)) == Config(a=1) and torch.serialization.get_safe_globals() == [Config]
    finally:
        torch.serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        again(Config(a=1))
    assert allowed(Config(a=1), [(Config, f"{Config.__module__}.Config")]) == Config(a=1)
    assert allowed([Config], [Config]) == [Config]
    with fails(
        ValueError, "Expected tuple of length 2 (global, str of callable full path), but got tuple of length: 3"
    ):
        allowed(1, [(Config, "a", "b")])
    with fails(TypeError, "Expected second item in tuple to be str of callable full path, but got: <class 'int'>"):
        allowed(1, [(Config, 3)])


def test_arrays_of_numpy_where_allowed():
    value = {"a": np.arange(3.0), "b": np.float32(2), "c": np.array([True])}
    names = [np.ndarray, np.dtype, type(np.dtype("f8")), type(np.dtype("f4")), type(np.dtype("?"))]
    core = np._core if hasattr(np, "_core") else np.core
    found = allowed(value, [core.multiarray._reconstruct, core.multiarray.scalar, *names])
    assert found["a"].tolist() == [0, 1, 2] and found["b"] == np.float32(2) and found["c"].tolist() == [True]
    with pytest.raises(pickle.UnpicklingError, match="multiarray._reconstruct was not an allowed"):
        again(value)


def test_modules_where_allowed():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    found = allowed(model, [torch.nn.Sequential, torch.nn.Linear, torch.nn.ReLU])
    x = torch.ones(1, 2)
    assert torch.equal(found(x), model(x))


def test_unsafe_names_in_a_file(tmp_path):
    path = tmp_path / "x.pt"
    for protocol in (2, 4):
        torch.save([argparse.Namespace(a=torch.ones(1)), Path("a"), OrderedDict()], path, pickle_protocol=protocol)
        find = torch.serialization.get_unsafe_globals_in_checkpoint
        found = find(path)
        assert "argparse.Namespace" in found and any("Path" in name for name in found)
        assert not any("torch" in name or "OrderedDict" in name for name in found)
        with torch.serialization.safe_globals([argparse.Namespace]):
            assert "argparse.Namespace" not in find(io.BytesIO(path.read_bytes()))
    path.write_bytes(b"hello")
    with fails(ValueError, "Expected input to be a checkpoint returned by torch.save"):
        find(path)


def test_the_environment_overrules(monkeypatch):
    value = Config(a=1)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert again(value) == value
    with pytest.raises(pickle.UnpicklingError):
        again(value, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "true")
    with pytest.raises(RuntimeError, match="^Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or"):
        again(value)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        again(value, weights_only=False)


def test_arguments_that_contradict():
    with fails(RuntimeError, "Can not safely load weights when explicit pickle_module is specified"):
        again(1, weights_only=True, pickle_module=pickle)
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        again(1, encoding="ascii")
    assert again(Config(a=1), pickle_module=pickle) == Config(a=1)
    with fails(AttributeError, "expected 'f' to be string, path, or a file-like object with a 'write' attribute"):
        torch.save(1, 3)


# --- The parts of files ----------------------------------------------------------------------------------


def test_records_by_hand(tmp_path):
    path = tmp_path / "made.zip"
    writer = torch._C.PyTorchFileWriter(str(path))
    assert writer.archive_name() == "made"
    writer.write_record("data.pkl", pickle.dumps([1], 2), None)
    writer.write_record("text", "abc", 3)
    writer.write_record("part", b"123456", 4)
    writer.write_record_metadata("later", 2_000_000)
    with fails(RuntimeError, "[enforce fail] Tried to serialize file twice: text"):
        writer.write_record("text", b"", 0)
    assert writer.get_all_written_records() == {"data.pkl", "text", "part", "later"}
    writer.write_end_of_file()
    for reader in (torch.PyTorchFileReader(str(path)), torch._C.PyTorchFileReader(io.BytesIO(path.read_bytes()))):
        assert reader.get_all_records()[:4] == ["data.pkl", "text", "part", "later"]
        assert reader.has_record("version") and not reader.has_record("missing")
        assert reader.get_record("text") == b"abc" and reader.get_record("part") == b"1234"
        assert reader.get_record_size("later") == 2_000_000 and not any(reader.get_record("later"))
        assert path.read_bytes()[reader.get_record_offset("text") :][:3] == b"abc"
        assert len(reader.serialization_id()) == 40 and reader.archive_name() == "made"
        with pytest.raises(RuntimeError, match="^PytorchStreamReader failed locating file missing: file not found"):
            reader.get_record("missing")
    assert torch.load(path) == [1]


def test_the_unpickler_of_weights():
    module = torch._weights_only_unpickler
    assert module.load(io.BytesIO(pickle.dumps({"a": [1, (2,)]}, 2))) == {"a": [1, (2,)]}
    with fails(pickle.UnpicklingError, "unsupported persistent id encountered"):
        module.load(io.BytesIO(b"\x80\2K\1Q."))
    with pytest.raises(pickle.UnpicklingError, match="^Unsupported global: GLOBAL print was not an allowed global"):
        module.Unpickler(io.BytesIO(pickle.dumps(print, 2))).load()
    assert module.get_globals_in_pkl(io.BytesIO(pickle.dumps([print, Config], 4))) == {
        "builtins.print",
        f"{__name__}.Config",
    }
    assert {"torch.float32", "torch.Tensor", "collections.OrderedDict"} < module._get_allowed_globals().keys()


class Sparse:
    """A file in which blocks of zeros take no space on the disk."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        if len(data) == 1 << 20 and not any(data[:64]):
            self.file.seek(len(data), os.SEEK_CUR)
        else:
            self.file.write(data)


@pytest.mark.slow
def test_files_above_4_gib(tmp_path):
    path = tmp_path / "large.pt"
    large, small = torch.empty(5 << 30, dtype=torch.uint8), torch.ones(3)
    with open(path, "wb") as file, torch.serialization.skip_data():
        torch.save([large, small], Sparse(file))
    assert path.stat().st_size > 5 << 30
    found = torch.load(path, mmap=True)
    assert found[0].shape == (5 << 30,) and not found[0][-1000:].any() and found[1].tolist() == [0] * 3


@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_is_flushed(is_new, tmp_path):
    with open(tmp_path / "file.pt", "wb") as file:
        torch.save(torch.ones(2), file, _use_new_zipfile_serialization=is_new)
        assert torch.load(tmp_path / "file.pt").tolist() == [1, 1]


def test_archives_as_context_managers(tmp_path):
    records = {"a": b"1203", "b/c": b"945"}
    buffer = io.BytesIO()
    for place in (buffer, tmp_path / "made.zip"):
        with torch.serialization._open_zipfile_writer(place) as writer:
            for name, content in records.items():
                writer.write_record(name, content, len(content))
        buffer.seek(0)
        with torch.serialization._open_zipfile_reader(place) as reader:
            assert {name: reader.get_record(name) for name in records} == records
    buffer.seek(0)
    assert torch.serialization._is_zipfile(buffer) and buffer.tell() == 0
    assert not torch.serialization._is_zipfile(io.BytesIO(b"PK"))


def test_number_of_a_storage():
    x = torch.ones(3)
    assert x.untyped_storage()._cdata == x[1:].untyped_storage()._cdata != x.clone().untyped_storage()._cdata
