"""Hostile bodies: wrong lengths and ranges, chunks, codings, bombs, slow and endless ones."""

import functools
import gzip
import zlib

from .answers import pieces
from .chance import damaged, edge, once_in, spelt, strange
from .heads import content_range


@functools.lru_cache
def bomb(mebibytes, layers=1):
    """So many MiB of zeros, compressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()
    for _ in range(layers - 1):
        data = gzip.compress(data, 9, mtime=0)
    return data


def lying_length(chance, answer):
    """a Content-Length that lies"""
    right = len(answer.body)
    answer.content_length = chance.choice([
        b"%d" % (right + 1), b"%d" % max(0, right - 1), b"%d" % (right + (1 << 20)), b"0", b"", b"",
        spelt(chance, edge(chance)), b"%d, %d" % (right, right), b"%d, %d" % (right, right + 1)])
    if once_in(chance, 2):
        answer.body_steps = [("send", answer.body), chance.choice([("close",), ("hold",)])]


def lying_range(chance, answer):
    """a Content-Range that lies"""
    first, last, length = answer.start, answer.end - 1, answer.length
    lies = [
        (first + 1, last, length), (first, last + 1, length), (first, last - 1, length),
        (first - 1, last, length), (0, length - 1, length), (first, last, length + 1),
        (first, last, length - 1), (first, last, last + 1), (first, last, edge(chance)),
        (edge(chance), edge(chance), edge(chance)), (last, first, length),
    ]
    if once_in(chance, 3):
        answer.put(b"Content-Range: " + content_range(chance))
    elif once_in(chance, 4):
        answer.drop(b"content-range")
    else:
        answer.put(b"Content-Range: bytes %d-%d/%d" % chance.choice(lies))
    if once_in(chance, 3):
        answer.status = chance.choice(
            (b"HTTP/1.1 200 OK", b"HTTP/1.1 206 Partial", b"HTTP/1.1 416 No"))


def huge(chance, answer):
    """a resource that claims to be huge"""
    length = chance.choice((1 << 44, 1 << 50, (1 << 60) - 1, 1 << 60, (1 << 63) - 1, (1 << 63) - 512))
    if answer.status.startswith(b"HTTP/1.1 206"):
        answer.put(b"Content-Range: bytes %d-%d/%d" % (answer.start, answer.end - 1, length))
    elif answer.status.startswith(b"HTTP/1.1 416"):
        answer.put(b"Content-Range: bytes */%d" % length)
    else:
        answer.content_length = b"%d" % length
        answer.body_steps = [("send", answer.body), ("hold",)]


def wrong_size(chance, answer):
    """a body shorter or longer than its head says"""
    right = len(answer.body)
    answer.content_length = b"%d" % right
    if once_in(chance, 2):
        answer.body_steps = [("send", answer.body[:chance.randrange(right + 1)]),
                             chance.choice([("close",), ("hold",)])]
    else:
        extra = chance.choice([
            b"x", bytes(100_000), b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: \"s\"\r\n\r\nabc",
            answer.head(), strange(chance)])
        answer.body_steps = [("send", answer.body + extra)]


def chunked(chance, answer):
    """chunks"""
    answer.drop(b"content-length")
    answer.content_length = chance.choice((b"", b"", b"", b"%d" % len(answer.body), b"5"))
    answer.put(b"Transfer-Encoding: " + chance.choice([
        b"chunked", b"chunked", b"chunked", b"Chunked", b"gzip, chunked", b"chunked, chunked",
        b"identity, chunked", b"xchunked", b"chunked, identity", b" chunked ;x=y"]))
    body = answer.body
    plain = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    forms = [
        lambda: plain + b"0\r\n\r\n",
        lambda: b"".join(b"1\r\n%c\r\n" % byte for byte in body[:20_000]) + b"0\r\n\r\n",
        lambda: b"FFFFFFFFFFFFFFFF\r\n" + body,
        lambda: b"7fffffffffffffff\r\n" + body,
        lambda: b"-1\r\n" + body,
        lambda: b"0x10\r\n" + body,
        lambda: b"0" * chance.choice((30, 5000)) + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
        lambda: b"%x;%s\r\n" % (len(body), b"e" * chance.choice((10, 100_000, 400_000))) + body
        + b"\r\n0\r\n\r\n",
        lambda: b"%x \r\n%s\n0\n\n" % (len(body), body),
        lambda: plain,
        lambda: plain + b"0\r\n",
        lambda: plain + b"0\r\n" + trailers(chance) + b"\r\n",
        lambda: plain + b"0\r\n" + trailers(chance) + b"\r\n",
        lambda: damaged(chance, plain[:2000] + b"0\r\n\r\n",
                        (b"\r\n", b"0\r\n\r\n", b"ffffffff\r\n", b";", b"-")),
    ]
    data = chance.choice(forms)()
    answer.body_steps = [("send", data)]
    if once_in(chance, 6):
        # An endless extension or trailer.
        answer.body_steps = [("send", chance.choice((b"1;x=", plain + b"0\r\nT: "))),
                             ("repeat", b"y" * 200, 10_000, 0.005)]


def trailers(chance):
    """Fields behind the chunks."""
    return chance.choice([
        lambda: b"ETag: \"t\"\r\nContent-Range: bytes 0-0/1\r\nContent-Length: 1\r\n",
        lambda: b"a:\n" * chance.choice((1001, 65_600, 200_000)),
        lambda: b"X: y\n" + b" z\n" * chance.choice((1000, 80_000)),
        lambda: b"X: " + b"v" * 300_000 + b"\r\n",
        lambda: b"Set-Cookie: t=1\r\nLocation: /\r\nTransfer-Encoding: chunked\r\n",
        lambda: strange(chance) + b": " + strange(chance) + b"\r\n",
    ])()


def coded(chance, answer):
    """a content coding, a bomb among them"""
    name = chance.choice([
        b"gzip", b"gzip", b"deflate", b"br", b"zstd", b"compress", b"identity", b"x-gzip", b"gzip, gzip",
        b", ".join([b"gzip"] * 5), b", ".join([b"gzip"] * 1000), b"", b"aws-chunked", b"\xff"])
    answer.put(b"Content-Encoding: " + name)
    body = chance.choice([
        lambda: gzip.compress(answer.body, mtime=0), lambda: answer.body, lambda: bomb(64),
        lambda: bomb(256), lambda: bomb(64, 2), lambda: bomb(16)[:-9],
        lambda: zlib.compress(answer.body), lambda: zlib.compress(answer.body)[2:-4],
        lambda: gzip.compress(answer.body, mtime=0)[:-4] + b"abcd",
        lambda: gzip.compress(b"a", mtime=0) * 3000,
        lambda: b"\x1f\x8b\x08\x1c\xff\xff" + b"n" * 100_000,
        lambda: damaged(chance, gzip.compress(answer.body, mtime=0)),
    ])()
    if once_in(chance, 2):
        answer.status = b"HTTP/1.1 200 OK"
        answer.drop(b"content-range")
    answer.set_body(body)


def parts(chance, answer):
    """a body of several parts"""
    answer.put(b"Content-Type: multipart/byteranges; boundary=B")
    answer.drop(b"content-range")
    head = b"--B\r\nContent-Range: bytes %d-%d/%d\r\n\r\n" % (
        answer.start, answer.end - 1, answer.length)
    answer.set_body(head + answer.body + b"\r\n" + chance.choice((b"--B--\r\n", head, b"")))


def slow_body(chance, answer):
    """a body that comes slowly, or not at all"""
    body = answer.body
    at = chance.randrange(len(body) + 1)
    answer.content_length = b"%d" % len(body)
    answer.body_steps = chance.choice([
        lambda: [("hold",)],
        lambda: [("send", body[:at]), ("hold",)],
        lambda: [("send", body[:at]), ("wait", 1), ("send", body[at:])],
        lambda: [("repeat", b"z" * 10, 10_000, 0.1)],
        lambda: [("repeat", b"z", 10_000, 0.02)],
        lambda: pieces(chance, body, chance.choice((0.02, 0.2))),
    ])()


def endless(chance, answer):
    """a body without end"""
    answer.content_length = chance.choice((b"", b"9223372036854775807", b"1099511627776"))
    if once_in(chance, 2):
        answer.status = b"HTTP/1.1 200 OK"
        answer.drop(b"content-range")
    if once_in(chance, 3):
        answer.content_length = b""
        answer.put(b"Transfer-Encoding: chunked")
        answer.body_steps = [("repeat", b"8000\r\n" + bytes(0x8000) + b"\r\n", 10_000, 0.01)]
    else:
        answer.body_steps = [("repeat", bytes(chance.choice((1000, 60_000))), 100_000, 0.01)]


def gone(chance, answer):
    """a connection that breaks"""
    answer.body_steps = [("send", answer.body[:chance.randrange(len(answer.body) + 1)]), ("reset",)]
    answer.content_length = b"%d" % len(answer.body)


def another(chance, answer):
    """another version with every answer"""
    answer.put(b"ETag: \"%d\"" % chance.getrandbits(40))
    if once_in(chance, 2):
        answer.put(b"Content-Range: bytes %d-%d/%d" % (
            answer.start, answer.end - 1, answer.length + chance.randrange(3)))


BODIES = [lying_length, lying_length, lying_range, lying_range, huge, wrong_size, chunked, chunked,
          chunked, coded, coded, parts, slow_body, endless, gone, another]
