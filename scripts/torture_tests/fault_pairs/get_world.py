"""The environment of a download's conditions: one file, two servers, a disk, and `httpfs get`."""

import json
import os
import re
import signal
import subprocess
import time

from .world import MIB, World

STALL_TIMEOUT = 3
# The server's bytes per second: the download is in flight while both conditions hold.
RATE = MIB
# The names that a failed download may leave beside its file, and those that exist for a moment.
PARTIAL = ".httpfs-part"
PARTIAL_NAMES = frozenset({PARTIAL, f"{PARTIAL}.record"})
PASSING_NAMES = frozenset({f"{PARTIAL}.record-new", f"{PARTIAL}.record-mode", f"{PARTIAL}.record-origin"})


class Attempt:
    """One process of `httpfs get`: what it printed, and how it ended."""

    def __init__(self, number, output):
        self.number, self.output = number, output
        self.began, self.ended = time.monotonic(), None
        self.code = None
        self.was_killed = False
        self.process = None

    def lines(self):
        """The objects of --json so far."""
        found = []
        with open(f"{self.output}.out", errors="replace") as text:
            for line in text:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass  # It is written now, or the process was killed.
        return found

    def received(self):
        """The bytes of the file that it has told of last."""
        return next((line["received"] for line in reversed(self.lines()) if line["event"] == "progress"), 0)

    def errors(self):
        with open(f"{self.output}.err", errors="replace") as text:
            return text.read().strip()

    def said(self):
        """What it told of its failure: on standard error, and as the reason of the file."""
        reasons = [line["reason"] for line in self.lines() if line.get("reason")]
        return "\n".join(filter(None, [self.errors(), *reasons]))


class Download:
    """The processes of one command line, one after the other."""

    def __init__(self, binaries, work, directory, source, options, environment):
        self.command = [f"{binaries}/httpfs", "get", "--no-config", "--json", "--stall-timeout",
                        str(STALL_TIMEOUT), *options, "--input", source, "--output", f"{directory}/"]
        self.work, self.environment = work, os.environ | environment
        self.attempts = []

    @property
    def last(self):
        return self.attempts[-1]

    def start(self):
        attempt = Attempt(len(self.attempts) + 1, f"{self.work}/get.{len(self.attempts) + 1}")
        self.attempts.append(attempt)
        with open(f"{attempt.output}.out", "w") as output, open(f"{attempt.output}.err", "w") as errors:
            attempt.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, env=self.environment,
                                               stdout=output, stderr=errors)

    @property
    def is_alive(self):
        return self.last.process.poll() is None

    def note_end(self):
        """Whether the last process has ended; its end is noted then."""
        if self.is_alive:
            return False
        if self.last.ended is None:
            self.last.ended, self.last.code = time.monotonic(), self.last.process.returncode
        return True

    def kill(self):
        self.last.was_killed = True
        self.last.process.send_signal(signal.SIGKILL)

    def lines(self):
        return [line for attempt in self.attempts for line in attempt.lines()]

    def log(self):
        return [f"{attempt.number}: exit {attempt.code} after "
                f"{(attempt.ended or time.monotonic()) - attempt.began:.1f} s: {attempt.said()[-300:]}"
                for attempt in self.attempts[-6:]]

    def tear_down(self):
        if self.attempts and self.is_alive:
            self.last.process.kill()
            self.last.process.wait(20)


class GetWorld(World):
    """One run of a pair of a download: `shape` the file, `start` the command, look at what is there."""

    def __init__(self, binaries, work, seed):
        super().__init__(binaries, work, seed)
        self.options = []
        # With an even seed, another file has the name, and stays until a complete one replaces it.
        self.earlier = self.random.randbytes(70_000) if seed % 2 == 0 else None
        if self.earlier is not None:
            self.options.append("--overwrite")

    def add_subjects(self):
        self._add("x.bin", 5 * MIB + 4_321, 1, **{"total-rate": str(RATE)})

    @property
    def directory(self):
        return self.disk.cache

    @property
    def target(self):
        return f"{self.directory}/x.bin"

    def start(self):
        self.make_contents()
        self.write_list()
        os.mkdir(self.directory)
        if self.earlier is not None:
            with open(self.target, "wb") as file:
                file.write(self.earlier)
        self.daemon = Download(self.binaries, self.work, self.directory, self.source, self.options,
                               self.calls.environment)
        self.daemon.start()

    def quicken(self):
        """Lets what is asked for from now on come at once."""
        for server in (self.origin, self.mirror):
            server.control("*", total_rate="200m")

    # MARK: Seeing

    def said(self, pattern, since):
        """What a process that ended after a moment has told that fits a pattern."""
        for attempt in self.daemon.attempts:
            if (attempt.ended or since) >= since:
                match = re.search(f".*({pattern}).*", attempt.said())
                if match:
                    return match[0][:160]
        return None

    def answers(self, server="origin"):
        """The responses with bytes of the file that a server has logged."""
        return [request for name, request in self.responses()["x.bin"]
                if name == server and request["path"].startswith("/data/")
                and request["status"] in (200, 206) and request["headers"].get("user-agent", "").startswith("httpfs")]

    def names(self):
        """What stands in the directory."""
        return set(os.listdir(self.directory))

    def stored_bytes(self):
        """How many bytes of the partial file the disk has."""
        try:
            return 512 * os.stat(self.target + PARTIAL).st_blocks
        except FileNotFoundError:
            return 0

    def version_at_name(self):
        """The version whose bytes stand under the final name: a number, "none", "earlier" or what is wrong."""
        try:
            with open(self.target, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return "none"
        for version, right in self.contents["x.bin"].items():
            if content == right:
                return version
        if content == self.earlier:
            return "earlier"
        right = max(self.contents["x.bin"].values(), key=lambda right: agreeing(right, content))
        return f"{len(content)} bytes, which agree with no version from {agreeing(right, content)} on"

    def version_named(self):
        """The version that the validators of the file under the final name are of; None where there are none."""
        try:
            tag = os.getxattr(self.target, "user.httpfs.etag").decode()
        except OSError:
            return None
        match = re.search(r"-v(\d+)", tag)
        return int(match[1]) if match else None


def agreeing(content, other):
    """How many bytes two contents have in common at their beginnings."""
    return len(os.path.commonprefix([content, other]))
