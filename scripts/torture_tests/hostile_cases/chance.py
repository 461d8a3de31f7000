"""Numbers, damaged bytes and planted secrets: everything that a case draws from its generator."""

import base64
import random

# Every planted secret begins with this, and no other text contains it.
CANARY = "CANARY"

EDGES = [
    0, 1, 2, 9, 10, 255, 256, 4095, 4096, 65_535, 65_536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
    1 << 32, (1 << 53) + 1, (1 << 60) - 1, 1 << 60, (1 << 60) + 1, (1 << 63) - 512, (1 << 63) - 2,
    (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 10 ** 30, -1, -2, -(1 << 31), -(1 << 63),
]
STRANGE = [
    b"\x00", b"\x01", b"\x07", b"\x08", b"\x0b", b"\x1b[2J", b"\x1b]0;x\x07", b"\x7f", b"\x80",
    b"\xc2\x9b2J", b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x80\xae", b"e\xcc\x81",
    b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b" ", b"\"", b"\\", b"%00", b"%0d%0a",
    b"\xd9\xa3", b"\xf0\x9f\x92\xa9" * 40, b"\xcc\x81" * 300, b"%n%s%s%n", b"$(id)", b"../",
]


def generator(seed, number):
    """What decides a case: the same seed and number, the same case, on every machine."""
    return random.Random(f"httpfs hostile {seed} {number}")


def once_in(chance, count):
    return chance.randrange(count) == 0


def edge(chance):
    """A number that is often an edge of some range."""
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choice(EDGES)
    if kind == 1:
        return chance.choice(EDGES) + chance.randrange(-2, 3)
    return chance.randrange(2000)


def spelt(chance, number):
    """A number as somebody may write it."""
    return chance.choice([
        f"{number}", f"{number}", f"{number}", f"+{number}", f"0{number}", f" {number} ",
        f"{number}.0", f"{number}e3", f"0x{abs(number):x}", f"{number}{'0' * 60}", f"{number},",
        f"{number}x", "", "-", "\u0663\u0664", f"{number} {number}",
    ]).encode()


def strange(chance):
    """Some bytes that are no plain text."""
    return b"".join(chance.choice(STRANGE) for _ in range(chance.randrange(1, 4)))


def damaged(chance, data, words=(), count=None):
    """The bytes after a few changes: flips, cuts, repetitions, words of the format put in."""
    data = bytearray(data)
    for _ in range(count or chance.randrange(1, 5)):
        if not data:
            break
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.randrange(1, 33))
        kind = chance.randrange(9)
        if kind == 0:
            data[start] = chance.randrange(256)
        elif kind == 1:
            data[start] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[start:end]
        elif kind == 3:
            data[end:end] = data[start:end] * chance.choice((1, 2, 50))
        elif kind == 4:
            del data[start:]
        elif kind == 5:
            data[start:start] = strange(chance)
        elif kind == 6:
            data[start:end] = bytes(chance.choice(words)) if words else b""
        elif kind == 7:
            data[start:start] = bytes(chance.choice(words)) if words else strange(chance)
        else:
            source = chance.randrange(len(data))
            data[start:end] = data[source:source + (end - start)]
    return bytes(data)


def _shadows():
    """The secret's name as base64 shows it, wherever it begins."""
    marks = []
    for shift, (first, end) in enumerate(((0, 8), (2, 9), (3, 10))):
        # Only the letters that do not depend on a neighbour.
        marks.append(base64.b64encode(b"\0" * shift + CANARY.encode() + b"\0\0")[first:end])
    return marks


_MARKS = [CANARY.encode()] + _shadows()


def secrets_in(data):
    """The planted secrets that bytes show, plain or as base64, each with its surroundings."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    found = []
    for mark in _MARKS:
        at = data.find(mark)
        if at >= 0:
            found.append(data[max(0, at - 60):at + 40].decode("latin-1"))
    return found
