"""Programs that download a URL to a file: httpfs get, aria2, axel, curl."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import Callable

from benchmarks.servers import digest_of
from benchmarks.support import TIME_LIMIT, last_line, warm_memory
from programs import Failure

# GNU time, not the shell's keyword. This small process starts the client and waits for it. A child
# started directly from here would be reported with Python's own peak, because the kernel keeps that
# across exec.
TIME_PROGRAM = "/usr/bin/time"


@dataclass(frozen=True)
class Client:
    """A program that downloads a URL to `directory`/file, and the Debian package it is in."""

    name: str
    program: str
    arguments: Callable[[str, str], list[str]]
    is_own: bool = False

    @property
    def programs(self):
        return (TIME_PROGRAM,) if self.is_own else (TIME_PROGRAM, self.program)

    def trusting(self, option, authority_path):
        """The same client that trusts one more authority."""
        return replace(self, arguments=lambda url, directory: [
            *self.arguments(url, directory), option, authority_path])


# The options that the names omit disable configuration files and progress bars.
GET = Client("httpfs get", "httpfs", lambda url, directory: ["get", "-o", f"{directory}/file", url],
             is_own=True)
ARIA2 = Client("aria2c -x16 -s16 -k1M", "aria2c",
               lambda url, directory: ["--no-conf", "--quiet", "-x16", "-s16", "-k1M",
                                       "-d", directory, "-o", "file", url])
AXEL = Client("axel -n 16", "axel",
              lambda url, directory: ["--quiet", "-n", "16", "-o", f"{directory}/file", url])
# The same number of connections on both sides: httpfs uses up to 32 if nothing else is said.
GET_16 = Client("httpfs get -x 16", "httpfs",
                lambda url, directory: ["get", "-x", "16", "-o", f"{directory}/file", url],
                is_own=True)
AXEL_32 = Client("axel -n 32", "axel",
                 lambda url, directory: ["--quiet", "-n", "32", "-o", f"{directory}/file", url])
# --disable only works as the first argument.
CURL = Client("curl -o", "curl",
              lambda url, directory: ["--disable", "--silent", "--show-error", "--fail",
                                      "-o", f"{directory}/file", url])


def _execute(bench, client, url, directory):
    """Runs a client once; gives its seconds, its processor seconds and its peak in bytes."""
    program = bench.binary("httpfs") if client.is_own else client.program
    peak_file, error_file = bench.path("peak"), bench.path("client.err")
    command = [TIME_PROGRAM, "--quiet", "--format=%M", f"--output={peak_file}", program,
               *client.arguments(url, directory)]
    with open(error_file, "w") as errors:
        start = time.monotonic()
        # Use a separate session, so the client can be ended together with `time`.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            cwd=directory, env=bench.environment(), start_new_session=True)
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
            raise Failure(f"ended with {process.returncode}: {last_line(text.read())}")
    with open(peak_file) as text:
        peak_bytes = int(text.read()) << 10
    return seconds, usage.ru_utime + usage.ru_stime, peak_bytes


class Download:
    """A client and a served file; each call downloads it once, the first one verifies it too."""

    def __init__(self, bench, client, server, served, digest):
        self.bench, self.client, self.server, self.served = bench, client, server, served
        self.digest, self.is_verified = digest, False

    def __call__(self):
        directory = tempfile.mkdtemp(prefix="download-", dir=self.bench.work)
        try:
            before = self.server.traffic()
            warm_memory(self.served.length * 6 // 5)
            seconds, cpu_seconds, peak_bytes = _execute(
                self.bench, self.client, self.served.urls[0], directory)
            self._verify(f"{directory}/file")
            traffic = self.server.traffic().since(before)
            return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak_bytes,
                    "requests": traffic.requests}
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _verify(self, path):
        if os.path.getsize(path) != self.served.length:
            raise Failure(f"left {os.path.getsize(path)} bytes of {self.served.length}")
        if not self.is_verified:
            with open(path, "rb") as file:
                if digest_of(file) != self.digest:
                    raise Failure("left wrong bytes")
            self.is_verified = True
