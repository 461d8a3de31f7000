"""Programs as child processes, and bounded waits, shared by scripts/bench and scripts/torture."""

import contextlib
import json
import os
import subprocess
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20

# All connections from here are to the loopback, whatever proxy the environment names.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Failure(Exception):
    """What was wanted did not come. It costs a benchmark one variant, and a torture test its run."""


def wait_until(condition, seconds, what, *, interval=0.01):
    """Waits for a condition to hold and gives its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(interval)
    raise Failure(f"no {what} within {seconds} s")


def end(process, seconds=15):
    """Ends a child process, whatever state it is in."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def child(*command, **options):
    """A process that ends with the block."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        end(process)


def memory_of(process, field):
    """The memory of a process in bytes: VmRSS now, VmHWM at its peak."""
    try:
        with open(f"/proc/{process}/status") as text:
            for line in text:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    raise Failure(f"no {field} of process {process}: it has ended")


def mount_points(process="self"):
    """Where something is mounted, as the process sees it; nothing where it has ended."""
    try:
        with open(f"/proc/{process}/mountinfo") as table:
            return [line.split()[4] for line in table]
    except OSError:
        return []


def is_mounted(path, process="self"):
    return path in mount_points(process)


def has_mounts(directory):
    """Whether something is mounted below a directory."""
    return any(path.startswith(directory + "/") for path in mount_points())


class Origin:
    """Our Origin as a child process on a port of its own; what it says goes to a file."""

    def __init__(self, program, output_path):
        with open(output_path, "w") as output:
            self.process = subprocess.Popen([program], stdout=output, stdin=subprocess.DEVNULL)

        def address():
            if self.process.poll() is not None:
                raise Failure("Origin ended at once")
            with open(output_path) as text:
                return text.read().strip().rpartition(" ")[2]

        try:
            self.base = "http://" + wait_until(address, 10, "Origin")
        except BaseException:
            self.end()
            raise

    def end(self):
        end(self.process)

    def open(self, path, *, body=None, headers=None, seconds=20):
        """The response to a request, with a body that of a POST; the caller closes it."""
        request = urllib.request.Request(self.base + path, data=body, headers=headers or {})
        return direct.open(request, timeout=seconds)

    def get(self, path, **options):
        with self.open(path, **options) as response:
            return response.read()

    def post(self, path, message=None, **options):
        self.get(path, body=b"" if message is None else json.dumps(message).encode(), **options)
