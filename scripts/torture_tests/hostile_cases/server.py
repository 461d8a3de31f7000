"""The servers, in separate processes: hostile ones, an innocent one, and one of another origin."""

import base64
import collections
import json
import multiprocessing
import re
import socket
import threading
import urllib.parse

from .answers import Answer, Request, content, send
from .cases import Case
from .chance import secrets_in

PORT, OTHER_PORT, PROXY_PORT = 8080, 8081, 3128
INNOCENT, ELSEWHERE = "127.201.0.1", "127.200.0.1"
INNOCENT_LENGTH = 1 << 30
# The maximum number of bytes to read of a request's body.
MOST_UPLOADED = 64 << 20


def read_request(stream):
    line = stream.readline(1 << 20)
    if not line:
        return None
    fields = []
    while True:
        text = stream.readline(1 << 20)
        if text in (b"\r\n", b"\n", b""):
            break
        name, _, value = text.decode("latin-1").rstrip("\r\n").partition(":")
        fields.append((name, value.strip()))
    request = Request(line.decode("latin-1").rstrip("\r\n"), fields, b"")
    length = request["content-length"]
    if length and length.isdigit():
        request.body = stream.read(min(int(length), MOST_UPLOADED))
    elif request["transfer-encoding"]:
        while True:
            size = int(stream.readline(100).split(b";")[0] or b"0", 16)
            request.body += stream.read(size)
            stream.readline(100)
            if size == 0 or len(request.body) > MOST_UPLOADED:
                break
    return request


class Listener:
    """A listening socket with a thread for each connection."""

    def __init__(self, host, port, respond):
        self.respond, self.is_over = respond, threading.Event()
        self.connections = set()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, port))
        self.socket.listen(256)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        self.connections.add(connection)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # The server does not wait for a client that reads nothing, and no thread outlives its
            # batch for long.
            connection.settimeout(30)
            stream = connection.makefile("rb")
            while not self.is_over.is_set():
                request = read_request(stream)
                if request is None or not send(connection, self.respond(request), self.is_over):
                    break
        except (OSError, ValueError):
            pass
        finally:
            self.connections.discard(connection)
            try:
                # Unread bytes of the client would turn this into a reset.
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    def close(self):
        self.is_over.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def leaks(request, own=None, is_same_host=False):
    """The planted secrets that a request brings to where they do not belong.

    own is the number of the case whose server it is: its secrets may come.
    """
    found = []
    fields = [("target", request.target)] + request.fields
    for name, value in fields:
        if name.lower() == "proxy-authorization" or is_same_host and name.lower() == "cookie":
            continue
        if value.lower().startswith("basic "):
            value = base64.b64decode(value[6:] + "==", validate=False).decode("latin-1")
        # The hostile server itself has put this into a Location; its user must not become a field.
        value = value.replace("CANARYlocq", "")
        if name in ("target", "Host", "Referer"):
            value = value.replace("CANARYloc", "")
        if own is not None:
            value = re.sub(rf"CANARY[a-z]+{own}(?!\d)|CANARYcmd", "", value)
        if secrets_in(value):
            found.append(f"{name}: {value[:200]}")
    if own is None and request["authorization"] and not found:
        found.append("Authorization: " + request["authorization"][:100])
    return found


class Hostile:
    """The servers of the cases that run together; commands come over a pipe."""

    def __init__(self, seed, proxy_host, pipe):
        self.seed, self.proxy_host, self.pipe = seed, proxy_host, pipe
        self.listeners = []
        self.counts = collections.Counter()
        self.posts = collections.Counter()
        self.leaks = []
        self.lock = threading.Lock()

    def run(self):
        while True:
            try:
                command, numbers = self.pipe.recv()
            except EOFError:
                return
            if command == "open":
                self.open(numbers)
                self.pipe.send(True)
            else:
                self.close()
                self.pipe.send({"requests": dict(self.counts), "leaks": self.leaks,
                                "posts": dict(self.posts)})

    def open(self, numbers):
        cases = [Case(self.seed, number) for number in numbers]
        by_host = {case.host: case for case in cases}
        self.counts.clear()
        self.posts.clear()
        self.leaks = []
        for case in cases:
            self.listeners.append(Listener(
                case.host, PORT, lambda request, case=case: self.answer(case, request)))
            self.listeners.append(Listener(
                case.host, OTHER_PORT, lambda request, case=case: self.answer_elsewhere(
                    request, case)))
        # A connection of earlier cases may still be read after these have begun.
        self.listeners.append(Listener(
            self.proxy_host, PROXY_PORT,
            lambda request: self.answer_as_proxy(by_host, request)))

    def close(self):
        for listener in self.listeners:
            listener.close()
        self.listeners = []

    def answer(self, case, request):
        with self.lock:
            count = self.counts[case.number]
            self.counts[case.number] += 1
            if request.method == "POST":
                self.posts[f"{case.number} {request.target}"] += 1
            for leak in leaks(request, case.number):
                self.leaks.append((case.number, "another case's secret: " + leak))
        return case.answer(request, count).steps(request.method)

    def answer_elsewhere(self, request, case):
        with self.lock:
            for leak in leaks(request, is_same_host=True):
                self.leaks.append((case.number, "at another port: " + leak))
        return Answer(request, 0, 5000).steps(request.method)

    def answer_as_proxy(self, by_host, request):
        target = urllib.parse.urlsplit(request.target)
        case = by_host.get(target.hostname or "")
        request.target = target.path + ("?" + target.query if target.query else "")
        if case is not None and target.port == PORT:
            return self.answer(case, request)
        with self.lock:
            for leak in leaks(request, is_same_host=case is not None):
                self.leaks.append((case.number if case else None, "by the proxy: " + leak))
        if request.method == "CONNECT":
            return [("send", b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), ("close",)]
        return Answer(request, 0, 5000).steps(request.method)


def innocent(request):
    """A server that does nothing wrong."""
    path = request.target.split("?")[0]
    if path == "/pub/":
        answer = Answer(request, 2, 0, b"text/html")
        answer.status = b"HTTP/1.1 200 OK"
        answer.drop(b"content-range")
        answer.set_body(b"<a href=\"a.bin\">a.bin</a> 21-Nov-2026 09:01 5000\n")
        return answer.steps(request.method)
    if path.startswith("/big"):
        # Only the requested part is generated.
        answer = Answer(request, 1, 0)
        part = request.range_of(INNOCENT_LENGTH) or (0, 1 << 20)
        answer.status = b"HTTP/1.1 206 Partial Content"
        answer.drop(b"content-range")
        answer.fields.append(
            b"Content-Range: bytes %d-%d/%d" % (part[0], part[1] - 1, INNOCENT_LENGTH))
        answer.set_body(content(1, part[0], min(part[1], part[0] + (1 << 20))))
        answer.put(b"Content-Length: %d" % (part[1] - part[0]))
        return answer.steps(request.method)
    length = 300_000 if path.startswith("/small") else 20_000
    answer = Answer(request, 3, length)
    if request["x-cut"]:
        answer.content_length = b"%d" % len(answer.body)
        answer.body_steps = [("send", answer.body[:int(request["x-cut"])]), ("wait", 0.05), ("close",)]
    return answer.steps(request.method)


def serve_innocent(path):
    """Serves what is innocent, and notes in a file which secrets came elsewhere."""
    def elsewhere(request):
        with open(path, "a") as notes:
            for leak in leaks(request):
                notes.write(json.dumps(leak) + "\n")
        return Answer(request, 0, 5000).steps(request.method)

    listeners = [Listener(INNOCENT, PORT, innocent), Listener(ELSEWHERE, PORT, elsewhere)]
    threading.Event().wait()
    return listeners


def start(target, *arguments):
    """A server in a process of its own, so that its work delays nobody's measurement."""
    process = multiprocessing.get_context("fork").Process(
        target=target, args=arguments, daemon=True)
    process.start()
    return process


def start_hostile(seed, proxy_host):
    ours, theirs = multiprocessing.Pipe()
    process = start(lambda: Hostile(seed, proxy_host, theirs).run())
    return process, ours
