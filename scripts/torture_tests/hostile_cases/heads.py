"""Hostile heads: status lines, fields, folds, floods."""

from .answers import pieces
from .chance import EDGES, edge, once_in, spelt, strange

STATUSES = [
    b"HTTP/1.1 206", b"HTTP/1.1 2060 x", b"HTTP/1.1 000 x", b"HTTP/1.1 999 x", b"HTTP/1.1 +20 x",
    b"HTTP/1.1 -1 x", b"ICY 200 OK", b"", b"HTTP/0.9 200 OK", b"HTTP/9.9 200 OK", b"HTTP/2 206 x",
    b"HTTP/1.1 101 Switching", b"HTTP/1.1 100 Continue", b"HTTP/1.1 199 x", b"HTTP/1.0 206 x",
    b"HTTP/1.1  206 x", b"HTTP/1.1\t206 x", b"http/1.1 206 x", b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 205 x", b"HTTP/1.1 300 x", b"HTTP/1.1 304 Not Modified", b"HTTP/1.1 400 x",
    b"HTTP/1.1 401 x", b"HTTP/1.1 403 x", b"HTTP/1.1 404 x", b"HTTP/1.1 407 x", b"HTTP/1.1 408 x",
    b"HTTP/1.1 410 x", b"HTTP/1.1 412 x", b"HTTP/1.1 413 x", b"HTTP/1.1 416 x", b"HTTP/1.1 417 x",
    b"HTTP/1.1 421 x", b"HTTP/1.1 425 x", b"HTTP/1.1 429 x", b"HTTP/1.1 431 x", b"HTTP/1.1 451 x",
    b"HTTP/1.1 500 x", b"HTTP/1.1 501 x", b"HTTP/1.1 502 x", b"HTTP/1.1 503 x", b"HTTP/1.1 504 x",
    b"HTTP/1.1 505 x", b"HTTP/1.1 200 " + b"r" * 60_000, b"HTTP/1.1 200 \x1b[2J\xc2\x9b",
    b"SSH-2.0-OpenSSH_9.2", b"220 ftp ready", b"\x16\x03\x01\x02\x00", b"HTTP", b"H" * 5000,
]
DATES = [
    b"Sun, 99 Nov 99999999999 08:49:37 GMT", b"Fri, 31 Dec 9999 23:59:60 GMT",
    b"Mon, 01 Jan 1601 00:00:00 GMT", b"Thu, 01 Jan 1970 00:00:00 GMT", b"0", b"-1", b"now",
    b"Sun Nov  6 08:49:37 1994", b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun, 06 Nov 1994",
    b"Sun, 30 Feb 2025 25:61:61 GMT", b"Sun, 06 Nov -994 08:49:37 GMT",
    b"Sat, 01 Jan 292277026596 00:00:00 GMT", b"",
]
TAGS = [
    b"\"\"", b"W/\"\"", b"W/", b"\"", b"x", b"\"a\"b\"", b"\"\xcc\x81\"", b"\"v-\x80\"", b"\"v-\x90\"",
    b"w/\"x\"", b"\"a\", \"b\"", b"*", b"\"" + b"e" * 70_000 + b"\"", b"\"\\\"\"", b"\"\xff\"",
]
TYPES = [
    b"text/html", b"TEXT/HTML; charset=\"", b"multipart/byteranges; boundary=x",
    b"multipart/byteranges", b"multipart/byteranges; boundary=" + b"b" * 20_000, b"/", b";;;", b"",
    b"text/\xc2\x9b2J", b"a/b; " + b"; ".join(b"p%d=v" % index for index in range(3000)),
]


def number_field(chance):
    name = chance.choice([
        b"Content-Length", b"Content-Range", b"Retry-After", b"Age", b"Keep-Alive", b"Last-Modified",
        b"Date", b"Expires", b"Cache-Control", b"Strict-Transport-Security", b"Content-MD5",
        b"X-Amz-Meta", b"Accept-Ranges"])
    value = spelt(chance, edge(chance))
    if name in (b"Last-Modified", b"Date", b"Expires"):
        value = chance.choice(DATES)
    elif name == b"Retry-After" and once_in(chance, 3):
        value = chance.choice(DATES)
    elif name == b"Content-Range":
        value = content_range(chance)
    elif name == b"Keep-Alive":
        value = b"timeout=" + value + b", max=" + value
    elif name in (b"Cache-Control", b"Strict-Transport-Security"):
        value = b"max-age=" + value
    return name + b": " + value


def content_range(chance):
    first, last, length = (spelt(chance, edge(chance)) for _ in range(3))
    return chance.choice([b"bytes ", b"bytes=", b"BYTES ", b"items ", b"bytes\t", b""]) \
        + chance.choice([first + b"-" + last, first + b" - " + last, b"*", first, b"-" + last]) \
        + chance.choice([b"/" + length, b"/" + length, b"/*", b"", b"//" + length])


# Each function changes an answer; its docstring names it in the report.

def odd_status(chance, answer):
    """an odd status line"""
    answer.status = chance.choice(STATUSES)


def odd_numbers(chance, answer):
    """fields with numbers and dates at their edges"""
    for _ in range(chance.randrange(1, 4)):
        line = number_field(chance)
        if once_in(chance, 2):
            answer.fields.append(line)
        else:
            answer.put(line)


def odd_tag(chance, answer):
    """an odd entity tag"""
    for _ in range(chance.randrange(1, 3)):
        answer.fields.append(b"ETag: " + chance.choice(TAGS))
    if once_in(chance, 2):
        answer.fields.pop(0)


def odd_type(chance, answer):
    """an odd media type"""
    answer.put(b"Content-Type: " + chance.choice(TYPES))


def twice(chance, answer):
    """fields twice, with values that differ"""
    line = chance.choice([
        b"Content-Length: 5", b"Content-Range: bytes 5-9/10", b"ETag: \"other\"",
        b"Content-Type: text/html", b"Transfer-Encoding: identity", b"Content-Encoding: gzip"])
    answer.fields += [line] * chance.choice((1, 2, 500))


def many_fields(chance, answer):
    """very many fields"""
    count = chance.choice((900, 1001, 5000, 32_768, 65_536, 65_600, 80_000))
    form = chance.randrange(3)
    if form == 0:
        answer.ending = b"\n"
        answer.fields += [b"a:"] * count
    elif form == 1:
        answer.fields += [b"X%d: v" % index for index in range(min(count, 20_000))]
    else:
        answer.ending = b"\n"
        answer.fields += [b":"] * count


def folds(chance, answer):
    """a field that goes on over many lines"""
    count = chance.choice((3, 1000, 20_000, 50_000, 80_000))
    line = chance.choice((b" z", b"\tz", b" ", b"  zzzz", b" :"))
    answer.ending = chance.choice((b"\n", b"\n", b"\r\n"))
    place = chance.randrange(len(answer.fields) + 1)
    room = 250_000 // (len(line) + len(answer.ending))
    answer.fields[place:place] = [b"X: y"] * chance.choice((0, 1)) + [line] * min(count, room)


def long_field(chance, answer):
    """a very long name or value"""
    size = chance.choice((9000, 60_000, 102_400, 130_000, 250_000, 300_000))
    letter = chance.choice((b"a", b" ", b"\t", b",", b"\"", b"\\", b"\xff", b"%", b";", b"="))
    name = chance.choice([
        b"X", b"ETag", b"Last-Modified", b"Content-Type", b"Content-Range", b"Location", b"Link",
        b"Set-Cookie", b"WWW-Authenticate", b"Content-Disposition", b"Vary", b"Server"])
    answer.put(b"n" * size + b": x" if once_in(chance, 5) else name + b": " + letter * size)


def strange_bytes(chance, answer):
    """bytes that no field may have"""
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(answer.fields) + 1)
        name = chance.choice((b"X", b"ETag", b"Content-Type", b"Server", b"", b"A B", b"X\x00"))
        answer.fields.insert(place, name + strange(chance) + b": " + strange(chance))


def no_field(chance, answer):
    """lines that are no field"""
    lines = [b"no colon here", b":", b": x", b" ", b"\x00", b"HTTP/1.1 200 OK", b"=", b"{}", b"<html>"]
    for _ in range(chance.randrange(1, 6)):
        answer.fields.insert(chance.randrange(len(answer.fields) + 1), chance.choice(lines))


def interim(chance, answer):
    """a flood of interim responses"""
    status = chance.choice((b"100 Continue", b"102 Processing", b"103 Early Hints", b"199 x"))
    lines = b"".join(b"Link: </%d>\r\n" % index for index in range(chance.choice((0, 0, 1, 200))))
    one = b"HTTP/1.1 " + status + b"\r\n" + lines + b"\r\n"
    count = chance.choice((1, 10, 1000, 10_000))
    answer.before = one * min(count, 2_000_000 // len(one) + 1)
    if once_in(chance, 4):
        # They continue endlessly, and no final answer arrives.
        answer.head_steps = [("repeat", one, 100_000, 0.005)]


def damaged_head(chance, answer):
    """a head with damaged bytes"""
    answer.damage_head(chance)


def slow_head(chance, answer):
    """a head that comes slowly"""
    form = chance.randrange(4)
    head = answer.head()
    if form == 0:
        answer.head_steps = pieces(chance, head, chance.choice((0.01, 0.1, 0.3)))
    elif form == 1:
        answer.head_steps = [("send", head[:chance.randrange(len(head))]), ("hold",)]
    elif form == 2:
        answer.head_steps = [("send", answer.status + b"\r\n"), ("repeat", b"X: y\r\n", 4000, 0.01)]
    else:
        answer.head_steps = [("wait", chance.choice((0.3, 1, 3))), ("send", head)]


def cut_head(chance, answer):
    """a head that ends early"""
    head = answer.head()
    answer.head_steps = [("send", head[:chance.randrange(len(head))]), ("close",)]


def odd_language(chance, answer):
    """connection fields that promise another protocol"""
    answer.fields += chance.sample([
        b"Connection: Upgrade, close, keep-alive, ETag, Content-Length", b"Upgrade: h2c, websocket",
        b"Alt-Svc: h3=\":443\"; ma=%d" % abs(chance.choice(EDGES)), b"Proxy-Connection: x",
        b"Keep-Alive: timeout=0", b"TE: trailers", b"Trailer: ETag, Content-Range",
        b"Content-Location: http://127.200.0.1:8080/", b"Refresh: 0; url=http://127.200.0.1:8080/",
        b"Warning: 299 - \"x\"", b"HTTP2-Settings: x", b"Content-Disposition: attachment; "
        b"filename=\"../../x\"; filename*=UTF-8''%2e%2e%2fy"], 3)


HEADS = [odd_status, odd_numbers, odd_numbers, odd_tag, odd_type, twice, many_fields, folds,
         long_field, strange_bytes, no_field, interim, damaged_head, damaged_head, slow_head,
         cut_head, odd_language]
