"""What must hold of every case, and how it is looked at."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time

from .answers import content
from .chance import secrets_in
from .server import INNOCENT, INNOCENT_LENGTH, PORT

MIB = 1 << 20
# The bounds of a quiet machine. Those of time grow with what an idle mount needs at the same moment.
READ_SECONDS = 1.0
END_SECONDS = 2.0
CPU_SECONDS = 2.0
# After this a command is told to end.
COMMAND_SECONDS = 4
# What the loop of slowness() takes on a quiet core.
QUIET_LOOP_SECONDS = 0.035
MEMORY = 96 * MIB
# What a read of a hostile file may take: its deadline, and as much again.
READ_TIMEOUT = 2
LATE_SECONDS = 2 * READ_TIMEOUT + 1

# The bounds by name, as the report and --self-check have them.
BOUNDS = {
    "alive": "the process lives: no signal, no trap, no status of its own making",
    "innocent": "another server's 4 KiB and its listing in the same mount take at most 1 s",
    "memory": "at most 96 MiB are resident",
    "cpu": "a case costs at most 2 s of CPU",
    "end": "SIGTERM ends the process in at most 2 s",
    "cache": "the cache is free then: a mount of it starts",
    "late": "no read is later than its deadline",
    "bytes": "an innocent server's bytes are right",
    "secret": "no planted secret leaves, in requests, logs, status, messages, records",
    "terminal": "no control character reaches the terminal",
    "files": "no file outside of the case's directory changes, and none inside that was there",
    "post": "no POST that was received is sent again",
}


class Violation:
    def __init__(self, bound, text):
        assert bound in BOUNDS, bound
        self.bound, self.text = bound, text

    def __str__(self):
        return f"{self.bound}: {self.text}"


class Pace:
    """How fast this machine is now: what reads through an idle mount take."""

    def __init__(self):
        self.samples = []
        self.pending = None
        # What the disk needs for the directories and the file of a new cache entry.
        self.disk = 0.0

    def began(self):
        self.pending = time.monotonic()

    def ended(self):
        now = time.monotonic()
        self.samples = [(at, took) for at, took in self.samples if at > now - 10]
        self.samples.append((now, now - self.pending))
        self.pending = None

    def slack(self):
        """What is added to a bound of time: nothing on a quiet machine."""
        pending = self.pending
        worst = max([took for _, took in self.samples] + [time.monotonic() - pending if pending else 0])
        # A first answer makes an entry of the cache, and 48 files may be looked at at once.
        return (4 * worst if worst > 0.05 else 0) + (48 * self.disk if self.disk > 0.005 else 0)

    def look_at_disk(self, directory):
        """Measures what an entry costs on the disk below a directory."""
        began = time.monotonic()
        os.makedirs(f"{directory}/pace/entry", exist_ok=True)
        with open(f"{directory}/pace/entry/new", "wb") as file:
            file.write(bytes(4096))
        os.replace(f"{directory}/pace/entry/new", f"{directory}/pace/entry/record")
        os.unlink(f"{directory}/pace/entry/record")
        os.rmdir(f"{directory}/pace/entry")
        # It falls slowly: one fast moment is no fast disk.
        self.disk = max(time.monotonic() - began, self.disk * 0.95)


class Snapshot:
    """What files are below a directory, and how they are."""

    def __init__(self, directory, without=()):
        self.files = {}
        for root, directories, names in os.walk(directory):
            directories[:] = [name for name in directories if f"{root}/{name}" not in without]
            for name in names + directories:
                path = f"{root}/{name}"
                with contextlib.suppress(OSError):
                    facts = os.lstat(path)
                    self.files[path] = (
                        facts.st_mode, facts.st_ino, facts.st_uid,
                        facts.st_mtime_ns if name in names else 0, facts.st_size if name in names else 0)

    def changes(self, later, without=()):
        """The paths that differ in a later snapshot."""
        paths = {path for path in self.files.keys() | later.files.keys()
                 if self.files.get(path) != later.files.get(path)}
        return sorted(path for path in paths if not path.startswith(tuple(without) or ("\0",)))


# Controls but for newline, tab and carriage return, and those of 8 bits, as UTF-8.
CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


def look_at_text(what, data, is_for_terminal=False):
    """Violations that a text shows by itself."""
    found = [Violation("secret", f"{what}: …{text}…") for text in secrets_in(data)[:1]]
    control = CONTROLS.search(data) if is_for_terminal else None
    if control:
        found.append(Violation(
            "terminal", f"{what}: {data[max(0, control.start() - 40):control.end() + 10]!r}"))
    return found


def look_at_records(directory):
    """Violations in the names and records of a cache or a download; data files are the servers'."""
    found = []
    for root, directories, names in os.walk(directory):
        for name in names:
            found += look_at_text(f"name of {name}", name)
            if name.startswith("data-") or name.endswith(".httpfs-part"):
                continue
            with contextlib.suppress(OSError):
                with open(f"{root}/{name}", "rb") as file:
                    found += look_at_text(f"record {os.path.relpath(root, directory)}/{name}",
                                          file.read(4 * MIB))
    return found


def of_process(pid):
    """CPU seconds and the most memory that a process has had; None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        memory = 0
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    memory = int(line.split()[1]) << 10
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), memory
    except (OSError, IndexError):
        return None


def slowness():
    """How many times as much processor time a fixed loop costs now as on a quiet core of 2.6 GHz.

    A core that is shared, or whose caches are, needs more of it for the same work.
    """
    began = time.process_time()
    total = 0
    for index in range(1_000_000):
        total += index & 7
    return max(1.0, (time.process_time() - began) / QUIET_LOOP_SECONDS)


def is_costly(seconds, most=CPU_SECONDS):
    """Whether so much processor time is above a bound, at the pace that the machine has now."""
    # The best of some: a look at the pace is not to be unlucky itself.
    return seconds > most and seconds > most * min(slowness() for _ in range(3))


class Child:
    """A process under test, and what it has cost."""

    def __init__(self, command, directory, environment, name="run"):
        self.output, self.errors = f"{directory}/{name}.out", f"{directory}/{name}.err"
        self.cpu, self.memory, self.status = 0.0, 0, None
        self.began = time.monotonic()
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=errors)
        self.pid = self.process.pid
        # A process begins with its parent's peak on the books of wait4(2).
        self.parents_memory = of_process(os.getpid())[1]

    def poll(self):
        """Looks at it; gives its exit status, negative for a signal, or None while it runs."""
        if self.status is None:
            # Only where it still runs: a process that has ended has no memory.
            facts = of_process(self.pid)
            if facts:
                self.cpu, self.memory = max(self.cpu, facts[0]), max(self.memory, facts[1])
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu = usage.ru_utime + usage.ru_stime
                if usage.ru_maxrss << 10 > self.parents_memory:
                    self.memory = max(self.memory, usage.ru_maxrss << 10)
        return self.status

    def wait(self, seconds):
        deadline = time.monotonic() + seconds
        pause = 0.002
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(0.02, pause * 1.3)
        return self.status

    def signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def end(self, pace, is_expected=(0,)):
        """Asks it to end; gives what is wrong with how it does."""
        found = []
        began = time.monotonic()
        self.signal(signal.SIGTERM)
        if self.wait(END_SECONDS) is None and self.wait(pace.slack()) is None:
            self.wait(8)
            took = time.monotonic() - began
            found.append(Violation(
                "end", f"SIGTERM, {took:.1f} s later it " + (
                    "still runs" if self.status is None else "has ended")))
            self.kill()
        elif self.status not in is_expected:
            found.append(Violation("alive", f"ended by SIGTERM with {self.status}: {self.tail()}"))
        return found

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(10)

    def costs(self, cpu_seconds=CPU_SECONDS):
        """What is wrong with what it has cost so far."""
        self.poll()
        found = []
        if is_costly(self.cpu, cpu_seconds):
            found.append(Violation("cpu", f"{self.cpu:.1f} s"))
        if self.memory > MEMORY:
            found.append(Violation("memory", f"{self.memory / MIB:.0f} MiB"))
        return found

    def tail(self):
        with open(self.errors, "rb") as file:
            return file.read()[-300:].decode("latin-1").strip().replace("\n", " | ")


class Prober(threading.Thread):
    """Reads an innocent file, 4 KiB at a time where nobody has read yet, and notes what it takes."""

    def __init__(self, mountpoint, chance, pace, is_control=False):
        super().__init__(daemon=True)
        self.mountpoint, self.chance, self.pace, self.is_control = mountpoint, chance, pace, is_control
        self.found, self.count, self.worst = [], 0, 0.0
        self.is_over = threading.Event()
        # What a read in progress began at: one that hangs is late, too.
        self.pending = None

    def run(self):
        turn = 0
        while not self.is_over.wait(0.03):
            turn += 1
            name, call = ("listing", self.look) if turn % 8 == 0 else ("read", self.read)
            if self.is_control:
                self.pace.began()
            self.pending = time.monotonic()
            error = None
            try:
                call()
            except OSError as failure:
                error = failure
            took, self.pending = time.monotonic() - self.pending, None
            if self.is_control:
                self.pace.ended()
                self.pace.look_at_disk(os.path.dirname(self.mountpoint))
                continue
            self.count += 1
            self.worst = max(self.worst, took)
            if self.is_over.is_set():
                return
            if took > READ_SECONDS and took > READ_SECONDS + self.pace.slack():
                self.found.append(Violation("innocent", f"a {name} took {took:.1f} s"))
            if error is not None:
                self.found.append(Violation("innocent", f"a {name} failed: {error.strerror}"))

    def read(self):
        offset = self.chance.randrange(INNOCENT_LENGTH // 4096 - 1) * 4096
        descriptor = os.open(f"{self.mountpoint}/innocent.bin", os.O_RDONLY)
        try:
            data = os.pread(descriptor, 4096, offset)
        finally:
            os.close(descriptor)
        if data != content(1, offset, offset + 4096):
            self.found.append(Violation("bytes", f"of innocent.bin at {offset}"))

    def look(self):
        if os.listdir(f"{self.mountpoint}/pub") != ["a.bin"]:
            self.found.append(Violation("bytes", "of the innocent listing"))

    def finish(self):
        """Ends it, and gives what it has found."""
        pending = self.pending
        if pending is not None:
            # Nothing that is under way is cut off: it shows how long it takes.
            self.join(READ_SECONDS + self.pace.slack() - (time.monotonic() - pending) + 0.2)
            if self.pending == pending:
                self.found.append(Violation(
                    "innocent", f"a read has waited for {time.monotonic() - pending:.1f} s"))
        self.is_over.set()
        return self.found[:2]


INNOCENT_LINES = (
    f"http://{INNOCENT}:{PORT}/big.bin\n  out=innocent.bin\nhttp://{INNOCENT}:{PORT}/pub/\n  out=pub\n")
