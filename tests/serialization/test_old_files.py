"""Reading files of before version 1.6, and of Python 2."""

import io
import struct

import numpy as np
import pytest
from serialization.archives import FromOutside, Name, pickled, tensor

import cygrad as torch
from cygrad._weights_only_unpickler import Unpickler

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
FACTS = {"protocol_version": VERSION, "little_endian": True}
WORD = "żółw"


def old_file(program, storages):
    """A file in the format of before version 1.6, of a pickled object and arrays by name."""
    parts = [pickled(MAGIC), pickled(VERSION), pickled(FACTS), program, pickled(list(storages))]
    parts += [struct.pack("<q", array.size) + array.tobytes() for array in storages.values()]
    return io.BytesIO(b"".join(parts))


def part(key, length, name, offset, size):
    """The pickled form of a part of a storage."""
    return FromOutside(("storage", Name("torch", "FloatStorage"), key, "cpu", length, (name, offset, size)))


@pytest.mark.parametrize("weights_only", [True, False])
def test_parts_of_storages(weights_only):
    array = np.arange(6, dtype="<f4")
    second = part("0", 6, "second", 3, 2)
    value = [part("0", 6, "first", 0, 3), second, tensor(second, (2,), (1,)), tensor(second, (1,), (1,), 1)]
    first, second, whole, last = torch.load(old_file(pickled(value), {"0": array}), weights_only=weights_only)
    assert (first.tolist(), second.tolist()) == ([0, 1, 2], [3, 4])
    assert (whole.tolist(), last.tolist()) == ([3, 4], [4])
    assert second.data_ptr() == whole.data_ptr() == first.data_ptr() + 12
    last.fill_(9)
    assert second.tolist() == [3, 9]


def test_parts_out_of_bounds():
    program = pickled(part("0", 6, "first", 4, 3))
    with pytest.raises(Exception, match="a part of a storage is out of bounds"):
        torch.load(old_file(program, {"0": np.zeros(6, "<f4")}))


@pytest.mark.parametrize("opcode", [b"U", b"T"])
def test_strings_of_python_2(opcode):
    content = WORD.encode()
    length = struct.pack("<B" if opcode == b"U" else "<i", len(content))
    program = b"\x80\x02" + opcode + length + content + b"."
    assert torch.load(old_file(program, {})) == torch.load(old_file(program, {}), weights_only=False) == WORD
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        assert torch.load(old_file(program, {}), encoding="latin1") == content.decode("latin1")
    assert Unpickler(io.BytesIO(program)).load() == content
    assert Unpickler(io.BytesIO(program), encoding="utf-8").load() == WORD
