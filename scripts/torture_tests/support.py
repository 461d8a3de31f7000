"""The common parts of the tests of scripts/torture: a server, a mount, and their observation."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import programs
from programs import ROOT, Failure, end, has_mounts, is_mounted, memory_of, wait_until

DIRECTORY = os.path.dirname(os.path.abspath(__file__))
# The command of these tests.
TORTURE = os.path.join(ROOT, "scripts", "torture")

# Runs the following command without the copies of httpfs's mounts that a new mount namespace gets:
# a copy keeps its daemon running when the mount itself is unmounted.
WITHOUT_COPIES = ["sh", "-c", 'umount --all --lazy --types fuse.httpfs; exec "$@"', "sh"]

# Runs the following command in a mount namespace: it sees later mounts of the outside, but its own
# mounts are not visible there.
OWN_MOUNTS = ["unshare", "--mount", "--propagation", "slave", "--", *WITHOUT_COPIES]


def processes_of(directory):
    """Processes whose environment names the run's directory."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            with open(f"/proc/{entry}/comm") as file:
                name = file.read().strip()
        except OSError:
            continue
        if f"TMPDIR={directory}".encode() in variables:
            found.append((int(entry), name))
    return found


def raise_descriptor_limit(count):
    """Lets this process and its children have `count` descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except (ValueError, PermissionError):
        sys.exit(f"this needs {count} open files, and the limit here is {hard}: run "
                 f"'ulimit -n {count}' as root first")


class Origin(programs.Origin):
    """Our Origin, with the resources that it makes up by their names and seeds."""

    def __init__(self, binaries, work):
        super().__init__(f"{binaries}/Origin", f"{work}/origin.out")

    def url(self, name, length, seed, **parameters):
        query = "".join(f"&{key.replace('_', '-')}={value}" for key, value in parameters.items())
        return f"{self.base}/data/{name}?length={length}&seed={seed}{query}"

    def control(self, pattern, **parameters):
        parameters = {key.replace("_", "-"): value for key, value in parameters.items()}
        self.post("/control", {"match": pattern, "parameters": parameters})

    def content(self, name, length, seed, version=1):
        """The bytes of a version of a resource, fetched without httpfs."""
        return self.get(f"/data/{name}?length={length}&seed={seed}&version={version}")

    def requests(self):
        """What was asked for so far: the log's objects."""
        return [json.loads(line) for line in self.get("/log").splitlines()]

    def clear_log(self):
        self.post("/log/clear")


class Mount:
    """An httpfs mount in the foreground, as a child process."""

    def __init__(self, binaries, work, urls, options=()):
        self.mountpoint = f"{work}/mnt"
        self.list = f"{work}/urls.txt"
        self.cache = f"{work}/cache"
        self.errors = f"{work}/mount.err"
        os.makedirs(self.mountpoint, exist_ok=True)
        self.write_list(urls)
        output = open(f"{work}/mount.out", "w+")
        self.process = subprocess.Popen(
            [f"{binaries}/httpfs", "mount", *options, "--cache-dir", self.cache, self.list,
             self.mountpoint], stdin=subprocess.DEVNULL, stdout=output,
            stderr=open(self.errors, "w"))

        def ready():
            if self.process.poll() is not None:
                raise Failure(f"httpfs ended at once: {open(self.errors).read()}")
            with open(output.name) as text:
                return text.read().startswith("mounted ")

        wait_until(ready, 20, "mount")
        self.device = next(
            line.split()[2] for line in open("/proc/self/mountinfo")
            if line.split()[4] == self.mountpoint)

    def write_list(self, urls):
        # Rename: a reload must not read half of it.
        with open(f"{self.list}.new", "w") as text:
            text.write("\n".join(urls) + "\n")
        os.replace(f"{self.list}.new", self.list)

    def status(self):
        with open(f"{self.mountpoint}/.status.json") as text:
            return json.load(text)

    def memory(self, field="VmRSS"):
        """The daemon's memory in bytes: VmRSS now, VmHWM at its peak."""
        return memory_of(self.process.pid, field)

    def descriptors(self):
        """How many descriptors the daemon has, by what they lead to."""
        directory = f"/proc/{self.process.pid}/fd"
        counts = {"sockets": 0, "pipes": 0, "cache files": 0, "other descriptors": 0}
        for name in os.listdir(directory):
            with contextlib.suppress(FileNotFoundError):
                target = os.readlink(f"{directory}/{name}")
                if target.startswith("socket:"):
                    counts["sockets"] += 1
                elif target.startswith("pipe:"):
                    counts["pipes"] += 1
                elif f"{self.cache}/v" in target and "/files/" in target:
                    counts["cache files"] += 1
                else:
                    counts["other descriptors"] += 1
        return counts

    def unmount(self):
        """Ends the mount; gives the daemon's exit code."""
        subprocess.run(["fusermount3", "-u", self.mountpoint], check=True, timeout=10)
        return self.process.wait(15)

    def tear_down(self):
        if self.process.poll() is None:
            end(self.process)
        if is_mounted(self.mountpoint):
            subprocess.run(["fusermount3", "-u", "-z", self.mountpoint], timeout=10)


class Connections:
    """The kernel's directory of FUSE connections, mounted for this run where it is not; root only."""

    def __init__(self, work):
        self.path = "/sys/fs/fuse/connections"
        self.is_own = not os.listdir(self.path)
        if self.is_own:
            self.path = f"{work}/fusectl"
            os.makedirs(self.path)
            subprocess.run(["mount", "-t", "fusectl", "none", self.path], check=True)

    def waiting(self, mount):
        """How many requests of the mount the kernel waits for."""
        with open(f"{self.path}/{mount.device.partition(':')[2]}/waiting") as text:
            return int(text.read())

    def tear_down(self):
        if self.is_own:
            subprocess.run(["umount", self.path], timeout=10)


@contextlib.contextmanager
def workplace(name):
    """A directory of this run, gone at its end unless something is still mounted there."""
    # SIGTERM unwinds like Ctrl-C, so every mount is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work = os.path.realpath(tempfile.mkdtemp(prefix=f"httpfs-{name}-"))
    try:
        yield work
    finally:
        if not has_mounts(work):
            shutil.rmtree(work, ignore_errors=True)


class Verdict:
    """The figures of a run against their bounds, printed line by line."""

    def __init__(self):
        self.failures = 0

    def check(self, what, value, is_good, unit=""):
        if not is_good:
            self.failures += 1
        print(f"{'ok  ' if is_good else 'FAIL'} {what}: {value}{unit}", flush=True)

    def exit(self):
        sys.exit(1 if self.failures else 0)
