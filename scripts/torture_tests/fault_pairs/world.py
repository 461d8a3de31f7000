"""The environment of a pair of conditions: files, two servers, a disk, a daemon, observations."""

import collections
import hashlib
import os
import random
import statistics
import threading
import time

from .daemon import Daemon
from .disk import CacheDisk, FailingCalls
from .servers import Server

KIB, MIB = 1 << 10, 1 << 20
READ_TIMEOUT = 3
# The time that a call may take beyond the deadline of a read, for busy machines.
GRACE = 5.0
# The seconds that .status.json and ls may take together: once, on a busy machine, and in the
# median, which the machine's other work does not affect. Runs show a median of 0.005.
STATUS_LIMIT, STATUS_MEDIAN = 1.5, 0.25
# The interval between two samples.
SAMPLE_INTERVAL = 0.15
FRESH_COUNT = 24
PIECE = 256 * KIB


class Subject:
    """A file of the list: its URLs, and which versions of it may be seen."""

    def __init__(self, name, length, seed, weight):
        self.name, self.length, self.seed, self.weight = name, length, seed, weight
        self.parameters = {}
        self.is_signed = False
        self.mirror_version = None
        self.has_pieces = False
        # The lengths by version: later ones may differ.
        self.versions = {1: length}

    def query(self, **more):
        parameters = {"length": self.length, "seed": self.seed, **self.parameters, **more}
        return "&".join(f"{key.replace('_', '-')}={value}" for key, value in parameters.items())

    def urls(self, world):
        kind = "signed" if self.is_signed else "data"
        urls = [f"{world.origin.base}/{kind}/{self.name}?{self.query()}"]
        if self.mirror_version:
            urls.append(f"{world.mirror.base}/data/{self.name}?"
                        + self.query(version=self.mirror_version))
        return urls


class World:
    """One run of a pair: `shape` the subjects, `start` the mount, look at `samples`."""

    def __init__(self, binaries, work, seed):
        self.binaries, self.work, self.seed = binaries, work, seed
        self.random = random.Random(seed)
        self.options = ["--read-timeout", str(READ_TIMEOUT), "--revalidate", "0.5"]
        # The file whose appearance lets a reader reread, if there is such a reader.
        self.rereads = None
        self.subjects = {}
        self.listed = None
        self.held = []
        self.samples = []
        # The duration of each answer, and the errors in it.
        self.status_times = []
        self.status_faults = []
        # The time since which a call waits for its answer; None if none does.
        self.looking_since = None
        # The files without a length at first.
        self.without_length = set()
        # Names that the list loses and gets again while the mount is watched.
        self.passing_names = frozenset()
        self.names_seen = collections.deque(maxlen=400)
        self.is_over = threading.Event()
        self.daemon = self.disk = self.origin = self.mirror = None
        self.contents = {}
        self.may_be_dead = False
        # The deadline of the readers' calls, if it differs from that of the mount.
        self.judged_deadline = None
        self.add_subjects()

    def add_subjects(self):
        self._add("x.bin", 3 * MIB + 4_321, 10, rate="700k")
        self._add("p.bin", 1 * MIB + 77, 3)
        self._add("big.bin", 24 * MIB + 5, 3)
        # For the reader that reads it repeatedly; see `rereads`.
        self._add("r.bin", 1 * MIB, 0)
        # For a condition that needs an unread file.
        self._add("s.bin", 160 * KIB + 999, 0)
        for number in range(FRESH_COUNT):
            self._add(f"n{number}.bin", 160 * KIB + number, 0.3)

    def _add(self, name, length, weight, **parameters):
        subject = Subject(name, length, self.random.getrandbits(32), weight)
        subject.parameters = parameters
        self.subjects[name] = subject

    @property
    def weights(self):
        return {name: subject.weight for name, subject in self.subjects.items()}

    # MARK: Setting up

    def make_servers_and_disk(self):
        self.origin = Server(self.binaries, self.work, "origin")
        self.mirror = Server(self.binaries, self.work, "mirror")
        self.disk = CacheDisk(self.work)
        self.calls = FailingCalls(self.binaries, self.work, self.disk.cache)

    def make_contents(self):
        """Fetches the bytes of every version that may be seen, without httpfs."""
        for name, subject in self.subjects.items():
            versions = dict(subject.versions)
            if subject.mirror_version and not subject.has_pieces:
                versions[subject.mirror_version] = subject.length
            self.contents[name] = {
                version: self.mirror.get(f"/data/{name}?length={length}&seed={subject.seed}"
                                         f"&version={version}")
                for version, length in versions.items()}
        self.listed = set(self.subjects)
        self.source = f"{self.work}/list"

    def start(self):
        """Mounts, when all subjects have their shape."""
        self.make_contents()
        self.write_list()
        self.daemon = Daemon(self.binaries, self.work, self.disk.cache, self.source, self.options,
                             self.calls.environment)
        self.daemon.start()
        self.daemon.wait_until_ready()

    def mount_again(self):
        """Ends the mount and begins the one that counts: what is cached is known from records."""
        if self.daemon.unmount() != 0:
            raise SystemExit("the mount before has not ended well")
        self.daemon.generation = 0
        self.daemon.start()
        self.daemon.wait_until_ready()

    def write_list(self):
        text = "".join("\t".join(subject.urls(self)) + f"\n  out={subject.name}\n" + self._pieces(subject)
                       for name, subject in self.subjects.items() if name in self.listed)
        # Rename: a reload must not read half of it.
        with open(self.source + ".new", "w") as file:
            file.write(text)
        os.replace(self.source + ".new", self.source)

    def _pieces(self, subject):
        if not subject.has_pieces:
            return ""
        content = self.contents[subject.name][1]
        hashes = ",".join(hashlib.sha256(content[start:start + PIECE]).hexdigest()
                          for start in range(0, len(content), PIECE))
        return f"  length={len(content)}\n  pieces=sha-256:{PIECE}:{hashes}\n"

    def path(self, name):
        return f"{self.daemon.mountpoint}/{name}"

    def read_through(self, name, offset=0, count=None):
        """Reads bytes of a file before any condition begins, which must succeed."""
        descriptor = os.open(self.path(name), os.O_RDONLY)
        try:
            end = len(self.contents[name][1]) if count is None else offset + count
            while offset < end:
                piece = os.pread(descriptor, min(MIB, end - offset), offset)
                if not self.contents[name][1].startswith(piece, offset) or not piece:
                    raise SystemExit(f"{name} is wrong at {offset} before any condition")
                offset += len(piece)
        finally:
            os.close(descriptor)

    def hold(self, name):
        """Opens a file that stays open until the conditions are over."""
        self.held.append(os.open(self.path(name), os.O_RDONLY))

    def forget_held(self):
        while self.held:
            os.close(self.held.pop())

    # MARK: Seeing

    def watch(self):
        """Takes samples of the mount's state until it is over; run as a thread."""
        while not self.is_over.wait(SAMPLE_INTERVAL):
            status = names = fault = None
            was_alive, generation = not self.may_be_dead, self.daemon.generation
            self.looking_since = began = time.monotonic()
            try:
                status = self.daemon.status()
                # The mount that it belongs to, if that is certain.
                status["generation"] = generation if generation == self.daemon.generation else None
                names = self.list_names()
                fault = self.fault_of(names)
            except (OSError, ValueError) as error:
                fault = f"{type(error).__name__} {error}"
            seconds = time.monotonic() - began
            self.looking_since = None
            if was_alive and not self.may_be_dead and generation == self.daemon.generation:
                self.status_times.append(seconds)
                if fault:
                    self.status_faults.append(f"{fault} (at {began:.2f})")
            self.samples.append((began, status))
            self.names_seen.append((began, names))

    def list_names(self):
        return os.listdir(self.daemon.mountpoint)

    def fault_of(self, names):
        """What is wrong with the names of the mount point; None where nothing is."""
        missing = set(self.subjects) - self.passing_names - set(names)
        unknown = set(names) - set(self.subjects)
        if not missing and not unknown:
            return None
        return f"ls gave {len(names)} names: {len(missing)} missing, {len(unknown)} unknown"

    def slowness(self):
        """What was too slow in answering .status.json and ls, in words."""
        since = self.looking_since
        if since is not None and time.monotonic() - since > STATUS_LIMIT and not self.may_be_dead:
            yield f".status.json or ls has not been answered for {time.monotonic() - since:.1f} s"
        if not self.status_times:
            yield ".status.json and ls were never answered"
            return
        if max(self.status_times) > STATUS_LIMIT:
            yield f".status.json and ls took {max(self.status_times):.1f} s"
        median = statistics.median(self.status_times)
        if median > STATUS_MEDIAN:
            yield f".status.json and ls took {median:.2f} s in the median"

    def since(self, moment):
        return [status for time, status in list(self.samples) if time >= moment and status]

    def files_since(self, moment):
        for status in self.since(moment):
            yield from status["files"]

    def responses(self):
        """All requests that both servers have logged, by the name of the file."""
        found = collections.defaultdict(list)
        for server in (self.origin, self.mirror):
            for request in server.requests():
                found[request["path"].rpartition("/")[2]].append((server.name, request))
        return found

    def tear_down(self):
        self.is_over.set()
        self.forget_held()
        left = []
        if self.disk is not None and self.disk.is_frozen:
            self.disk.thaw()
        if self.daemon is not None:
            self.daemon.tear_down()
        for server in (self.origin, self.mirror):
            if server is not None:
                server.tear_down()
        if self.disk is not None:
            left = self.disk.tear_down()
        return left
