"""What all scenarios of scripts/bench share: processes, servers, rounds, tables."""

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from typing import Callable

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20

# nginx is in a directory that an ordinary user's path often lacks.
SERVER_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"

# What runs here talks to the loopback only, whatever proxy the environment names.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fail(message):
    sys.exit(f"bench: {message}")


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def note(text):
    print(text, file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    fail(f"no {what} within {seconds} s")


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def child(*command, **options):
    """A process that ends with the block."""
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Server:
    """A server that runs: its base URL, and how many requests it has answered up to now."""

    base: str
    request_count: Callable[[], int]


@contextlib.contextmanager
def origin(bench):
    """Our Origin."""
    log = bench.path("origin.out")
    with open(log, "w") as output, child(bench.binary("Origin"), stdout=output) as process:

        def address():
            if process.poll() is not None:
                fail("Origin ended at once")
            with open(log) as text:
                return text.read().strip().rpartition(" ")[2]

        base = "http://" + wait_until(address, 10, "Origin")

        def request_count():
            with direct.open(f"{base}/stats", timeout=10) as response:
                return json.load(response)["requests"]

        yield Server(base, request_count)


@contextlib.contextmanager
def nginx(bench, root):
    """An nginx of our own on `root`, as one worker without any limit."""
    port = free_port()
    directory = bench.directory("nginx")
    log = f"{directory}/access.log"
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(f"{directory}/nginx.conf", "w") as configuration:
        configuration.write(
            f"daemon off; master_process off; pid {directory}/pid;\n"
            f"error_log {directory}/error.log warn; events {{ worker_connections 1024; }}\n"
            f"http {{ {temporary} access_log {log}; sendfile on; tcp_nopush on;\n"
            f"keepalive_requests 1000000; default_type application/octet-stream;\n"
            f"server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n")

    def request_count():
        # A request is logged when it has ended; nginx may see a little later that its client went.
        time.sleep(0.2)
        with open(log, "rb") as text:
            return sum(1 for _ in text)

    with child("nginx", "-p", directory, "-e", f"{directory}/error.log", "-c",
               f"{directory}/nginx.conf", env=dict(os.environ, PATH=SERVER_PATH)):
        wait_until(lambda: listens(port), 10, "nginx")
        yield Server(f"http://127.0.0.1:{port}", request_count)


def spread(values):
    """Half of (largest − smallest) relative to the median, as a cell of a table."""
    return f"± {(max(values) - min(values)) / statistics.median(values) * 50:.0f} %"


def markdown(columns, rows):
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Bench:
    """One run: its directory, its programs, its rounds."""

    def __init__(self, work, *, binaries, rounds, quick):
        self.work = work
        self.binaries = binaries
        self.rounds = rounds
        self.quick = quick

    def path(self, name):
        return os.path.join(self.work, name)

    def directory(self, name):
        os.makedirs(self.path(name), exist_ok=True)
        return self.path(name)

    def binary(self, name):
        path = os.path.join(self.binaries, name)
        return path if os.access(path, os.X_OK) else fail(f"no program {path}")

    def in_turns(self, scenario, variants):
        """Runs the variants in turns (A B C, A B C, ...); gives for each name its results.

        `variants` maps a name to a function that measures once.
        """
        results = {name: [] for name in variants}
        for turn in range(self.rounds):
            for name, measure in variants.items():
                note(f"{scenario}: {name}, round {turn + 1} of {self.rounds} ...")
                results[name].append(measure())
        return results

    def clean_up(self):
        """Removes the run's directory, unless something is still mounted in it."""
        with open("/proc/self/mountinfo") as table:
            if not any(f" {self.work}/" in line for line in table):
                shutil.rmtree(self.work, ignore_errors=True)
