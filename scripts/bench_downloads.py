"""`httpfs get` without an option against aria2, axel and curl."""

import contextlib
import hashlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Callable

from bench_support import (
    MIB, Bench, Server, direct, fail, markdown, nginx, note, origin, run, spread)

HTTPFS = "httpfs get"

# A client that takes longer is ended, and the run with it: the slowest needs about 30 s.
TIME_LIMIT = 300


@dataclass(frozen=True)
class Client:
    """A program that downloads a URL to `directory`/file, and the Debian package it is in."""

    name: str
    program: str
    package: str | None
    arguments: Callable[[str, str], list[str]]


# The options that the table's names leave out keep configuration files away and bars silent.
CLIENTS = (
    Client(HTTPFS, "httpfs", None, lambda url, directory: ["get", "-o", f"{directory}/file", url]),
    Client("aria2c -x16 -s16 -k1M", "aria2c", "aria2",
           lambda url, directory: ["--no-conf", "--quiet", "-x16", "-s16", "-k1M",
                                   "-d", directory, "-o", "file", url]),
    Client("axel -n 16", "axel", "axel",
           lambda url, directory: ["--quiet", "-n", "16", "-o", f"{directory}/file", url]),
    Client("curl -o", "curl", "curl",
           lambda url, directory: ["--disable", "--silent", "--show-error", "--fail",
                                   "-o", f"{directory}/file", url]),
)

# GNU time, not the shell's word. It is a small process that starts the client and waits for it: a
# child started from here directly would be reported with Python's own peak, because the kernel
# keeps that across exec.
TIME_PROGRAM, TIME_PACKAGE = "/usr/bin/time", "time"


@dataclass(frozen=True)
class Sample:
    """One download."""

    seconds: float
    cpu_seconds: float
    peak_kibibytes: int
    request_count: int


@dataclass(frozen=True)
class Scenario:
    """What is downloaded from where; `least_seconds` is what the server's limits alone take."""

    name: str
    length: int
    server: Callable[[Bench], contextlib.AbstractContextManager[Server]]
    target: str
    least_seconds: float | None = None


def loopback_server(bench):
    """nginx with a file of 1 GiB, which has been written to the disk and is in memory."""
    root = bench.directory("www")
    with open(f"{root}/big", "wb") as file:
        block = random.Random(1).randbytes(16 * MIB)
        for number in range(1024 * MIB // len(block)):
            file.write(number.to_bytes(8, "little") + block[8:])
        file.flush()
        os.fsync(file.fileno())
    return nginx(bench, root)


LOOPBACK = Scenario("1 GiB, unlimited loopback (nginx)", 1024 * MIB, loopback_server, "/big")

SCENARIOS = (
    LOOPBACK,
    Scenario("256 MiB at 10 MB/s per connection", 256 * MIB, origin,
             f"/data/slow?length={256 * MIB}&seed=6&rate=10000000"),
    # A round trip before each response, and one more for a new connection's handshake; all the
    # client's connections share one line.
    Scenario("256 MiB at 50 ms and 100 MB/s in total", 256 * MIB, origin,
             f"/data/far?length={256 * MIB}&seed=7&latency=50&connect-latency=50"
             "&total-rate=100000000",
             least_seconds=0.1 + 256 * MIB / 100e6),
)


def is_installed(program):
    return shutil.which(program) is not None


def install_missing():
    """Installs what the comparison needs, as far as this is Debian and one may."""
    needed = {client.package: client.program for client in CLIENTS if client.package}
    needed[TIME_PACKAGE] = TIME_PROGRAM
    packages = [package for package, program in needed.items() if not is_installed(program)]
    if not packages or not is_installed("apt-get"):
        return
    elevation = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if elevation and not is_installed("sudo"):
        return
    note(f"installing {' '.join(packages)} ...")
    install = [*elevation, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes",
               "--quiet", "--no-install-recommends", *packages]
    # The lists of a fresh machine are empty or old: fetched only where the first attempt fails.
    for command in (install, [*elevation, "apt-get", "update", "--quiet"], install):
        result = subprocess.run(command, capture_output=True, text=True)
        if command is install and result.returncode == 0:
            return
    note(result.stderr)


def warm_memory(bench, length):
    """Writes and deletes a file, so that the pages which the download will take are there.

    A virtual machine gives free memory back to its host within seconds, and the first touch of it
    then costs more than the download itself; whoever comes first would pay that for the others.
    """
    path = bench.path("warm")
    block = bytes(4 * MIB)
    with open(path, "wb", buffering=0) as file:
        for _ in range(length * 6 // 5 // len(block)):
            file.write(block)
    os.remove(path)


def clean_environment(bench):
    """No proxy, no configuration of the user's, messages in English."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": bench.directory("home"),
            "LC_ALL": "C.UTF-8"}


def execute(bench, client, url, directory):
    """Runs a client once; gives its seconds, its processor seconds and its peak in KiB."""
    program = bench.binary("httpfs") if client.package is None else client.program
    peak_file, error_file = bench.path("peak"), bench.path("client.err")
    command = [TIME_PROGRAM, "--quiet", "--format=%M", f"--output={peak_file}", program,
               *client.arguments(url, directory)]
    with open(error_file, "w") as errors:
        start = time.monotonic()
        # A session of its own, so that the client can be ended together with `time`.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            cwd=directory, env=clean_environment(bench), start_new_session=True)
        watchdog = threading.Timer(TIME_LIMIT, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            watchdog.cancel()
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode != 0:
        with open(error_file) as text:
            fail(f"{client.name} ended with {process.returncode}: {text.read().strip()[-500:]}")
    with open(peak_file) as text:
        peak_kibibytes = int(text.read())
    return seconds, usage.ru_utime + usage.ru_stime, peak_kibibytes


def digest_of(stream):
    """SHA-256 of what is left of a stream, and how many bytes that was."""
    digest, length = hashlib.sha256(), 0
    while block := stream.read(MIB):
        digest.update(block)
        length += len(block)
    return digest.hexdigest(), length


def expected_digest(scenario, server):
    """SHA-256 of the whole, read over one connection and without the scenario's limits."""
    path, _, query = scenario.target.partition("?")
    limits = ("rate=", "total-rate=", "latency=", "connect-latency=")
    kept = [item for item in query.split("&") if item and not item.startswith(limits)]
    url = f"{server.base}{path}" + ("?" + "&".join(kept) if kept else "")
    with direct.open(url, timeout=60) as response:
        digest, length = digest_of(response)
    if length != scenario.length:
        fail(f"{url} has {length} bytes, not {scenario.length}")
    return digest


class Download:
    """A client in a scenario; each call downloads once, the first one verifies the file too."""

    def __init__(self, bench, scenario, client, server, digest):
        self.bench, self.scenario, self.client = bench, scenario, client
        self.server, self.digest = server, digest
        self.is_verified = False

    def __call__(self):
        bench, length = self.bench, self.scenario.length
        directory = tempfile.mkdtemp(prefix="download-", dir=bench.work)
        try:
            requests_before = self.server.request_count()
            warm_memory(bench, length)
            seconds, cpu_seconds, peak_kibibytes = execute(
                bench, self.client, self.server.base + self.scenario.target, directory)
            self.verify(os.path.join(directory, "file"))
            return Sample(seconds, cpu_seconds, peak_kibibytes,
                          self.server.request_count() - requests_before)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def verify(self, path):
        if os.path.getsize(path) != self.scenario.length:
            fail(f"{self.client.name} left {os.path.getsize(path)} bytes of {self.scenario.length}")
        if not self.is_verified:
            with open(path, "rb") as file:
                if digest_of(file)[0] != self.digest:
                    fail(f"{self.client.name} left wrong bytes: {self.scenario.name}")
            self.is_verified = True


def median(samples, member):
    return statistics.median(getattr(sample, member) for sample in samples)


def peak(samples):
    return max(sample.peak_kibibytes for sample in samples) / 1024


def rows_of(scenario, results, skipped):
    """A row for each client, the server's own limits, and the clients that are not there."""
    own = median(results[HTTPFS], "seconds")
    rows = []
    for name, samples in results.items():
        seconds = median(samples, "seconds")
        counts = sorted({sample.request_count for sample in samples})
        rows.append((
            scenario.name, name, f"{seconds:.3f} s", spread([one.seconds for one in samples]),
            f"{scenario.length / 1e6 / seconds:,.0f} MB/s",
            f"{median(samples, 'cpu_seconds'):.2f} s", f"{peak(samples):.1f} MiB",
            f"{counts[0]}–{counts[-1]}" if len(counts) > 1 else f"{counts[0]}",
            f"{seconds / own:.3f}"))
    if scenario.least_seconds is not None:
        rows.append((scenario.name, "the server's limits alone", f"{scenario.least_seconds:.3f} s",
                     "", f"{scenario.length / 1e6 / scenario.least_seconds:,.0f} MB/s", "", "", "",
                     f"{scenario.least_seconds / own:.3f}"))
    for client in skipped:
        rows.append((scenario.name, client.name, f"skipped: no {client.program} here",
                     "", "", "", "", "", ""))
    return rows


def verdict(measured, goal, *, is_least):
    return "met" if (measured >= goal if is_least else measured <= goal) else "missed"


def target_rows(results):
    """What `httpfs get` is to reach, held against what was measured."""
    rows = []
    for scenario in SCENARIOS:
        others = {name: median(samples, "seconds")
                  for name, samples in results[scenario].items() if name != HTTPFS}
        if not others:
            continue
        best = min(others, key=others.get)
        ratio = others[best] / median(results[scenario][HTTPFS], "seconds")
        rows.append((f"{scenario.name}: speed relative to the best of the others ({best})",
                     f"{ratio:.3f}", "≥ 1", verdict(ratio, 1, is_least=True)))
    curl = results[LOOPBACK].get("curl -o")
    if curl:
        ratio = median(results[LOOPBACK][HTTPFS], "cpu_seconds") / median(curl, "cpu_seconds")
        rows.append((f"{LOOPBACK.name}: processor time relative to curl", f"{ratio:.3f}", "≤ 1.2",
                     verdict(ratio, 1.2, is_least=False)))
    memory = max(peak(of_clients[HTTPFS]) for of_clients in results.values())
    rows.append(("Peak resident memory, the largest of all rounds", f"{memory:.1f} MiB",
                 "≤ 32 MiB", verdict(memory, 32, is_least=False)))
    return rows


def versions(clients):
    """What the peers are; it also brings each program into memory before its first round."""
    words = []
    for client in clients:
        if client.package:
            text = run(client.program, "--version", capture_output=True, text=True).stdout
            number = next((word for word in text.split() if word[0].isdigit()), "?")
            words.append(f"{client.package} {number}")
    return ", ".join(words)


def file_system(path):
    return run("df", "--output=fstype", path, capture_output=True, text=True).stdout.split()[-1]


COLUMNS = ("Scenario", "Client", "Median", "Spread", "Speed", "CPU", "Peak memory", "Requests",
           "Time relative to httpfs")


def measure(bench, *, is_required):
    """Runs all scenarios; gives the text for the report.

    A peer that is missing is an error where `is_required`, else a row that says so.
    """
    missing = [client for client in CLIENTS if client.package and not is_installed(client.program)]
    if missing and is_required:
        fail(f"not installed: {' '.join(client.package for client in missing)}")
    if not is_installed(TIME_PROGRAM):
        if is_required:
            fail(f"not installed: {TIME_PACKAGE} (GNU time)")
        return f"Skipped: no {TIME_PROGRAM} (Debian's package `{TIME_PACKAGE}`) here.\n"
    clients = [client for client in CLIENTS if client not in missing]
    peers = versions(clients)
    run(bench.binary("httpfs"), "--version", stdout=subprocess.DEVNULL)

    results, rows = {}, []
    for scenario in SCENARIOS:
        with scenario.server(bench) as server:
            digest = expected_digest(scenario, server)
            results[scenario] = bench.in_turns(scenario.name, {
                client.name: Download(bench, scenario, client, server, digest)
                for client in clients})
        rows += rows_of(scenario, results[scenario], missing)

    return f"""\
- Clients: `httpfs get` without an option, {peers}; files on {file_system(bench.work)}
- Method: the clients of a scenario take turns, {bench.rounds} rounds each, every download to a
  fresh directory; the median counts, for memory the largest. Spread is half of (slowest − fastest).
  Right before each download a file of 1.2 times the length is written and deleted, because a
  virtual machine gives free memory back and the next touch of it costs more than the download.
- Seconds are from the start of the process to its end, CPU is user and system time of the client
  alone. Each client's file was compared by SHA-256 once per scenario. httpfs alone syncs the file
  to the disk before the file gets its name; the others leave that to the kernel.
- Latency is a delay before each response, and once more before the first one of a connection (the
  handshake's round trip); the total rate is shared by all connections of the client. No client can
  be faster there than one connection, so a speed of 1 is as good as it gets;
  what httpfs lacks of it is its start (a few ms more than curl's) and the sync at the end.

{markdown(COLUMNS, rows)}

*Time relative to httpfs*: above 1, the client is slower than httpfs in the same scenario. "The
server's limits alone" is no measurement but the least time that rate and delay allow. Verdicts
are of the medians, not of what is printed.

{markdown(("Target", "Measured", "Goal", "Verdict"), target_rows(results))}
"""
