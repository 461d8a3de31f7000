"""The table of conditions: how each begins, continues and ends, and how its effect is recognised.

Those of cache and daemon are here, those of servers in `server_conditions`.
"""

import contextlib
import errno
import math
import os
import signal
import threading
import time

from .disk import SYNCS
from .judge import Handle, Judge
from .promises import AFTERWARDS, Promise
from .world import GRACE, MIB, READ_TIMEOUT


# The maximum wait until httpfs obeys. It obeys at once, except on a busy machine.
OBEYED_WITHIN = 15.0


class Condition:
    """One trouble. The runner calls `shape`, `prepare`, `begin`, `step` again and again, and `end`."""

    name = ""
    # The order of a pair: the lower rank begins first.
    rank = 50
    # The errors that readers may get because of it, from its beginning until a read that began
    # before its end has met its deadline.
    promised = frozenset()
    # The files to which this applies; None for all.
    promised_names = None
    # The maximum duration in seconds.
    longest = 6.0
    # The maximum wait of the other condition until this one is seen, before it begins.
    lead = 0.0
    # Whether httpfs itself must obey the condition, whatever the readers do. If that is not seen, a
    # promise is broken, and no repetition excuses it.
    is_obeyed = False
    # Whether it concerns only transfers: files that were complete before it began get no errors.
    spares_complete = False
    # Files whose cached bytes it may replace.
    changing = frozenset()

    def __init__(self, others):
        # The names of the other conditions of the run.
        self.others = others
        self.began = self.ended = None
        # The files that were complete before it began, according to the runner.
        self.complete = frozenset()
        # The broken promises that the condition itself has seen: pairs of a kind and words.
        self.faults = []

    def shape(self, world):
        """Gives files and options the shape that it needs, before the mount."""

    def warm(self, world):
        """Fills the cache in a mount before the one that counts."""

    def prepare(self, world):
        """Brings the mount into the state that it needs, before anybody reads."""

    def begin(self, world):
        pass

    def step(self, world):
        """Goes on; called some ten times a second."""

    def end(self, world):
        pass

    def before_next_mount(self, world):
        """Nothing is mounted; the next mount is to find all that is cached."""

    def promises(self):
        """What readers may be told, of which files, and when; asked when all is over."""
        if not self.promised or self.began is None:
            return []
        end = math.inf if self.ended is None else self.ended + AFTERWARDS
        return [Promise(self.promised, self.promised_names, self.began, end, but=self.complete)]

    def evidence(self, world):
        """What shows that it took hold, in words; None while nothing does."""
        return None

    @property
    def age(self):
        return time.monotonic() - self.began


class CacheFull(Condition):
    name, rank = "cache full", 30

    def __init__(self, others):
        super().__init__(others)
        # Calls that fail by injection do not reach the disk.
        self.lead = 3.0 if others & {"cache failing", "spill in use"} else 0.0

    def begin(self, world):
        self.before = world.calls.without_room()
        world.disk.fill()

    def step(self, world):
        # Evictions free space, which is filled again.
        if not world.disk.is_frozen:
            world.disk.fill()

    def end(self, world):
        world.disk.empty()

    def evidence(self, world):
        count = world.calls.without_room() - self.before
        return f"{count} calls found no room" if count else None


class CacheFailing(Condition):
    name, rank = "cache failing", 35
    # The error of a read that detects that the disk does not return its bytes. A buffered read does
    # not get it: the kernel repeats that with a smaller size.
    promised = frozenset({"EIO"})

    def begin(self, world):
        self.calls, effect = [
            ({"pwrite"}, "fail"), ({"pwrite", "pread", "splice"}, "fail"), ({"pwrite", "write"}, "torn"),
        ][world.seed % 3]
        self.before = world.calls.failures(self.calls, errno.EIO)
        world.calls.fail(self.name, self.calls, errno.EIO, effect)

    def end(self, world):
        world.calls.mend(self.name)

    def evidence(self, world):
        count = world.calls.failures(self.calls, errno.EIO) - self.before
        return f"{count} calls failed" if count else None


class SyncFailing(Condition):
    name, rank = "fsync failing", 10

    def __init__(self, others):
        super().__init__(others)
        # Bytes that are never stored are never synced.
        self.lead = 3.0 if others & {"cache failing", "spill in use", "cache full"} else 0.0

    def begin(self, world):
        # Either a sync of a disk that loses pages, or one that fails without a loss. Only the
        # latter also fails while the disk stalls.
        self.is_thin = world.seed % 2 == 1 and "disk frozen" not in self.others
        self.before = world.calls.failures(SYNCS)
        self.next = len(world.calls.syncs.failed)
        if self.is_thin:
            world.disk.is_thin = True
            world.disk.fill_below()
        else:
            world.calls.fail(self.name, SYNCS, errno.EIO)

    def step(self, world):
        # The kernel forgets the bytes that a failed sync has lost sooner or later. Here it is soon,
        # but only after httpfs can have withdrawn its claim. Later bytes are not lost before the
        # next failed sync.
        if not self.is_thin:
            return
        world.calls.seen()
        while len(world.calls.syncs.failed) > self.next:
            moment, path = world.calls.syncs.failed[self.next]
            if time.monotonic() < moment + 0.3:
                return
            world.disk.forget_pages([path])
            self.next += 1

    def end(self, world):
        if self.is_thin:
            world.disk.empty_below()
            world.disk.is_thin = False
        else:
            world.calls.mend(self.name)

    def before_next_mount(self, world):
        if self.is_thin:
            world.disk.remount()

    def evidence(self, world):
        count = world.calls.failures(SYNCS) - self.before
        how = "with the pages lost" if self.is_thin else "by injection"
        return f"{count} syncs failed {how}" if count else None


class SpillInUse(Condition):
    name, rank = "spill in use", 40

    def shape(self, world):
        world.rereads = f"{world.work}/spilling"

    def prepare(self, world):
        # The data file now has the full length, with a hole for the rest.
        length = world.subjects["r.bin"].length
        world.read_through("r.bin", length - 65_536, 65_536)

    def begin(self, world):
        self.before = self.refused(world)
        self.fetched = self.fetched_bytes(world, 0)
        world.calls.fail(self.name, {"pwrite"}, errno.EDQUOT)
        with open(world.rereads, "w"):
            pass

    def end(self, world):
        world.calls.mend(self.name)

    @staticmethod
    def refused(world):
        # A full quota, because no other condition has that errno.
        return world.calls.failures({"pwrite"}, errno.EDQUOT)

    @staticmethod
    def fetched_bytes(world, since):
        return max((status["totals"]["fetched_bytes"] for status in world.since(since)), default=0)

    def evidence(self, world):
        count = self.refused(world) - self.before
        fetched = self.fetched_bytes(world, self.began) - self.fetched
        if count and fetched > MIB // 2:
            return f"{fetched} bytes fetched, {count} writes refused"
        return None


class Eviction(Condition):
    name, rank = "eviction under way", 5
    is_obeyed, longest = True, OBEYED_WITHIN
    # Bytes that are never stored are never removed.
    lead = 3.0

    def shape(self, world):
        world.options += ["--cache-size", "4M"]

    def begin(self, world):
        self.before = world.calls.seen()["unlinkat", "ok"]
        self.next = 0.0

    def step(self, world):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + 0.25
        # An open file is not evicted: EBUSY.
        with contextlib.suppress(OSError):
            world.daemon.command_line(f"evict {world.random.choice(list(world.subjects))}")

    def before_next_mount(self, world):
        # Files that have not been evicted by now stay, and are compared.
        place = world.daemon.command.index("--cache-size")
        del world.daemon.command[place:place + 2]

    def evidence(self, world):
        count = world.calls.seen()["unlinkat", "ok"] - self.before
        return f"{count} files removed" if count > 0 else None


class PassthroughOpen(Condition):
    name, rank = "passthrough open", 1

    def prepare(self, world):
        world.read_through("p.bin")
        deadline = time.monotonic() + 12
        while time.monotonic() < deadline:
            world.hold("p.bin")
            if any(file["name"] == "p.bin" and file["passthrough"]
                   for file in world.daemon.status()["files"]):
                return
            world.forget_held()
            time.sleep(0.2)
        raise SystemExit("the kernel does not read p.bin itself: no passthrough here?")

    def begin(self, world):
        # A descriptor that was opened before all readers, and stays open to the end.
        self.descriptor = world.held[-1]

    def evidence(self, world):
        for file in world.files_since(self.began):
            if file["name"] == "p.bin" and file["passthrough"]:
                return "status: passthrough of p.bin, which is open"
        return None


class DaemonKilled(Condition):
    name, rank = "daemon killed", 60
    # The errors of a mount without a daemon, and of a mount point that is removed.
    promised = frozenset({"ENOTCONN", "ECONNABORTED", "EIO", "ENOENT", "ENODEV"})

    def prepare(self, world):
        # Make the loss noticeable: more bytes than a kill may cost.
        world.read_through("big.bin")

    def begin(self, world):
        self.was_killed = False
        self.killed = self.died = self.mounted = None

    def step(self, world):
        daemon = world.daemon
        if not self.was_killed:
            if self.age > 0.4:
                world.may_be_dead = True
                self.killed = time.monotonic()
                daemon.kill()
                self.was_killed = True
        elif self.died is None:
            # A daemon that waits for a frozen disk ends when the disk continues.
            if not daemon.is_alive:
                self.died = time.monotonic()
        elif self.mounted is None:
            if daemon.generation == 1:
                self.look(world)
                if time.monotonic() - self.died > 0.7:
                    daemon.start()
            elif daemon.is_ready:
                self.mounted = time.monotonic()
                world.may_be_dead = False
            elif not daemon.is_alive and "cache failing" in self.others and self.age < 15:
                # A mount fails on a cache that it cannot write; it is tried again.
                daemon.start()

    def look(self, world):
        """A dead mount point must not look like an empty directory (issue 14, point 5)."""
        with contextlib.suppress(OSError):
            if not os.listdir(world.daemon.mountpoint) and not self.faults:
                self.faults.append(
                    ["empty", "a dead mount point was an empty directory, without an error"])

    def end(self, world):
        if self.was_killed and self.mounted is None:
            deadline = time.monotonic() + 20
            while self.mounted is None and time.monotonic() < deadline:
                self.step(world)
                time.sleep(0.02)
            if self.mounted is None:
                raise SystemExit(f"no mount after the kill: {world.daemon.errors()}")

    def promises(self):
        if self.killed is None:
            return []
        end = math.inf if self.mounted is None else self.mounted + 1
        # Handles from before stay dead; later ones work.
        opened_by = math.inf if self.mounted is None else self.mounted
        return [Promise(self.promised, None, self.killed, end),
                Promise({"ENOTCONN", "ECONNABORTED"}, None, self.killed, calls={"read", "access"},
                        opened_by=opened_by)]

    def evidence(self, world):
        return "killed, and mounted again" if self.mounted else None


class DiskFrozen(Condition):
    name, rank = "disk frozen", 70
    longest = 3.5
    # More files of an earlier mount than libfuse has threads. No reader looks at them before the
    # disk stalls.
    files = tuple(f"n{number}.bin" for number in range(12, 24))

    def shape(self, world):
        for name in self.files:
            world.subjects[name].weight = 0

    def warm(self, world):
        for name in self.files:
            world.read_through(name)

    def begin(self, world):
        world.disk.freeze()
        self.judges = []
        self.looks = [threading.Thread(target=self.look, args=(world, name), daemon=True)
                      for name in self.files]
        for look in self.looks:
            look.start()

    def look(self, world, name):
        """The first look at a cached file, while its disk stands still."""
        judge = Judge("frozen", READ_TIMEOUT + GRACE)
        self.judges.append(judge)
        try:
            descriptor = judge.timed("open", name, os.open, world.path(name), os.O_RDONLY)
            try:
                began = time.monotonic()
                piece = judge.timed("read", name, os.pread, descriptor, 65_536, 0)
                judge.read(Handle(name, world.contents[name]), piece, 0, 65_536, began,
                           lambda place: os.pread(descriptor, 1, place))
            finally:
                os.close(descriptor)
        except OSError:
            pass  # It has been judged.

    def end(self, world):
        world.disk.thaw()
        deadline = time.monotonic() + READ_TIMEOUT + GRACE
        for look in self.looks:
            look.join(max(deadline - time.monotonic(), 0))
        if any(look.is_alive() for look in self.looks):
            self.faults.append(["late", "a first look at a cached file hangs after the thaw"])

    def evidence(self, world):
        return f"frozen for {self.age:.1f} s" if self.age > 2 else None


class ListReloaded(Condition):
    name, rank = "list reloaded", 55
    is_obeyed, longest = True, OBEYED_WITHIN
    promised = frozenset({"ENOENT"})
    promised_names = frozenset({"x.bin", "p.bin", "n0.bin", "n1.bin"})

    def begin(self, world):
        world.passing_names = self.promised_names
        self.next = 0.0
        self.is_short = False

    def step(self, world):
        if time.monotonic() < self.next or not (world.daemon.is_alive and world.daemon.is_ready):
            return
        self.next = time.monotonic() + 0.6
        self.is_short = not self.is_short
        self.write(world, self.promised_names if self.is_short else set())

    @staticmethod
    def write(world, without):
        world.listed = set(world.subjects) - without
        world.write_list()
        world.daemon.process.send_signal(signal.SIGHUP)

    def end(self, world):
        if world.daemon.is_alive:
            self.write(world, set())

    def evidence(self, world):
        seen = [names for moment, names in list(world.names_seen) if moment > self.began and names]
        gone = next((index for index, names in enumerate(seen) if "x.bin" not in names), None)
        if gone is not None and any("x.bin" in names for names in seen[gone:]):
            return "names vanished and came back"
        return None


class RateLimit(Condition):
    name, rank = "rate limit", 45
    is_obeyed, longest = True, OBEYED_WITHIN
    spares_complete = True
    promised = frozenset({"ETIMEDOUT"})
    limit = 2 * MIB

    def begin(self, world):
        self.generation = None
        self.step(world)

    def step(self, world):
        # A limit ends with its mount.
        if self.generation != world.daemon.generation and world.daemon.is_ready:
            with contextlib.suppress(OSError):
                world.daemon.command_line(f"rate-limit {self.limit}")
                self.generation = world.daemon.generation

    def end(self, world):
        with contextlib.suppress(OSError):
            world.daemon.command_line("rate-limit 0")

    def evidence(self, world):
        held = [status for status in world.since(self.began)
                if status["rate_limit_bytes_per_second"] == self.limit]
        if len(held) < 2:
            return None
        # The sums start with their mount, and files that leave the list are subtracted.
        sums = [status["totals"]["fetched_bytes"] for status in held]
        fetched = sum(max(after - before, 0) for before, after in zip(sums, sums[1:]))
        # The limit is set; whether bytes are fetched depends on the readers.
        self.is_obeyed = False
        return f"status: {self.limit} bytes/s; {fetched} fetched" if fetched > 0 else None


class PauseResume(Condition):
    name, rank = "pause/resume", 46
    is_obeyed, longest = True, OBEYED_WITHIN

    def begin(self, world):
        self.next = 0.0
        self.is_paused = False

    def step(self, world):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + 0.4
        self.is_paused = not self.is_paused
        self.command(world, "pause" if self.is_paused else "resume")

    @staticmethod
    def command(world, word):
        with contextlib.suppress(OSError):
            world.daemon.command_line(word)

    def end(self, world):
        self.command(world, "resume")

    def evidence(self, world):
        paused = [any(file["state"] == "paused" for file in status["files"])
                  for status in world.since(self.began)]
        if True in paused and False in paused[paused.index(True):]:
            return f"status: paused in {sum(paused)} of {len(paused)} samples"
        return None
