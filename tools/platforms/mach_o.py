"""What the head of a library for macOS says: `header(bytes)`."""

import struct
from dataclasses import dataclass, field

MAGIC = 0xFEEDFACF  # 64 bits, little-endian
PROCESSORS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
LOADED, WEAK, REEXPORTED = 0x0C, 0x80000018, 0x8000001F  # LC_LOAD_DYLIB and its variants: a library that is needed
SIGNED, BUILT_FOR = 0x1D, 0x32  # LC_CODE_SIGNATURE, LC_BUILD_VERSION
MACOS = 1  # among the platforms of LC_BUILD_VERSION


@dataclass
class Header:
    """`oldest`: the oldest macOS, as (major, minor); `needed`: paths of libraries that are loaded with this one."""

    processor: str
    oldest: tuple[int, int] | None = None
    needed: list[str] = field(default_factory=list)
    signed: bool = False


def header(data):
    """Read the header of a Mach-O file; raises ValueError if it is none, or of an unknown processor."""
    magic, processor, _, _, commands = struct.unpack_from("<5I", data)
    if magic != MAGIC or processor not in PROCESSORS:
        raise ValueError(f"no Mach-O file of x86_64 or arm64: magic {magic:#x}, processor {processor:#x}")
    found = Header(PROCESSORS[processor])
    offset = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, offset)
        if command in (LOADED, WEAK, REEXPORTED):
            (name,) = struct.unpack_from("<I", data, offset + 8)
            found.needed.append(data[offset + name : offset + size].partition(b"\0")[0].decode())
        elif command == BUILT_FOR:
            platform, version = struct.unpack_from("<2I", data, offset + 8)
            if platform == MACOS:
                found.oldest = version >> 16, version >> 8 & 0xFF
        elif command == SIGNED:
            found.signed = True
        offset += size
    return found
