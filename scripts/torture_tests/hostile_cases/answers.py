"""An answer of a server as a value, which the grammars change, and the steps that send it."""

import time

from .chance import damaged, once_in

WORDS = [
    b"\r\n", b"\n", b"\r\n\r\n", b":", b" ", b"\t", b"HTTP/1.1 206 P\r\n", b"HTTP/1.1 100 C\r\n\r\n",
    b"Content-Length: 5\r\n", b"Content-Range: bytes 0-4/5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"ETag: \"x\"\r\n", b"bytes", b"*", b"-", b"/", b"9223372036854775807", b"0\r\n\r\n", b"W/",
    b"Content-Encoding: gzip\r\n", b"Location: /\r\n", b"Connection: close\r\n",
]


def content(number, start, end):
    """The bytes of a resource: byte n tells which it is."""
    first = start // 8
    words = b"".join((number << 40 | index).to_bytes(8, "big")
                     for index in range(first, (end + 7) // 8))
    return words[start - first * 8:end - first * 8]


class Request:
    """What a client has asked."""

    def __init__(self, line, fields, body):
        self.line, self.fields, self.body = line, fields, body
        words = line.split(" ")
        self.method, self.target = words[0], words[1] if len(words) > 1 else ""

    def __getitem__(self, name):
        return next((value for key, value in self.fields if key.lower() == name), None)

    def range_of(self, length):
        """The first byte that is asked for and the one behind the last; None for the whole."""
        value = self["range"] or ""
        if not value.startswith("bytes=") or "," in value:
            return None
        first, _, last = value[6:].partition("-")
        try:
            start = int(first)
            return start, min(int(last) + 1 if last else length, length)
        except ValueError:
            return None


class Answer:
    """A response, part by part: an honest one to begin with."""

    def __init__(self, request, number, length, media_type=b"application/octet-stream"):
        part = request.range_of(length)
        self.before = b""
        self.fields = [b"ETag: \"e%d\"" % number,
                       b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
                       b"Accept-Ranges: bytes", b"Content-Type: " + media_type]
        self.start, self.end = part or (0, length)
        self.number, self.length = number, length
        if part and self.start >= length:
            self.status = b"HTTP/1.1 416 Range Not Satisfiable"
            self.fields.append(b"Content-Range: bytes */%d" % length)
            self.end = self.start
        elif part:
            self.status = b"HTTP/1.1 206 Partial Content"
            self.fields.append(
                b"Content-Range: bytes %d-%d/%d" % (self.start, self.end - 1, length))
        else:
            self.status = b"HTTP/1.1 200 OK"
        self.body = content(number, self.start, self.end)
        # None: the length of the body.
        self.content_length = None
        self.ending = b"\r\n"
        # The change of the whole head.
        self.damage = None
        # Steps that replace the head and the body.
        self.head_steps = None
        self.body_steps = None
        # Whether the connection stays open for another request.
        self.keeps = True

    def put(self, line):
        """Replaces the field of that name, or adds it."""
        name = line.partition(b":")[0].lower()
        self.fields = [field for field in self.fields
                       if field.partition(b":")[0].lower() != name] + [line]

    def drop(self, name):
        self.fields = [field for field in self.fields
                       if field.partition(b":")[0].lower() != name]

    def set_body(self, body):
        self.body = body
        self.content_length = None

    def head(self):
        fields = list(self.fields)
        names = {field.partition(b":")[0].lower() for field in fields}
        if self.content_length is None and not {b"content-length", b"transfer-encoding"} & names:
            fields.append(b"Content-Length: %d" % len(self.body))
        elif self.content_length not in (None, b""):
            fields.append(b"Content-Length: " + self.content_length)
        data = self.ending.join([self.status, *fields, b"", b""])
        return self.before + (self.damage(data) if self.damage else data)

    def steps(self, method):
        steps = self.head_steps if self.head_steps is not None else [("send", self.head())]
        if method == "HEAD":
            return steps
        return steps + (
            self.body_steps if self.body_steps is not None else [("send", self.body)])

    def damage_head(self, chance):
        """Has the head's bytes changed as an attacker or a bad line would."""
        state = chance.getrandbits(64)

        def damage(data):
            return damaged(type(chance)(state), data, WORDS)

        self.damage = damage


# An endless body, or a bomb, is cut here: by then it has had its effect.
MOST_BYTES = 96 << 20
# No answer continues for longer.
MOST_SECONDS = 20


def send(connection, steps, is_over):
    """Carries out the steps of an answer; gives whether the connection is still good."""
    sent, deadline = 0, time.monotonic() + MOST_SECONDS
    for step in steps:
        if step[0] == "send":
            connection.sendall(step[1])
            sent += len(step[1])
        elif step[0] == "wait":
            if is_over.wait(step[1]):
                return False
        elif step[0] == "repeat":
            _, data, times, pause = step
            for _ in range(times):
                if is_over.is_set() or sent > MOST_BYTES or time.monotonic() > deadline:
                    return False
                connection.sendall(data)
                sent += len(data)
                if pause:
                    is_over.wait(pause)
        elif step[0] == "hold":
            is_over.wait(max(0, deadline - time.monotonic()))
            return False
        elif step[0] in ("close", "reset"):
            return False
    return True


def pieces(chance, data, pause):
    """Steps that send bytes in pieces with pauses between them."""
    steps, at = [], 0
    size = max(1, len(data) // chance.choice((2, 5, 20)))
    while at < len(data):
        steps += [("send", data[at:at + size]), ("wait", pause)]
        at += size
    return steps


def is_hostile_now(when, count):
    """Whether the request of that number (from 0) gets the hostile answer."""
    return {"always": True, "first": count == 0, "later": count > 0, "in turns": count % 2 == 0,
            "once later": count == 1}[when]


def draw_when(chance):
    return "always" if not once_in(chance, 3) else chance.choice(
        ("first", "later", "in turns", "once later"))
