"""The conditions that must hold for every case, and their checks."""

import contextlib
import errno
import os
import re
import signal
import socket
import subprocess
import threading
import time

from .answers import content
from .chance import secrets_in
from .server import INNOCENT, INNOCENT_LENGTH, PORT

MIB = 1 << 20
# The bounds for a quiet machine. Time limits grow with the machine's own pace at the same moment,
# which Pace measures without httpfs, but at most by the factor MOST_SLOWER.
MOST_SLOWER = 2
# A time above its bound is measured again. A time above the widest bound by this factor is a sure
# violation, whatever the pace: the pace is only sampled, and may miss a slow moment.
MOST_FORGIVEN = 2
READ_SECONDS = 1.0
END_SECONDS = 2.0
CPU_SECONDS = 2.0
# A command whose server never ends is told to end after the first; any other must end by the
# second.
COMMAND_SECONDS = 4
ENDS_SECONDS = 20
MEMORY = 96 * MIB
# The limit of a read of a hostile file: twice its deadline, plus one second.
READ_TIMEOUT = 2
LATE_SECONDS = 2 * READ_TIMEOUT + 1

# The bounds by name, as in the report and in --self-check.
BOUNDS = {
    "asked": "each hostile server is asked, and what is innocent is read beside it",
    "ends": "a command ends by itself in at most 20 s, unless its server goes on for longer or its list has "
            "more than 1,000 URLs",
    "alive": "the process lives: no signal, no trap, no status of its own making",
    "innocent": "another server's 4 KiB and its listing in the same mount take at most 1 s",
    "memory": "at most 96 MiB are resident",
    "cpu": "a case costs at most 2 s of CPU, and 2 ms for each file that it stores, where they are many",
    "end": "SIGTERM ends the process in at most 2 s",
    "cache": "the cache is free then: a mount of it starts",
    "late": "no read is later than its deadline",
    "bytes": "an innocent server's bytes are right, and are there where a command says so",
    "secret": "no planted secret leaves, in requests, logs, status, messages, records",
    "terminal": "no control character reaches the terminal",
    "files": "no file outside of the case's directory changes, and none inside that was there",
    "post": "no POST that was received is sent again",
}


def most_times(cases):
    """How many times a run of so many cases may forgive: a busy machine is late now and then."""
    return 3 + cases // 100


class Violation:
    """A bound that did not hold. A time that may be the machine's doing is asked for again."""

    def __init__(self, bound, text, is_time=False):
        assert bound in BOUNDS, bound
        self.bound, self.text, self.is_time = bound, text, is_time

    def __str__(self):
        return f"{self.bound}: {self.text}"


# The largest bounds of this process that were in force, by the bounds for a quiet machine.
in_force = {}


def _note(name, seconds):
    in_force[name] = max(in_force.get(name, 0), seconds)


class Pace(threading.Thread):
    """How fast this machine is now, by what is not httpfs.

    That is how late a thread wakes up, what the innocent server's 4 KiB take without httpfs, and what
    an entry of a cache costs on the disk.
    """

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory = directory
        self.is_over = threading.Event()
        self.connection = None
        self.samples = []
        self.pending = None
        # The time that the disk needs for the directories and the file of a new cache entry.
        self.disk = 0.0

    def run(self):
        while not self.is_over.wait(0.03):
            self.pending = began = time.monotonic()
            time.sleep(0.001)
            with contextlib.suppress(OSError):
                self.ask()
            now, self.pending = time.monotonic(), None
            self.samples = [(at, took) for at, took in self.samples if at > now - 10]
            self.samples.append((now, now - began))
            self.look_at_disk()

    def ask(self):
        """Reads 4 KiB from the innocent server."""
        try:
            if self.connection is None:
                self.connection = socket.create_connection((INNOCENT, PORT), timeout=5)
            self.connection.sendall(
                b"GET /big.bin HTTP/1.1\r\nHost: pace\r\nRange: bytes=0-4095\r\n\r\n")
            data = b""
            while len(data.partition(b"\r\n\r\n")[2]) < 4096:
                piece = self.connection.recv(65_536)
                if not piece:
                    raise OSError("the innocent server has gone")
                data += piece
        except OSError:
            if self.connection:
                self.connection.close()
            self.connection = None
            raise

    def slack(self):
        """What is added to a bound of time, in seconds: nothing on a quiet machine."""
        pending = self.pending
        worst = max([took for _, took in self.samples] + [time.monotonic() - pending if pending else 0])
        # A first answer creates an entry of the cache, and 48 files may be probed at once.
        return (4 * worst if worst > 0.05 else 0) + (48 * self.disk if self.disk > 0.005 else 0)

    def bound(self, seconds):
        """The bound that is in force now, of one of a quiet machine."""
        now = min(seconds + self.slack(), MOST_SLOWER * seconds)
        _note(f"{seconds:g} s", now)
        return now

    def limit(self, seconds):
        """How long to wait for what has a bound: nothing later than that is forgiven."""
        return MOST_FORGIVEN * MOST_SLOWER * seconds

    def judged(self, bound, text, took, seconds):
        """What is wrong with a time that has a bound: nothing, or a violation, which may be sure."""
        if took <= self.bound(seconds):
            return []
        return [Violation(bound, text, took <= self.limit(seconds))]

    def look_at_disk(self):
        """Measures what an entry costs on the disk."""
        entry = f"{self.directory}/pace/entry"
        began = time.monotonic()
        os.makedirs(entry, exist_ok=True)
        with open(f"{entry}/new", "wb") as file:
            file.write(bytes(4096))
        os.replace(f"{entry}/new", f"{entry}/record")
        os.unlink(f"{entry}/record")
        os.rmdir(entry)
        # It decreases slowly: one fast moment does not mean a fast disk.
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
        """The paths that differ in a later snapshot, without those of exactly these names."""
        paths = {path for path in self.files.keys() | later.files.keys()
                 if self.files.get(path) != later.files.get(path)}
        return sorted(paths - set(without))


# Control characters except newline, tab and carriage return, and 8-bit ones as UTF-8.
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


def _loop_seconds():
    """Processor time of a fixed loop: a core that is shared, or whose caches are, needs more of it."""
    began = time.process_time()
    total = 0
    for index in range(300_000):
        total += index & 7
    return time.process_time() - began


# The duration of the loop on this machine at its best.
_best_loop = None


def calibrate():
    """Measures, before anything runs, what the loop takes here."""
    global _best_loop
    _best_loop = min(_loop_seconds() for _ in range(30))


def judged_cpu(what, seconds, most=CPU_SECONDS):
    """What is wrong with so much processor time, at the pace that the machine has now."""
    if seconds <= most:
        return []
    # The best of several: the measurement itself must not be disturbed.
    slower = min(_loop_seconds() for _ in range(5)) / _best_loop
    bound = most * min(max(1.0, slower), MOST_SLOWER)
    _note(f"{most:g} s of CPU", bound)
    if seconds <= bound:
        return []
    return [Violation("cpu", f"{seconds:.1f} s{what}", seconds <= MOST_FORGIVEN * MOST_SLOWER * most)]


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
        # In wait4(2), a process starts with its parent's peak.
        self.parents_memory = of_process(os.getpid())[1]

    def poll(self):
        """Looks at it; gives its exit status, negative for a signal, or None while it runs."""
        if self.status is None:
            # Only while it runs: an ended process has no memory.
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

    def ended(self, pace, bound, what, seconds):
        """Waits for its end for as long as is forgiven; gives what is wrong with that time."""
        began = time.monotonic()
        while self.wait(0.1) is None and time.monotonic() - began <= pace.limit(seconds):
            pass
        took = time.monotonic() - began
        if self.status is None:
            return [Violation(bound, f"{what} still runs after {took:.1f} s")]
        return pace.judged(bound, f"{what} has ended after {took:.1f} s", took, seconds)

    def signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def end(self, pace, is_expected=(0,)):
        """Asks it to end; gives what is wrong with how it does."""
        self.signal(signal.SIGTERM)
        found = self.ended(pace, "end", "SIGTERM: it", END_SECONDS)
        if self.status is None:
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
        found = judged_cpu("", self.cpu, cpu_seconds)
        if self.memory > MEMORY:
            found.append(Violation("memory", f"{self.memory / MIB:.0f} MiB"))
        return found

    def tail(self):
        with open(self.errors, "rb") as file:
            return file.read()[-300:].decode("latin-1").strip().replace("\n", " | ")


class Prober(threading.Thread):
    """Reads an innocent file, 4 KiB at a time where nobody has read yet, and notes what it takes."""

    def __init__(self, mountpoint, chance, pace):
        super().__init__(daemon=True)
        self.mountpoint, self.chance, self.pace = mountpoint, chance, pace
        self.found, self.count, self.worst = [], 0, 0.0
        self.is_over = threading.Event()
        # The start of a read in progress: a hanging read is late, too.
        self.pending = None

    def run(self):
        turn = 0
        while not self.is_over.wait(0.03):
            turn += 1
            name, call = ("listing", self.look) if turn % 8 == 0 else ("read", self.read)
            self.pending = time.monotonic()
            error = None
            try:
                call()
            except OSError as failure:
                error = failure
            took = time.monotonic() - self.pending
            self.count += 1
            self.worst = max(self.worst, took)
            if self.is_over.is_set():
                return
            self.found += self.pace.judged(
                "innocent", f"a {name} took {took:.1f} s", took, READ_SECONDS)
            if error is not None:
                # The read timeout also reports late reads.
                self.found.append(Violation("innocent", f"a {name} failed: {error.strerror}",
                                            error.errno == errno.ETIMEDOUT))
            # Only now: finish() waits for a possible violation.
            self.pending = None

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
        # Reads in flight are not aborted: their duration is the result.
        while pending is not None and self.pending == pending:
            waited = time.monotonic() - pending
            if waited > self.pace.limit(READ_SECONDS):
                self.found.append(Violation("innocent", f"a read has waited for {waited:.1f} s"))
                break
            time.sleep(0.02)
        self.is_over.set()
        if self.count == 0 and not self.found:
            self.found.append(Violation("asked", "nothing innocent was read"))
        # Sure violations come first.
        return sorted(self.found, key=lambda violation: violation.is_time)[:2]


INNOCENT_LINES = (
    f"http://{INNOCENT}:{PORT}/big.bin\n  out=innocent.bin\nhttp://{INNOCENT}:{PORT}/pub/\n  out=pub\n")
