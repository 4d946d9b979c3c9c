"""Reading PyTorch's zip files: what is loaded, and that nothing else can be."""

import io
import os
import pickle
import random
import re
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from serialization.archives import Call, FromOutside, Name, archive, pickled, storage, tensor

import cygrad as torch
from helpers import fails

FLOATS = np.arange(6, dtype="<f4").tobytes()
DAMAGED = (RuntimeError, pickle.UnpicklingError, EOFError)


def load(content, **options):
    return torch.load(io.BytesIO(content), **options)


def refuses(exception, pattern):
    """Check that the block fails with `exception` and a message that matches `pattern`; release its tensors."""
    return pytest.raises(exception, match=pattern)


# --- What is loaded --------------------------------------------------------------------------------------


def test_tensors_share_the_memory_of_their_storage():
    memory = storage("FloatStorage", "0", 6)
    program = {"all": tensor(memory, (6,), (1,)), "part": tensor(memory, (2, 2), (1, 2), 2)}
    loaded = load(archive(program, {"0": FLOATS}))
    assert loaded["part"].tolist() == [[2, 4], [3, 5]]
    loaded["all"].mul_(2)
    assert loaded["part"].tolist() == [[4, 8], [6, 10]]
    assert not loaded["all"].requires_grad


def test_parameters_and_tensors_that_require_grad():
    memory = tensor(storage("FloatStorage", "0", 6), (6,), (1,), 0, True)
    parameter = Call(Name("torch._utils", "_rebuild_parameter"), (memory, True, ()))
    loaded = load(archive([memory, parameter], {"0": FLOATS}))
    assert loaded[0].requires_grad and type(loaded[1]) is torch.nn.Parameter and loaded[1].requires_grad


def test_attributes_of_tensors():
    arguments = tensor(storage("FloatStorage", "0", 6), (6,), (1,)).arguments
    rebuild = Name("torch._utils", "_rebuild_tensor_v2")
    typed = Call(
        Name("torch._tensor", "_rebuild_from_type_v2"), (rebuild, Name("torch", "Tensor"), arguments, {"mark": 3})
    )
    assert load(archive(typed, {"0": FLOATS})).mark == 3
    for name in ("grad", "add", "__class__"):
        hiding = typed._replace(arguments=(*typed.arguments[:3], {name: 3}))
        with refuses(pickle.UnpicklingError, "names that are free"):
            load(archive(hiding, {"0": FLOATS}))


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "int8", "float64", "complex128", "bool"])
def test_untyped_storages(dtype):
    memory = FromOutside(("storage", Name("torch.storage", "UntypedStorage"), "0", "cpu", 16))
    arguments = (memory, 0, (1,), (1,), False, Call(Name("collections", "OrderedDict"), ()), Name("torch", dtype))
    made = Call(Name("torch._utils", "_rebuild_tensor_v3"), arguments)
    loaded = load(archive(made, {"0": b"\1" + bytes(15)}))
    assert str(loaded.dtype) == f"torch.{dtype}"
    assert loaded.numpy().tobytes() == (b"\1" + bytes(15))[: loaded.element_size()]


def test_big_endian_files():
    memory = np.arange(6, dtype=">f4").tobytes()
    made = tensor(storage("FloatStorage", "0", 6), (6,), (1,))
    assert load(archive(made, {"0": memory}, byteorder=b"big")).tolist() == [0, 1, 2, 3, 4, 5]
    with refuses(ValueError, "^Unknown endianness type: mixed$"):
        load(archive(made, {"0": memory}, byteorder=b"mixed"))


def test_plain_values():
    value = {"a": [1, 2.5, "x", None, True, 10**30, (1, 2, 3, 4), ()], ("t", 1): {3: -1}, "nested": [[], {}]}
    assert load(archive(value)) == value
    for protocol in (0, 1, 2, 3, 4, 5):
        assert load(archive(pickle.dumps(value, protocol))) == value
        assert load(archive(pickle.dumps({1, 2}, protocol))) == {1, 2} or protocol < 2
    old = OrderedDict(a=1)
    old._metadata = {"": {"version": 1}}
    loaded = load(archive(pickle.dumps(old, 2)))
    assert type(loaded) is OrderedDict and loaded == old and loaded._metadata == old._metadata
    assert load(archive(pickle.dumps([b"\0\xff", 1j], 2))) == [b"\0\xff", 1j]
    assert load(archive([Call(Name("torch", "Size"), ([1, 2],)), Name("torch", "float64")])) == [
        torch.Size([1, 2]),
        torch.float64,
    ]


def test_mapped_files(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(archive(tensor(storage("FloatStorage", "0", 6), (6,), (1,)), {"0": FLOATS}))
    torch.load(path).add_(1)
    loaded = torch.load(str(path), mmap=True)
    assert loaded.tolist() == [0, 1, 2, 3, 4, 5]
    loaded.add_(1)
    assert torch.load(str(path), mmap=True).tolist() == [0, 1, 2, 3, 4, 5]
    with fails(ValueError, "f must be a file path in order to use the mmap argument"):
        load(path.read_bytes(), mmap=True)


# --- map_location ----------------------------------------------------------------------------------------


def on_gpu():
    return archive(tensor(storage("FloatStorage", "0", 6, "cuda:0"), (6,), (1,)), {"0": FLOATS})


@pytest.mark.parametrize(
    "place",
    ["cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage, lambda memory, _: memory.cpu()],
)
def test_map_location(place):
    assert load(on_gpu(), map_location=place).sum() == 15


@pytest.mark.parametrize("place", [None, "cuda", {"cpu": "cuda:0"}, lambda storage, location: None])
def test_no_gpu(place):
    with refuses(RuntimeError, "^Attempting to deserialize object on a CUDA device but torch.cuda.is_available"):
        load(on_gpu(), map_location=place)


def test_unknown_locations():
    line = "don't know how to restore data location of torch.storage.UntypedStorage (tagged with foo)"
    with fails(RuntimeError, line):
        load(on_gpu(), map_location="foo")
    with fails(TypeError, "'int' object is not callable"):
        load(on_gpu(), map_location=3)


# --- What is rejected ------------------------------------------------------------------------------------


class Attack:
    """An object whose pickle makes a trusting reader call a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def touched(path):
    return (
        Attack(open, path, "w"),
        Attack(os.mkdir, path),
        Attack(eval, f"open({path!r}, 'w')"),
        Attack(os.system, path),
    )


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed(tmp_path, protocol):
    path = str(tmp_path / "touched")
    for attack in touched(path):
        for value in (attack, {"model": [attack]}, OrderedDict(a=attack)):
            with refuses(pickle.UnpicklingError, "(?s)^Weights only load failed.*(Unsupported|Trying to load)"):
                load(archive(pickle.dumps(value, protocol)))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "builtins.eval",
        "builtins.getattr",
        "torch.load",
        "torch.storage._load_from_bytes",
        "torch._utils.os",
    ]
    + ["collections.OrderedDict.__init__", "torch.nn.modules.linear.Linear", "cygrad.load", "torch.float33", "torch."],
)
def test_unknown_names(name):
    module, _, last = name.rpartition(".")
    shown = name.removeprefix("builtins.")
    line = (
        "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps "
        "only if you trust the source of the checkpoint\033[0m. "
    )
    short = b"\x80\4\x8c%c%b\x8c%c%b\x93." % (len(module), module.encode(), len(last), last.encode())
    for program in (Call(Name(module, last), ("x",)), short):
        with pytest.raises(pickle.UnpicklingError) as info:
            load(archive(program))
        assert str(info.value).split("\n")[0] == line
        assert f"Unsupported global: GLOBAL {shown} was not an allowed global by default" in str(info.value)
        del info


@pytest.mark.parametrize("module", ["os", "posix", "nt", "sys"])
def test_blocked_modules(module):
    line = f"Trying to load unsupported GLOBAL {module}.system whose module {module} is blocked."
    with torch.serialization.safe_globals([(os.system, f"{module}.system")]):
        with refuses(pickle.UnpicklingError, re.escape(line)):
            load(archive(Call(Name(module, "system"), ("x",))))


# A list of lists of lists, 2**200 in all, and a tuple nested so deeply that hashing it would overflow the stack.
MANY = b"]q\x000" + b"](h\x00h\x00eq\x000" * 200 + b"h\x00"
DEEP = b")" + b"\x85" * 200_000

PROGRAMS = {
    "a dtype of many parts": b"\x80\2ctorch._utils\n_rebuild_tensor_v3\n(((X\7\0\0\0storagectorch\nFloatStorage\n"
    b"X\1\0\0\0000X\3\0\0\0cpuK\6tQK\0K\1\x85K\1\x85\x89)" + MANY + b"tR.",
    "a name of many parts": b"\x80\4" + MANY + b"\x8c\1a\x93.",
    "an encoding of many parts": b"\x80\2c_codecs\nencode\n(X\1\0\0\0a" + MANY + b"tR.",
    "a device of many parts": b"\x80\2ctorch\ndevice\n" + MANY + b"\x85R.",
    "a size of many parts": b"\x80\2ctorch\nSize\n" + MANY + b"\x85R.",
    "a number of many parts": b"\x80\2cbuiltins\ncomplex\n" + MANY + b"\x85R.",
    "a call of many parts": b"\x80\2" + MANY + b")R.",
    "a deep element of a set": b"\x80\2cbuiltins\nset\n]" + DEEP + b"a\x85R.",
    "a deep key of an OrderedDict": b"\x80\2ccollections\nOrderedDict\n]" + DEEP + b"K\1\x86a\x85R.",
    "a deep key of a Counter": b"\x80\2ccollections\nCounter\n]" + DEEP + b"K\1\x86a\x85R.",
    "a deep persistent id": b"\x80\2" + DEEP + b"Q.",
    "calls what is no function": Call(Name("torch", "float32"), ()),
    "calls a value": b"\x80\x02K\x01)R.",
    "arguments that are no tuple": b"\x80\x02ccollections\nOrderedDict\n]R.",
    "attributes of a list": b"\x80\x02]}X\x01\0\0\0aK\x01sb.",
    "attributes that hide methods": b"\x80\x02ccollections\nOrderedDict\n)R}X\x04\0\0\0keysK\x01sb.",
    "appends to a dictionary": b"\x80\x02}K\x01a.",
    "sets an entry of a list": b"\x80\x02]K\x01K\x02s.",
    "an odd number of keys and values": b"\x80\x02}(K\x01u.",
    "a list as a key": b"\x80\x02}]K\x01s.",
    "a deep tuple as a key": b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
    "a deep tuple in a set": b"\x80\x04\x8f()" + b"\x85" * 100_000 + b"\x90.",
    "a key of many parts": b"\x80\x02})" + b"q\0h\0\x86" * 200 + b"K\x01s.",
    "too few values": b"\x80\x02\x87.",
    "no mark": b"\x80\x02t.",
    "nothing but marks": b"\x80\x02" + b"(" * 1_000_000,
    "a mark too many": b"\x80\x02(K\x01.",
    "two values": b"\x80\x02K\x01K\x01.",
    "no value": b"\x80\x02.",
    "an empty program": b"",
    "no end": b"\x80\x02K\x01",
    "an unknown place of the memo": b"\x80\x02h\x07.",
    "a string longer than the file": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "a string of more bytes than there are": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "a number longer than the file": b"\x80\x02\x8b\xff\xff\xff\x7f1.",
    "a number of too many digits": b"I" + b"9" * 10_000 + b"\n.",
    "no text": b"\x80\x02X\x01\0\0\0\xff.",
    "an unknown opcode": b"\x80\x02\xff.",
    "a class by its number": b"\x80\x02\x82\x01.",
    "an instance": b"(ios\nsystem\n.",
    "a new object with keywords": b"\x80\x04cos\nsystem\n)}\x92.",
    "bytes in a strange encoding": Call(Name("_codecs", "encode"), ("x", "zlib")),
    "a set of a number": Call(Name("__builtin__", "set"), (3,)),
    "too many arguments": Call(Name("torch._utils", "_rebuild_tensor_v2"), tuple(range(20))),
    "a tensor of no storage": tensor("0", (1,), (1,)),
    "a persistent id that is a number": FromOutside(3),
    "a persistent id of another kind": FromOutside(("module", Name("torch", "FloatStorage"), "0", "cpu", 6)),
    "a storage of a class of tensors": FromOutside(("storage", Name("torch", "Tensor"), "0", "cpu", 6)),
    "a negative length of storage": tensor(storage("FloatStorage", "0", -6), (1,), (1,)),
    "a storage of strange length": tensor(storage("FloatStorage", "0", "6"), (1,), (1,)),
    "a storage that is longer": tensor(storage("FloatStorage", "0", 7), (1,), (1,)),
    "a storage that is shorter": tensor(storage("FloatStorage", "0", 5), (1,), (1,)),
    "a storage of another type": tensor(storage("DoubleStorage", "0", 6), (1,), (1,)),
    "a storage that is not there": tensor(storage("FloatStorage", "1", 6), (1,), (1,)),
    "a storage outside of its folder": tensor(storage("FloatStorage", "../data.pkl", 6), (1,), (1,)),
    "past the end": tensor(storage("FloatStorage", "0", 6), (7,), (1,)),
    "past the end by its stride": tensor(storage("FloatStorage", "0", 6), (2, 2), (5, 1)),
    "past the end by its offset": tensor(storage("FloatStorage", "0", 6), (6,), (1,), 1),
    "past 64 bits": tensor(storage("FloatStorage", "0", 6), (2**33, 2**33), (2**33, 1)),
    "larger than memory": tensor(storage("FloatStorage", "0", 6), (2**61,), (0,)),
    "a negative stride": tensor(storage("FloatStorage", "0", 6), (2,), (-1,), 5),
    "a negative length": tensor(storage("FloatStorage", "0", 6), (-1,), (1,)),
    "a negative offset": tensor(storage("FloatStorage", "0", 6), (1,), (1,), -1),
    "a length that is no number": tensor(storage("FloatStorage", "0", 6), ("1",), (1,)),
    "more strides than lengths": tensor(storage("FloatStorage", "0", 6), (1,), (1, 1)),
    "too many dimensions": tensor(storage("FloatStorage", "0", 6), (1,) * 65, (1,) * 65),
    "booleans that are neither": tensor(storage("BoolStorage", "0", 24), (24,), (1,)),
    "metadata that are none": Call(
        Name("torch._utils", "_rebuild_tensor_v2"), (storage("FloatStorage", "0", 6), 0, (6,), (1,), False, (), 3)
    ),
    "a parameter of a number": Call(Name("torch._utils", "_rebuild_parameter"), (3, True, ())),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_hostile_pickles(program):
    with pytest.raises((RuntimeError, pickle.UnpicklingError)) as info:
        load(archive(program, {"0": FLOATS}))
    assert re.search("Weights only load failed|damaged|storage", str(info.value))
    del info


def test_deep_values_are_harmless():
    loaded = load(archive(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."))
    assert len(loaded) == 1


# --- Invalid files ---------------------------------------------------------------------------------------


def good():
    return archive({"w": tensor(storage("FloatStorage", "0", 6), (2, 3), (3, 1)), "epoch": 3}, {"0": FLOATS})


def test_truncated_at_every_byte():
    content = good()
    assert load(content)["w"].sum() == 15
    for length in range(len(content)):
        with pytest.raises(DAMAGED):
            load(content[:length])


def test_changed_bytes():
    content, draw = good(), random.Random(0)
    changed = 0
    for _ in range(1500):
        wrong = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            wrong[draw.randrange(len(wrong))] = draw.choice((0, 1, 0x28, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        try:
            load(bytes(wrong))
        except DAMAGED:
            changed += 1
    assert changed > 500


def test_changed_elements_are_noticed():
    content = good()
    place = content.index(FLOATS)
    with refuses(RuntimeError, "does not match its checksum"):
        load(content[: place + 5] + b"\x55" + content[place + 6 :])


def test_compressed_records_are_refused():
    program = tensor(storage("ByteStorage", "0", 10**7), (10**7,), (1,))
    with refuses(RuntimeError, "compressed or encrypted"):
        load(archive(program, {"0": bytes(10**7)}, zipfile.ZIP_DEFLATED))


def test_entries_that_overlap():
    content = bytearray(archive([1], {"0": bytes(1000), "1": bytes(1000)}))
    first = content.rindex(b"archive/data/0") - 46
    second = content.rindex(b"archive/data/1") - 46
    struct.pack_into("<LL", content, first + 20, 2500, 2500)
    struct.pack_into("<LL", content, second + 20, 2500, 2500)
    with refuses(RuntimeError, "damaged"):
        load(bytes(content))


def test_other_zip_files():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("readme.txt", "hello")
    with refuses(RuntimeError, "not one of torch.save"):
        load(stream.getvalue())
    with zipfile.ZipFile(stream, "a") as file:
        file.writestr("x/data.pkl", pickled(1))
        file.writestr("x/constants.pkl", pickled(()))
    with refuses(RuntimeError, "TorchScript"):
        load(stream.getvalue())


def test_no_file():
    with fails(EOFError, "Ran out of input"):
        load(b"")
    with refuses(pickle.UnpicklingError, "neither a safetensors file nor a zip file"):
        load(b"hello world, this is no checkpoint")
    line = (
        "'int' object has no attribute 'seek'. You can only torch.load from a file that is seekable. Please pre-load "
        "the data into a buffer like io.BytesIO and try to load from it instead."
    )
    with fails(AttributeError, line):
        torch.load(5)
