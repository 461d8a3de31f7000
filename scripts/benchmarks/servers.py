"""The servers: our Origin for round trips and throttles, nginx as a real server.

Both serve *directories* of files with a listing, because some peers mount nothing else.
"""

import contextlib
import hashlib
import json
import os
import random
import time
from dataclasses import dataclass

import programs
from benchmarks.figures import MIB
from benchmarks.support import SEARCH_PATH, TIME_LIMIT, free_port, listens, run
from programs import child, wait_until

LATENCY = 0.050

# A round trip before each response, and one more for a new connection's handshake.
FAR = {"latency": 50, "connect-latency": 50}


@dataclass(frozen=True)
class Served:
    """Files of one directory of a server: its URL, which ends in a slash, names, length of each."""

    url: str
    names: list[str]
    length: int

    @property
    def urls(self):
        return [self.url + name for name in self.names]


@dataclass(frozen=True)
class Traffic:
    """What a server has answered up to now: requests, and bytes of bodies."""

    requests: int
    body_bytes: int

    def since(self, earlier):
        return Traffic(self.requests - earlier.requests, self.body_bytes - earlier.body_bytes)


def digest_of(stream):
    """SHA-256 of what is left of a stream."""
    digest = hashlib.sha256()
    while block := stream.read(MIB):
        digest.update(block)
    return digest.hexdigest()


def listing(names, length):
    """A page as nginx's autoindex writes it, but for the width of its columns."""
    lines = [f'<a href="{name}">{name}</a> 01-Jan-2020 01:00 {length}\r\n' for name in names]
    return ("<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n<h1>Index of /</h1><hr>"
            '<pre><a href="../">../</a>\r\n' + "".join(lines) + "</pre><hr></body>\r\n</html>\r\n")


class Origin(programs.Origin):
    """Our Origin, with directories of files that it serves."""

    def control(self, message):
        self.post("/control", message, seconds=TIME_LIMIT)

    def serve(self, directory, names, length, *, is_listed=True, **parameters):
        """Serves generated files of this length in a directory, with the Origin's parameters."""
        path = f"/data/{directory}/"
        texts = {name: str(value) for name, value in ({"length": length} | parameters).items()}
        self.control({"match": path + "*", "parameters": texts})
        if is_listed:
            page = listing(names, length)
            head = ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                    f"Content-Length: {len(page)}\r\n\r\n")
            # httpdirfs omits the slash in its request. Send one rule per message: a message has at
            # most 1 MiB.
            for asked in (path, path.removesuffix("/")):
                self.control([{"match": {"path": asked, "method": "GET"},
                               "actions": [{"text": head + page}]}])
        return Served(self.base + path, list(names), length)

    def digest(self, served, name):
        """SHA-256 of a served file, read without the scenario's limits: its bytes depend on the
        name alone."""
        with self.open(f"/data/{name}?length={served.length}", seconds=TIME_LIMIT) as response:
            return digest_of(response)

    def digest_of_pieces(self, served, name, offsets, count):
        """SHA-256 of `count` bytes at each of the offsets of a served file, in this order."""
        digest = hashlib.sha256()
        for offset in offsets:
            digest.update(self.get(
                f"/data/{name}?length={served.length}", seconds=TIME_LIMIT,
                headers={"Range": f"bytes={offset}-{offset + count - 1}"}))
        return digest.hexdigest()

    def traffic(self):
        values = json.loads(self.get("/stats", seconds=TIME_LIMIT))
        return Traffic(values["requests"], values["body_bytes_sent"])


@contextlib.contextmanager
def origin(bench):
    server = Origin(bench.binary("Origin"), bench.path("origin.out"))
    try:
        yield server
    finally:
        server.end()


@dataclass(frozen=True)
class Certificate:
    """A server's certificate and key, and the authority that vouches for it: PEM files."""

    path: str
    key_path: str
    authority_path: str


def certificate(bench):
    """A certificate of `localhost` and `127.0.0.1`, by an authority of this run."""
    directory = bench.directory("authority")
    authority, key = f"{directory}/ca.pem", f"{directory}/ca.key"
    made = Certificate(f"{directory}/server.pem", f"{directory}/server.key", authority)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    with open(f"{directory}/names", "w") as text:
        text.write("subjectAltName = DNS:localhost, IP:127.0.0.1\n")
    quiet = {"capture_output": True}
    run("openssl", "req", "-x509", *curve, "-days", "30", "-keyout", key, "-out", authority,
        "-subj", "/CN=httpfs bench authority", **quiet)
    run("openssl", "req", *curve, "-keyout", made.key_path, "-out", f"{directory}/server.csr",
        "-subj", "/CN=localhost", **quiet)
    run("openssl", "x509", "-req", "-in", f"{directory}/server.csr", "-CA", authority, "-CAkey",
        key, "-CAcreateserial", "-days", "30", "-extfile", f"{directory}/names", "-out", made.path,
        **quiet)
    return made


class Nginx:
    """An nginx of our own, running."""

    def __init__(self, base, root, log):
        self.base, self.root, self.log = base, root, log

    def files(self, names):
        """Files of the server's directory, all of one length."""
        return Served(self.base + "/", list(names), os.path.getsize(f"{self.root}/{names[0]}"))

    def digest(self, served, name):
        with open(f"{self.root}/{name}", "rb") as file:
            return digest_of(file)

    def traffic(self):
        # A request is logged when it has ended; nginx may notice a little later that its client has
        # gone.
        time.sleep(0.2)
        with open(self.log) as text:
            counts = [int(line) for line in text]
        return Traffic(len(counts), sum(counts))


@contextlib.contextmanager
def nginx(bench, root, *, tls=None):
    """nginx on `root`, as one worker without any limit; with a certificate it speaks TLS."""
    port = free_port()
    directory = bench.directory("nginx")
    log = f"{directory}/access.log"
    with open(log, "w"):
        pass
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    security = f"ssl_certificate {tls.path}; ssl_certificate_key {tls.key_path};" if tls else ""
    with open(f"{directory}/nginx.conf", "w") as configuration:
        configuration.write(
            f"daemon off; master_process off; pid {directory}/pid;\n"
            f"error_log {directory}/error.log warn; events {{ worker_connections 1024; }}\n"
            f"http {{ {temporary} log_format bytes $body_bytes_sent; access_log {log} bytes;\n"
            f"sendfile on; keepalive_requests 1000000; autoindex on;\n"
            # nginx sends this only with a 200; httpfs2 requires it with every 206.
            f"add_header Accept-Ranges bytes;\n"
            f"autoindex_exact_size on; default_type application/octet-stream;\n"
            f"server {{ listen 127.0.0.1:{port}{' ssl' if tls else ''}; root {root}; {security} }} "
            "}\n")
    with child("nginx", "-p", directory, "-e", f"{directory}/error.log", "-c",
               f"{directory}/nginx.conf", env=dict(os.environ, PATH=SEARCH_PATH)):
        wait_until(lambda: listens(port), 10, "nginx")
        yield Nginx(f"http{'s' if tls else ''}://127.0.0.1:{port}", root, log)


def write_file(path, length):
    """Writes a file of random blocks, none like another, to the disk; it stays in memory."""
    block = random.Random(1).randbytes(16 * MIB)
    with open(path, "wb") as file:
        for start in range(0, length, len(block)):
            piece = start.to_bytes(8, "little") + block[8:]
            file.write(piece[:length - start])
        file.flush()
        os.fsync(file.fileno())
