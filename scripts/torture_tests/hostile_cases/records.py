"""Hostile records of caches and partial files: damaged ones, and forged but valid ones."""

import ctypes
import ctypes.util
import os
import struct

from .chance import EDGES, damaged, once_in, strange

MAGIC = b"httpfsRC"


def _load():
    """XXH3-64 with a seed; None where the library of httpfs itself cannot be found."""
    try:
        library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
        hash64 = library.XXH3_64bits_withSeed
    except (OSError, AttributeError):
        return None
    hash64.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    hash64.restype = ctypes.c_uint64
    return hash64


XXH3 = _load()


def checksum(data, seed):
    return XXH3(data, len(data), seed) & (1 << 64) - 1


def unsigned(number):
    return number & (1 << 64) - 1


class Record:
    """A record file, taken apart (docs/CACHE-FORMAT.md)."""

    def __init__(self, data):
        self.version, size = struct.unpack_from("<II", data, 8)
        self.salt, self.data_id = struct.unpack_from("<QQ", data, 16)
        self.key = data[32:64]
        self.fields, at = [], 64
        while at < size - 8:
            kind, zero, count = struct.unpack_from("<HHI", data, at)
            self.fields.append([kind, zero, count, data[at + 8:at + 8 + count]])
            at += 8 + count
        self.log = [list(struct.unpack_from("<QQQQQ", data, at + 8))
                    for at in range(size, len(data) - 47, 48)]

    def data(self):
        """The bytes, with checksums that are right."""
        fields = b"".join(
            struct.pack("<HHI", kind & 0xFFFF, zero, count & 0xFFFFFFFF) + value
            for kind, zero, count, value in self.fields)
        head = MAGIC + struct.pack("<IIQQ", self.version, 72 + len(fields), self.salt, self.data_id) \
            + self.key + fields
        data = [head + struct.pack("<Q", checksum(head, self.salt))]
        for record in self.log:
            body = struct.pack("<QQQQQ", *map(unsigned, record))
            data.append(struct.pack("<Q", checksum(body, self.salt)) + body)
        return b"".join(data)


def number(chance):
    return chance.choice(EDGES) + chance.choice((0, 0, 1, -1))


def forged(chance, data):
    """A record whose checksums are right and whose words are not, and what it is."""
    record = Record(data)
    form = chance.randrange(9)
    last = len(record.log)
    if form == 0:
        for line in record.log:
            line[chance.randrange(1, 5)] = number(chance)
        what = "log records with numbers at their edges"
    elif form == 1:
        record.log += [[last + index + 1, 1, number(chance), number(chance), chance.getrandbits(64)]
                       for index in range(chance.choice((1, 50, 5000)))]
        what = "extents at the edges"
    elif form == 2:
        record.log += [[last + index + 1, 1, index, 1, 0] for index in range(20_000)]
        record.log.append([last + 20_001, 2, 20_000, last + 20_000, 0])
        what = "very many extents"
    elif form == 3:
        record.log += [[last + 1, 3, number(chance), 0, chance.getrandbits(64)],
                       [last + 2, 2, number(chance), number(chance), chance.getrandbits(64)]]
        what = "lengths and commits at the edges"
    elif form == 4:
        for field in record.fields:
            if field[0] == 4:
                field[3] = struct.pack("<Q", unsigned(number(chance)))
        what = "a header with another length"
    elif form == 5:
        field = chance.choice(record.fields)
        field[3] = chance.choice([strange(chance), b"", b"x" * 100_000, b"\xff" * 2000, bytes(500)])
        field[2] = len(field[3])
        what = "a header with a strange field"
    elif form == 6:
        chance.choice(record.fields)[2] = chance.choice((0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 9))
        what = "a header whose field has another size"
    elif form == 7:
        record.fields += [list(chance.choice(record.fields)) for _ in range(chance.choice((1, 3000)))]
        record.fields += [[chance.randrange(1 << 16), chance.choice((0, 1)), 3, b"abc"]] * 100
        what = "a header with fields twice"
    else:
        record.version = chance.choice((0, 2, 0xFFFFFFFF))
        record.data_id ^= chance.choice((0, 1))
        record.key = chance.choice((record.key, bytes(32)))
        what = ("a header of a later version" if record.version > 1
                else "a header of another version, data file or key")
    return record.data(), "a forged record: " + what


def bad(chance, data):
    """The bytes of a record that is not as it was, and what it is."""
    if XXH3 and not once_in(chance, 3):
        return forged(chance, data)
    form = chance.randrange(4)
    if form == 0:
        return data[:chance.randrange(len(data))], "a record that is cut off"
    if form == 1:
        return data + data[-48:] * chance.choice((1, 100, 50_000)), "a record with repeated lines"
    if form == 2:
        return chance.randbytes(chance.choice((0, 1, 71, 72, 5000))), "a record of random bytes"
    return damaged(chance, data, (MAGIC, b"\xff" * 8, bytes(8))), "a record with damaged bytes"


def displace(chance, path, outside, may_link=True):
    """Puts something else in the place of a file; gives what.

    may_link says whether somebody else could have given a file of theirs that name.
    """
    form = chance.randrange(7)
    if form == 5 and not may_link:
        form = 6
    if form == 0:
        with open(path, "r+b") as file:
            file.truncate(chance.choice((0, 1, 4096, 1 << 40)))
        return "cut or stretched"
    os.unlink(path)
    if form == 1:
        os.symlink(f"{outside}/.bashrc", path)
        return "a link to another file"
    if form == 2:
        os.mkfifo(path)
        return "a pipe"
    if form == 3:
        os.mkdir(path)
        return "a directory"
    if form == 4:
        os.symlink("/dev/zero", path)
        return "a link to a device"
    if form == 5:
        os.link(f"{outside}/hard", path)
        return "another name of somebody's file"
    return "gone"
