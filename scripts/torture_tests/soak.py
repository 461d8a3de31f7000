"""Lets 64 readers read for minutes from a mount under faults, evictions, remote changes and reloads.

Usage: scripts/torture soak [--seconds N] [--readers N] [--seed S] [--binaries DIRECTORY]
  --seconds   how long (default 600)
  --readers   how many threads read (default 64)
  --seed      decides bytes, places and faults; not their times (default: drawn and printed)
  --binaries  where httpfs and Origin are (default .build/release)
Prints figures with their bounds: no wrong byte, no short read, no call past its deadline, no error of a
file that no trouble of that file and moment explains, as many reads as the machine's pace lets expect
(that of one reader of plain files) and few of them failed, and at the end the newest version of every file,
descriptors, requests in the kernel, inode table and memory back where they were after a first read
of everything. Needs root, to look at the kernel's connections and to let it forget what it keeps.
Exit status: 0 all hold, 1 one does not.
"""

import argparse
import collections
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time

from programs import MIB, ROOT, wait_until
from torture_tests.support import (Connections, Mount, Origin, Verdict, raise_descriptor_limit,
                                   workplace)

READ_TIMEOUT = 4
# The time that a call may take beyond the deadline of a read.
GRACE = 5
# More bytes than the cache may hold, so files are evicted all the time.
LENGTHS = [3 * MIB + 17 * index for index in range(16)]
CACHE_LIMIT = 24 * MIB
VERSIONS = (1, 2, 3)
# The maximum number of the queues' idle workers, which will end.
THREAD_ALLOWANCE = 64
# Connections are kept for the next request: at most as many as a host gets.
SOCKET_ALLOWANCE = 64
# Cached facts, and the allocator's reserve; not a byte for each fault.
MEMORY_ALLOWANCE = 24 * MIB

FAULTS = [
    {"fault": "truncate"}, {"fault": "reset"}, {"fault": "stall", "stall_seconds": "2"},
    {"fault": "stall"}, {"fault": "stall-head", "stall_seconds": "1"},
    {"status": "503", "retry_after": "1"}, {"status": "429", "retry_after": "1"},
    {"status": "500"}, {"status": "404"}, {"status": "403"}, {"fault": "ignore-range"},
    {"fault": "wrong-content-range"}, {"fault": "missing-content-range"},
    {"fault": "earlier-range"}, {"fault": "empty-206"}, {"fault": "short-body"},
    {"fault": "extra-bytes"}, {"fault": "length-and-chunked"}, {"fault": "silent-close"},
    {"fault": "html-200"}, {"fault": "gzip"}, {"fault": "header-bomb"},
    {"fault": "redirect-loop"}, {"rate": "100k"}, {"latency": "300"},
]
# Answers that look like another document.
DOUBTFUL = ("html-200", "gzip")
# The maximum duration of a question to a server.
DOUBT_SECONDS = READ_TIMEOUT + GRACE
# The error that each status gives readers of its file; the only other cause is a list without it.
STATUS_ERRORS = {"404": errno.ENOENT, "403": errno.EACCES}
# The statuses that delay the whole host.
HOST_STATUSES = ("503", "429")
# The other errors that a reader may get: for a file with any fault or while the host is delayed;
# and for one that has changed, or whose answers looked changed.
OF_TROUBLE = {errno.EIO, errno.ETIMEDOUT}
# The seconds for which an ended cause may still be seen: a read's deadline, and cached failures.
AFTERWARDS = READ_TIMEOUT + GRACE
# The reading of a list, and names that the kernel caches for a second.
AFTER_RELOAD = 4
# The maximum shares of short reads in mid file although the next byte arrives. A read of this
# duration has met the deadline, which the next one does not meet. Others that waited are few of all
# that waited, and the rest are few of all reads.
EXPLAINED, WAITED = 0.8 * READ_TIMEOUT, 0.5
MOST_SHORT = {"short at the deadline": 0.001, "short after a wait": 0.1, "short at once": 0.001}
# The maximum share of failed calls.
MOST_FAILED = 0.2
# The minimum shares of the pace of one reader of plain files: for all readers together under
# faults, and for one calm reader of the mount; and the minimum mean of bytes per read, of 50,176
# requested ones.
LEAST_PACE, LEAST_CALM, LEAST_BYTES = 0.05, 0.05, 25_000
CALM_SECONDS = 2
# A version that no file has before the end, and the time limit for the mount to show it.
LAST_VERSION, RECOVERY = 4, 12.0


class Causes:
    """Since when and until when each error of each file has a cause; all files, where the name is None."""

    def __init__(self):
        self.lock = threading.Lock()
        # For a file and an error: the begin and the end of each cause; the last may have no end.
        self.spans = collections.defaultdict(list)

    def begin(self, name, code):
        with self.lock:
            spans = self.spans[name, code]
            if not spans or spans[-1][1] is not None:
                spans.append([time.monotonic(), None])

    def end(self, name, code, afterwards=AFTERWARDS):
        """From so many seconds later on there is no cause any more."""
        with self.lock:
            spans = self.spans[name, code]
            if spans and spans[-1][1] is None:
                spans[-1][1] = time.monotonic() + afterwards

    def end_all(self):
        with self.lock:
            for (_, code), spans in self.spans.items():
                # A changed file may be stale in a handle that was opened before.
                if spans[-1][1] is None and code != errno.ESTALE:
                    spans[-1][1] = time.monotonic() + AFTERWARDS

    def allow(self, name, code, began, ended):
        with self.lock:
            return any(begin <= ended and (end is None or began <= end)
                       for key in ((name, code), (None, code)) for begin, end in self.spans.get(key, ()))


class Soak:
    """The files, what is done to them, and what the readers have seen."""

    def __init__(self, arguments, work):
        self.arguments = arguments
        self.random = random.Random(arguments.seed)
        self.origin = Origin(arguments.binaries, work)
        self.names = [f"s{index}.bin" for index in range(len(LENGTHS))]
        self.seeds = {name: self.random.getrandbits(32) for name in self.names}
        self.contents = {
            (name, version): self.origin.content(name, length, self.seeds[name], version)
            for name, length in zip(self.names, LENGTHS) for version in VERSIONS}
        self.urls = [self.origin.url(name, length, self.seeds[name])
                     for name, length in zip(self.names, LENGTHS)]
        # The same bytes without httpfs, which show the machine's pace.
        self.plain = f"{work}/plain"
        os.mkdir(self.plain)
        for name in self.names:
            with open(f"{self.plain}/{name}", "wb") as file:
                file.write(self.contents[name, 1])
        self.mount = Mount(
            arguments.binaries, work, self.urls,
            ["--read-timeout", str(READ_TIMEOUT), "--revalidate", "0.3", "--cache-size",
             str(CACHE_LIMIT), "--log-level", "critical"])
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.errors = collections.Counter()
        self.causes = Causes()
        # Files off the list have a separate cause: an earlier answer of the server may end
        # meanwhile.
        self.unlisted = Causes()
        self.statuses = {}
        self.unexpected = []
        self.shorts = []
        # The time at which the last call of this thread began.
        self.began = threading.local()
        self.slowest = 0.0
        self.is_over = threading.Event()

    def timed(self, call, *arguments):
        """Makes a call that may wait, and notes how long it took."""
        self.began.value = began = time.monotonic()
        try:
            return call(*arguments)
        finally:
            seconds = time.monotonic() - began
            with self.lock:
                self.slowest = max(self.slowest, seconds)
                if seconds > READ_TIMEOUT + GRACE:
                    self.counts["late"] += 1

    def read_handle(self, choice, name, directory=None):
        """Opens a file, reads some of it, and holds every byte against one version of it."""
        descriptor = self.timed(os.open, f"{directory or self.mount.mountpoint}/{name}", os.O_RDONLY)
        try:
            versions = set(VERSIONS)
            length = LENGTHS[self.names.index(name)]
            offset = choice.randrange(length)
            is_sequential = choice.random() < 0.5
            for _ in range(choice.randrange(1, 24)):
                # A handle may take long although none of its reads is late: at 100 KB/s, 20 s and
                # more.
                if self.is_over.is_set():
                    return
                if not is_sequential:
                    offset = choice.randrange(length)
                count = choice.choice((1, 4096, 65_536, 131_072))
                began = time.monotonic()
                piece = self.timed(os.pread, descriptor, count, offset)
                seconds = time.monotonic() - began
                if len(piece) < count and offset + len(piece) < length:
                    self.judge_short(descriptor, name, offset, piece, count, seconds)
                # Two versions may agree in a byte; a handle belongs to one of those that fit so
                # far.
                versions = {version for version in versions
                            if self.contents[name, version].startswith(piece, offset)}
                with self.lock:
                    self.counts["reads"] += 1
                    self.counts["waits"] += WAITED <= seconds < EXPLAINED
                    self.counts["bytes"] += len(piece)
                    if not versions or (not piece and offset < length):
                        self.counts["wrong"] += 1
                        self.unexpected.append(
                            f"wrong bytes of {name} at {offset}: {len(piece)} of {count},"
                            f" {piece[:32]!r}")
                        return
                offset = (offset + len(piece)) % length
        finally:
            os.close(descriptor)

    def judge_short(self, descriptor, name, offset, piece, count, seconds):
        """A read that ends in mid file has met an error: that which the next one gets."""
        try:
            self.timed(os.pread, descriptor, 1, offset + len(piece))
        except OSError:
            return
        with self.lock:
            self.counts["short at the deadline" if seconds >= EXPLAINED else
                        "short after a wait" if seconds >= WAITED else "short at once"] += 1
            self.shorts.append(f"{name} at {offset}: only {len(piece)} of {count} bytes, after {seconds:.1f} s")

    def reader(self, number):
        choice = random.Random(self.arguments.seed * 1000 + number)
        while not self.is_over.is_set():
            name = choice.choice(self.names)
            self.began.value = time.monotonic()
            try:
                self.read_handle(choice, name)
            except OSError as error:
                # `timed` has recorded when the failed call began.
                now = time.monotonic()
                is_expected = any(causes.allow(name, error.errno, self.began.value, now)
                                  for causes in (self.causes, self.unlisted))
                with self.lock:
                    self.errors[errno.errorcode[error.errno]] += 1
                    if not is_expected:
                        self.unexpected.append(f"{name}: {error} after {now - self.began.value:.1f} s "
                                               f"(at {now:.1f})")
                time.sleep(0.05)

    def give_fault(self, name, fault):
        """Tells the server of a fault, and notes first what readers may be told of it."""
        for code in OF_TROUBLE:
            self.causes.begin(name, code)
        status = fault.get("status")
        if status in HOST_STATUSES:
            for code in OF_TROUBLE:
                self.causes.begin(None, code)
        if "fault" in fault:
            self.causes.begin(name, errno.ESTALE)
        before = self.statuses.get(name)
        if status:
            self.statuses[name] = status
            if status in STATUS_ERRORS:
                self.causes.begin(name, STATUS_ERRORS[status])
        self.origin.control(f"*/{name}", **fault)
        if status and before in STATUS_ERRORS and before != status:
            self.causes.end(name, STATUS_ERRORS[before])

    def change(self, name):
        self.causes.begin(name, errno.ESTALE)
        self.origin.control(f"*/{name}", version=str(self.random.choice(VERSIONS)))

    def clear_faults(self):
        self.origin.post("/control", {"clear": True})
        self.statuses.clear()
        self.causes.end_all()

    def list_files(self, names):
        """Reloads the list with these files; the others may be missing from now on."""
        for name in set(self.names) - set(names):
            self.unlisted.begin(name, errno.ENOENT)
        self.mount.write_list([self.urls[self.names.index(name)] for name in names])
        self.mount.process.send_signal(signal.SIGHUP)
        for name in names:
            self.unlisted.end(name, errno.ENOENT, AFTER_RELOAD)

    def trouble(self):
        """Faults, remote changes and reloads, one after the other, until the time is over."""
        next_change = next_reload = time.monotonic()
        doubted = {}
        while not self.is_over.wait(self.random.uniform(0.1, 0.6)):
            name = self.random.choice(self.names)
            fault = dict(self.random.choice(FAULTS))
            # If one question gets the page three times, a mount that does not yet know the file
            # accepts the page as the file (docs/SEMANTICS.md), for example after a reload that
            # restores the file. So send two at most, and none until that question is answered.
            # Other failures may occur in between.
            if fault.get("fault") in DOUBTFUL:
                if time.monotonic() < doubted.get(name, 0) + DOUBT_SECONDS:
                    continue
                doubted[name] = time.monotonic()
            if "fault" in fault:
                most = 2 if fault["fault"] in DOUBTFUL else 5
                fault["fault_count"] = str(self.random.randint(1, most))
            self.give_fault(name, fault)
            self.counts["faults"] += 1
            now = time.monotonic()
            if now >= next_change:
                next_change = now + 2
                self.change(self.random.choice(self.names))
                self.counts["remote changes"] += 1
            if now >= next_reload:
                next_reload = now + 3
                # A few files disappear from the list, or return.
                count = self.random.randrange(len(self.urls) - 4, len(self.urls) + 1)
                self.list_files(self.random.sample(self.names, count))
                self.counts["reloads"] += 1
            if self.random.random() < 0.1:
                # The next second is quiet: failed files must recover.
                self.clear_faults()
                self.is_over.wait(1)

    def read_everything(self, versions=VERSIONS):
        """Reads every file whole; gives how many bytes were right in one of the versions."""
        count = 0
        for name in self.names:
            try:
                with open(f"{self.mount.mountpoint}/{name}", "rb") as file:
                    content = file.read()
            except OSError as error:
                # The mount's report of it; the verdict is in the count.
                told = [file for file in self.mount.status()["files"] if file["name"] == name]
                print(f"     {name}: {error}: {told}")
                continue
            if any(content == self.contents[name, version] for version in versions):
                count += len(content)
        return count

    def read_the_last(self):
        """Changes every file once more, and gives how many bytes the mount comes to show of that version."""
        for name, length in zip(self.names, LENGTHS):
            self.contents[name, LAST_VERSION] = self.origin.content(
                name, length, self.seeds[name], LAST_VERSION)
        self.origin.control("*", version=str(LAST_VERSION))
        deadline = time.monotonic() + RECOVERY
        while True:
            right = self.read_everything([LAST_VERSION])
            if right == sum(LENGTHS) or time.monotonic() > deadline:
                return right
            time.sleep(0.5)

    def state(self, connections):
        """Descriptors, requests, inodes and memory of a mount that nobody uses any more."""
        # The kernel drops unused inodes when it needs their memory, or on request.
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("2\n")
        wait_until(lambda: self.mount.status()["kernel"]["inodes"] == 0, 15, "end of all use")
        # Cache files are closed some time after their last use; those that are not are counted. A
        # busy disk delays the last commits, and releases are answered late.
        deadline = time.monotonic() + 60
        while (self.mount.descriptors()["cache files"] or connections.waiting(self.mount)) \
                and time.monotonic() < deadline:
            time.sleep(0.2)
        # Read the threads last: a thread that starts in between has no counted pipe.
        return {"waiting": connections.waiting(self.mount), "memory": self.mount.memory(),
                **self.mount.status()["kernel"], **self.mount.descriptors(),
                "threads": len(os.listdir(f"/proc/{self.mount.process.pid}/task"))}

    def calm_pace(self, directory=None):
        """How many reads a second one reader makes while nothing is wrong, of the mount or of plain files."""
        choice = random.Random(self.arguments.seed)
        began = time.monotonic()
        while time.monotonic() - began < CALM_SECONDS:
            self.read_handle(choice, choice.choice(self.names), directory)
        pace = self.counts["reads"] / (time.monotonic() - began)
        self.counts.clear()
        self.slowest = 0.0
        return pace

    def run(self, connections, verdict):
        total = sum(LENGTHS)
        right = self.read_everything()
        verdict.check("bytes right at the start", f"{right} of {total}", right == total)
        pace, calm = self.calm_pace(self.plain), self.calm_pace()
        verdict.check("reads/s of one calm reader", f"{calm:.0f}, of plain files {pace:.0f}",
                      calm >= LEAST_CALM * pace)
        before = self.state(connections)
        threads = [threading.Thread(target=self.reader, args=(number,))
                   for number in range(self.arguments.readers)]
        threads.append(threading.Thread(target=self.trouble))
        for thread in threads:
            thread.start()
        self.is_over.wait(self.arguments.seconds)
        self.is_over.set()
        stop = time.monotonic() + READ_TIMEOUT + GRACE
        for thread in threads:
            thread.join(max(0.1, stop - time.monotonic()))
        hanging = sum(thread.is_alive() for thread in threads)

        counts = self.counts
        print(f"     {counts['faults']} faults, {counts['remote changes']} remote changes, "
              f"{counts['reloads']} reloads; readers were told {dict(self.errors) or 'nothing'}")
        least = int(LEAST_PACE * pace * self.arguments.seconds)
        verdict.check("verified reads", f"{counts['reads']}, at least {least}, at {pace:.0f}/s of one "
                      "reader of plain files", counts["reads"] >= max(least, 1))
        mean = counts["bytes"] // max(counts["reads"], 1)
        verdict.check("bytes of a read in the mean", mean, mean >= LEAST_BYTES)
        failed = sum(self.errors.values())
        share = failed / max(failed + counts["reads"], 1)
        verdict.check("failed calls", f"{failed}, {share:.1%} of all", share <= MOST_FAILED)
        for text in self.shorts[:5]:
            print(f"     {text}")
        for kind, share in MOST_SHORT.items():
            number = counts["waits" if kind == "short after a wait" else "reads"]
            verdict.check(f"reads in mid file {kind}", f"{counts[kind]} of {number}",
                          counts[kind] <= 2 + share * number)
        verdict.check("wrong reads", counts["wrong"], counts["wrong"] == 0)
        verdict.check("calls past their deadline", f"{counts['late']}, the slowest "
                      f"{self.slowest:.1f} s", counts["late"] == 0)
        verdict.check("readers that hang", hanging, hanging == 0)
        for text in self.unexpected[:5]:
            print(f"     {text}")
        verdict.check("unexpected errors", len(self.unexpected), not self.unexpected)
        alive = self.mount.process.poll() is None
        verdict.check("the daemon lives", alive, alive)

        self.clear_faults()
        self.list_files(self.names)
        time.sleep(2)
        right = self.read_everything()
        verdict.check("bytes right at the end", f"{right} of {total}", right == total)
        right = self.read_the_last()
        verdict.check("bytes of the newest version", f"{right} of {total}", right == total)
        self.compare(before, self.state(connections), verdict)
        try:
            code = self.mount.unmount()
        except subprocess.TimeoutExpired as error:
            code = f"none, it still runs {error.timeout:.0f} s after its unmount"
        verdict.check("exit code", code, code == 0)

    @staticmethod
    def compare(before, after, verdict):
        for key, allowance in (("waiting", 0), ("inodes", 0), ("open_handles", 0),
                               ("cache files", 0), ("other descriptors", 0),
                               ("threads", THREAD_ALLOWANCE), ("sockets", SOCKET_ALLOWANCE)):
            verdict.check(f"{key} before and after", f"{before[key]}, {after[key]}",
                          after[key] <= before[key] + allowance)
        # libfuse keeps a pipe, with two ends, for each thread that has spliced, until the thread
        # ends.
        verdict.check("pipes after, and threads", f"{after['pipes']}, {after['threads']}",
                      after["pipes"] <= 2 * after["threads"] + 2)
        verdict.check(
            "memory before and after",
            f"{before['memory'] / MIB:.0f}, {after['memory'] / MIB:.0f}",
            after["memory"] <= before["memory"] + MEMORY_ALLOWANCE, " MiB")

    def tear_down(self):
        self.is_over.set()
        self.mount.tear_down()
        self.origin.end()


def main(words):
    parser = argparse.ArgumentParser(prog="torture soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 31))
    parser.add_argument("--binaries", default=os.path.join(ROOT, ".build", "release"))
    arguments = parser.parse_args(words)
    if os.geteuid() != 0:
        sys.exit("soak: needs root, to look at the kernel's FUSE connections")
    raise_descriptor_limit(arguments.readers + 1024)
    print(f"     seed {arguments.seed}, {arguments.seconds:.0f} s, {arguments.readers} readers")
    verdict = Verdict()
    with workplace("soak") as work:
        connections = Connections(work)
        soak = Soak(arguments, work)
        try:
            soak.run(connections, verdict)
        finally:
            soak.tear_down()
            connections.tear_down()
    verdict.exit()
