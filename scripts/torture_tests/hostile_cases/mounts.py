"""Cases that share a mount: hostile servers, each with its reader, beside an innocent one."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from .bounds import (INNOCENT_LINES, LATE_SECONDS, READ_SECONDS, READ_TIMEOUT, Child, Prober, Snapshot,
                     Violation, look_at_records, look_at_text)
from .server import INNOCENT, PORT, PROXY_PORT

# A batch is ended after this time, even with readers: SIGTERM must handle requests in flight.
BATCH_SECONDS = 7


class Mounted:
    """An httpfs mount in a directory of its own."""

    def __init__(self, job, directory, options=(), environment=None, name="mount"):
        self.job, self.directory = job, directory
        self.point, self.cache = f"{directory}/mnt", f"{directory}/cache"
        self.list = f"{directory}/urls.txt"
        # Whether its files were read to the end, so each of them must have been requested.
        self.is_exercised = False
        os.makedirs(self.point, exist_ok=True)
        self.child = Child(
            [job.httpfs, "mount", "--no-config", "--cache-dir", self.cache, "--read-timeout",
             str(READ_TIMEOUT), "--revalidate", "0", "--listing-ttl", "1", *options, self.list,
             self.point], directory, {**job.environment(directory), **(environment or {})}, name)

    def wait(self, seconds=10):
        """Waits for it to be mounted; gives what is wrong where it is not, or is so late."""
        began, took = time.monotonic(), 0.0
        while took <= self.job.pace.limit(seconds):
            with open(self.child.output, "rb") as file:
                is_mounted = file.read().startswith(b"mounted ")
            took = time.monotonic() - began
            if is_mounted:
                return self.job.pace.judged("alive", f"mounted after {took:.1f} s", took, seconds)
            if self.child.poll() is not None:
                return [Violation("alive", f"mount ended with {self.child.status}: {self.child.tail()}")]
            time.sleep(0.01)
        return [Violation("alive", f"not mounted after {took:.1f} s")]

    def is_mounted(self):
        with open("/proc/self/mountinfo") as table:
            return any(f" {self.point} " in line for line in table)

    def tear_down(self):
        """Leaves nothing of it behind, whatever state it is in."""
        self.child.kill()
        deadline = time.monotonic() + 5
        while self.is_mounted() and time.monotonic() < deadline:
            # The watchdog does this, too.
            subprocess.run(["umount", "-l", self.point], stderr=subprocess.DEVNULL, timeout=20)
            time.sleep(0.01)


class Reader(threading.Thread):
    """Does to a hostile file or directory what programs do."""

    def __init__(self, path, is_directory, pace):
        super().__init__(daemon=True)
        self.path, self.is_directory, self.pace = path, is_directory, pace
        self.slowest = (0.0, "")
        self.names = []
        self.attributes = b""
        self.ends = time.monotonic() + BATCH_SECONDS - 1

    def timed(self, what, call, *arguments):
        began = time.monotonic()
        try:
            return call(*arguments)
        finally:
            self.slowest = max(self.slowest, (time.monotonic() - began, what))

    def run(self):
        with contextlib.suppress(OSError):
            (self.walk if self.is_directory else self.read)(self.path)

    def read(self, path):
        size = self.timed("stat", os.stat, path).st_size
        with contextlib.suppress(OSError):
            for name in os.listxattr(path):
                self.attributes += os.getxattr(path, name) + b"\n"
        descriptor = self.timed("open", os.open, path, os.O_RDONLY)
        try:
            for offset in (0, max(0, size - 4096), size // 2, 1 << 20, (1 << 62) + 5):
                if time.monotonic() > self.ends:
                    return
                with contextlib.suppress(OSError):
                    self.timed(f"read at {offset}", os.pread, descriptor, 65_536, offset)
            for _ in range(20):
                if not self.timed("read", os.read, descriptor, 131_072) or time.monotonic() > self.ends:
                    return
        finally:
            os.close(descriptor)

    def walk(self, path, depth=0):
        names = self.timed("listing", os.listdir, path)
        self.names += names[:1000]
        # A program that looks up two files after a listing makes the mount ask about all of them.
        # The reader causes these thousands of requests, so no case's bound applies.
        for index, name in enumerate(names[:12 if len(names) <= 1000 else 1]):
            if time.monotonic() > self.ends:
                return
            with contextlib.suppress(OSError):
                facts = self.timed("lstat", os.lstat, f"{path}/{name}")
                if facts.st_mode & 0o170000 == 0o040000:
                    if depth < 3:
                        self.walk(f"{path}/{name}", depth + 1)
                elif index < 3:
                    self.read(f"{path}/{name}")


def entry_of(case):
    """The lines of a case in the list of its mount: secrets in each place that may have them."""
    user = "" if case.number % 3 == 0 else f"user:CANARYpw{case.number}@"
    base = f"http://{user}{case.host}:{PORT}/{case.number}/"
    fields = f"  header=X-Secret: CANARYhdr{case.number}\n"
    if case.page is not None:
        return f"{base}\n  out=c{case.number}\n{fields}"
    return (f"{base}f.bin?X-Amz-Signature=CANARYsig{case.number}&X-Amz-Credential=c&token="
            f"CANARYtok{case.number}\n  out=c{case.number}.bin\n{fields}")


def write_private(path, text):
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text if isinstance(text, bytes) else text.encode())


def run(job, cases, sabotage=None):
    """Runs the cases in one mount; gives the violations, each with the case where that is known."""
    directory = job.directory()
    for name in ("home", "outside"):
        os.makedirs(f"{directory}/{name}")
        write_private(f"{directory}/{name}/.bashrc", "mine\n")
    write_private(f"{directory}/urls.txt", INNOCENT_LINES + "".join(map(entry_of, cases)))
    write_private(f"{directory}/netrc", "".join(
        f"machine {case.host} login l password CANARYnet{case.number}\n"
        for case in cases if case.number % 3 == 0))
    write_private(f"{directory}/cookies", "".join(
        f"{case.host}\tFALSE\t/\tFALSE\t0\tck\tCANARYck{case.number}\n" for case in cases))
    environment = {}
    if cases[0].number % 5 == 0:
        environment = {"http_proxy": f"http://pu:CANARYproxy@{job.proxy_host}:{PROXY_PORT}",
                       "no_proxy": INNOCENT}
    options = ["--netrc-file", f"{directory}/netrc", "--log-file", f"{directory}/log",
               "--log-level", "debug" if cases[0].number % 2 else "warning", "-H", "X-Cmd: CANARYcmd"]
    if cases[0].number % 4 < 2:
        options += ["--cookies", f"{directory}/cookies"]
    if cases[0].number % 7 == 0:
        options += ["--trace", f"{directory}/trace"]
    job.open(cases)
    before = Snapshot(directory)
    mount = Mounted(job, directory, options, environment)
    found = []
    try:
        found += [(None, violation) for violation in mount.wait()]
        if not found:
            found += exercise(job, mount, cases, options, environment, sabotage)
    finally:
        mount.tear_down()
        report = job.close()
    found += [(number, Violation("secret", text)) for number, text in report["leaks"]]
    job.requests += sum(report["requests"].values())
    if mount.is_exercised:
        found += [(case.number, Violation("asked", "its server was not"))
                  for case in cases if not report["requests"].get(case.number)]
    found += look_at_files(directory, before, "trace")
    found += [(None, violation) for violation in look_at_directory(directory)]
    job.remove(directory)
    return found


def look_at_files(directory, before, *further):
    """What a mount has changed in the directory of its case, but for what is its own."""
    names = ["mnt", "cache", "log", *further] + [
        f"{name}.{kind}" for name in ("mount", "again", "status") for kind in ("out", "err")]
    after = Snapshot(directory, without=(f"{directory}/cache",))
    return [(None, Violation("files", path))
            for path in before.changes(after, [f"{directory}/{name}" for name in names])]


def look_at_directory(directory):
    """What the records and texts that a mount has left show."""
    found = look_at_records(f"{directory}/cache")
    for name in ("log", "trace", "mount.err", "mount.out", "again.err", "status.out", "status.err"):
        with contextlib.suppress(OSError):
            with open(f"{directory}/{name}", "rb") as file:
                found += look_at_text(name, file.read(), is_for_terminal=name != "trace")
    return found


def exercise(job, mount, cases, options, environment, sabotage):
    found = []
    prober = Prober(mount.point, job.chance, job.pace)
    prober.start()
    if sabotage:
        # Before any reader begins: the sabotage affects all of their reads.
        sabotage("reading", mount)
    readers = {}
    for case in cases:
        path = f"{mount.point}/c{case.number}" + ("" if case.page is not None else ".bin")
        readers[case.number] = Reader(path, case.page is not None, job.pace)
        readers[case.number].start()
    # A batch in three is ended while its readers wait.
    until = time.monotonic() + (1.5 if cases[0].number % 3 == 1 else BATCH_SECONDS)
    while time.monotonic() < until and mount.child.poll() is None:
        if not any(reader.is_alive() for reader in readers.values()):
            break
        time.sleep(0.02)
    mount.is_exercised = mount.child.poll() is None
    # At least some probes, and the last ones after all requests were sent.
    time.sleep(0.25)
    found += [(None, violation) for violation in look_at_status(job, mount)]
    if sabotage:
        sabotage("status", mount)
    found += [(None, violation) for violation in prober.finish()]
    job.reads += prober.count
    if mount.child.poll() is not None:
        text = "killed by " + signal.Signals(-mount.child.status).name if mount.child.status < 0 \
            else f"ended with {mount.child.status}"
        found.append((None, Violation("alive", f"{text}: {mount.child.tail()}")))
    else:
        if sabotage:
            sabotage("end", mount)
        found += [(None, violation) for violation in mount.child.end(job.pace)]
    found += [(None, violation) for violation in mount.child.costs()]
    for number, reader in readers.items():
        reader.join(job.pace.bound(5))
        if reader.is_alive():
            found.append((number, Violation("late", "a reader hangs after the end of its mount")))
        took, what = reader.slowest
        found += [(number, violation) for violation in [
            *job.pace.judged("late", f"{what} took {took:.1f} s", took, LATE_SECONDS),
            *look_at_text("attributes", reader.attributes)]]
    mount.tear_down()
    if sabotage:
        sabotage("ended", mount)
    found += [(None, violation) for violation in mount_again(job, mount, options, environment)]
    return found


class Look(threading.Thread):
    """Reads a file that may never answer."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.text, self.error = path, b"", None

    def run(self):
        try:
            with open(self.path, "rb") as file:
                self.text = file.read()
        except OSError as error:
            self.error = error


def look_at_status(job, mount):
    found = []
    for name in (".status", ".status.json", ".metrics"):
        began = time.monotonic()
        look = Look(f"{mount.point}/{name}")
        look.start()
        look.join(job.pace.limit(READ_SECONDS))
        took = time.monotonic() - began
        if look.is_alive():
            found.append(Violation("innocent", f"{name} has not been read after {took:.1f} s"))
            break
        if look.error is not None:
            if mount.child.poll() is None:
                found.append(Violation("innocent", f"{name} cannot be read: {look.error.strerror}"))
            continue
        found += look_at_text(name, look.text, is_for_terminal=True)
        found += job.pace.judged("innocent", f"{name} took {took:.1f} s", took, READ_SECONDS)
    status = Child([job.httpfs, "status", mount.point], mount.directory,
                   job.environment(mount.directory), "status")
    found += status.ended(job.pace, "innocent", "httpfs status", 5)
    if status.status is None:
        status.kill()
    elif status.status not in (0, 1):
        found.append(Violation("alive", f"httpfs status ended with {status.status}"))
    return found + status.costs()


def mount_again(job, mount, options, environment):
    """A mount of the same cache has to start, to read, and to end."""
    again = Mounted(job, mount.directory, options, environment, "again")
    try:
        found = [Violation("cache", violation.text, violation.is_time) for violation in again.wait()]
        if not found:
            prober = Prober(again.point, job.chance, job.pace)
            try:
                prober.read()
            except OSError as error:
                prober.found.append(Violation("cache", f"a read of the next mount: {error.strerror}"))
            found = prober.found + again.child.end(job.pace)
        return found + again.child.costs()
    finally:
        again.tear_down()
