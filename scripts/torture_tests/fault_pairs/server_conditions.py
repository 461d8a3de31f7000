"""The conditions of servers and files."""

import contextlib
import errno
import itertools
import os
import shutil
import threading
import time

from .conditions import OBEYED_WITHIN, Condition
from .promises import Promise
from .readers import Reader


class LengthUnknown(Condition):
    name, rank = "length unknown", 2
    changing = frozenset({"x.bin"})
    # A read that the stream cannot reach in time fails; a length is never invented.
    promised = frozenset({"EIO", "ETIMEDOUT"})
    promised_names = frozenset({"x.bin"})

    def shape(self, world):
        world.without_length.add("x.bin")
        world.subjects["x.bin"].parameters |= {"chunked": "yes", "rate": "600k"}

    def promises(self):
        # It holds from the mount on.
        return [Promise(self.promised, self.promised_names)]

    def end(self, world):
        world.origin.control("*/x.bin", rate="20m")

    def evidence(self, world):
        for file in world.files_since(self.began):
            if file["name"] == "x.bin" and file["length"] is None and file["cached_bytes"] > 0:
                return f"status: x.bin has {file['cached_bytes']} bytes and no length"
        return None


class LengthLearnedLate(Condition):
    name, rank = "length learned late", 3
    # The stream that is cut repeatedly is too late for a reader far behind.
    promised = frozenset({"EIO", "ETIMEDOUT"})
    # Until then every answer has no length, and is cut.
    seconds = 1.0

    def shape(self, world):
        # A file that never has a length cannot learn it.
        self.file = "p.bin" if "length unknown" in self.others else "x.bin"
        length = world.subjects[self.file].length
        self.promised_names = self.changing = frozenset({self.file})
        world.without_length.add(self.file)
        self.is_there = True
        world.origin.rule("late", {"path": f"/data/{self.file}"},
                          ["head", {"body": length // 2}, "reset"],
                          parameters={"chunked": True, "total-rate": None, "rate": "2m"})

    def promises(self):
        # It holds from the mount on.
        return [Promise(self.promised, self.promised_names)]

    def step(self, world):
        if self.is_there and self.age > self.seconds and world.origin.is_running:
            self.end(world)

    def end(self, world):
        self.is_there = False
        world.origin.remove_rule("late")

    def evidence(self, world):
        if self.is_there:
            return None
        requests = [request for _, request in world.responses()[self.file]
                    if request["path"].startswith("/data/")]
        late = [request["id"] for request in requests if request["rule"] == "late"]
        later = [request for request in requests
                 if request["rule"] is None and request["status"] in (200, 206)]
        if late and later and any(file["name"] == self.file and file["length"]
                                  for file in world.files_since(self.began)):
            return f"{len(late)} answers of {self.file} without length, {len(later)} with one"
        return None


class VersionChanged(Condition):
    name, rank = "version changed", 20
    promised = frozenset({"ESTALE"})
    files = ("x.bin", "p.bin")
    promised_names = changing = frozenset(files)
    longest = OBEYED_WITHIN

    def __init__(self, others):
        super().__init__(others)
        # If no version was seen before, the second may be the first one seen.
        self.is_obeyed = "length learned late" not in others

    def shape(self, world):
        for name in self.files:
            subject = world.subjects[name]
            # The new version is as long, longer, or shorter.
            subject.versions[2] = subject.length + (0, 9_000, -9_000)[world.seed % 3]

    def prepare(self, world):
        if "length learned late" not in self.others:
            world.read_through("p.bin")
        self.validators = self.now(world.daemon.status())

    def now(self, status):
        return {file["name"]: file["validator"] for file in status["files"]
                if file["name"] in self.files and file["validator"]}

    def begin(self, world):
        for name in self.files:
            world.origin.control(f"*/{name}", version=2, length=world.subjects[name].versions[2])

    def evidence(self, world):
        seen = dict(self.validators)
        for status in world.since(0):
            for name, validator in self.now(status).items():
                if seen.setdefault(name, validator) != validator:
                    return f"status: another validator of {name}"
        return None


class MirrorLying(Condition):
    name, rank = "mirror lying", 4
    # The conditions with which the list contains no hashes of pieces.
    without_pieces = frozenset({"version changed", "length unknown", "length learned late"})

    def shape(self, world):
        subject = world.subjects["x.bin"]
        # Either wrong bytes under the right tag, which only hashes of pieces show. Or, if those do
        # not fit, another file under another tag.
        self.has_pieces = world.seed % 2 == 1 and not self.without_pieces & self.others
        if self.has_pieces:
            subject.has_pieces = True
            subject.mirror_version = 1
            world.mirror.rule("lie", {"path": "/data/x.bin", "range": True},
                              ["head", {"content": ["first", "last"], "version": 9}])
        else:
            subject.mirror_version = 7

    def evidence(self, world):
        lies = [request for server, request in world.responses()["x.bin"]
                if server == "mirror" and request["status"] in (200, 206)]
        kind = "wrong bytes" if self.has_pieces else "another version"
        if lies:
            return f"{len(lies)} answers with {kind}"
        for file in world.files_since(self.began):
            if any(mirror["state"] == "refused" for mirror in file.get("mirrors", [])):
                return "status: the mirror is refused"
        return None


class SignedURLExpired(Condition):
    name, rank = "signed URL expired", 6
    files = ("x.bin", "p.bin", "big.bin")

    def shape(self, world):
        for name in self.files:
            world.subjects[name].is_signed = True
            # Origin counts whole seconds: a lifetime may end at once, and the refusal is then
            # final.
            world.subjects[name].parameters["lifetime"] = "2"

    def evidence(self, world):
        refused, renewed = 0, 0
        for requests in world.responses().values():
            refused += sum(request["status"] == 403 for _, request in requests)
            signed = sum(request["path"].startswith("/signed/") for _, request in requests)
            renewed += max(signed - 1, 0)
        return f"{refused} refusals, {renewed} new targets" if renewed else None


class ServerStalled(Condition):
    name, rank = "server stalled", 65
    spares_complete = True
    promised = frozenset({"ETIMEDOUT", "EIO"})
    longest = 4.5

    def begin(self, world):
        self.kind = ("stopped", "stall", "stall-head")[world.seed % 3]
        if "server restarting" in self.others and self.kind == "stopped":
            # A new server process would not be stopped.
            self.kind = "stall"
        if self.kind == "stopped":
            world.origin.stop()
        else:
            world.origin.control("*", fault=self.kind)
        # All bytes that the other readers need may be in the cache, or in memory.
        self.wanted = None
        threading.Thread(target=self.want, args=(world,), daemon=True).start()

    def want(self, world):
        """Waits for a byte of a file that nobody has read; the file is judged when all is over."""
        while self.ended is None:
            self.wanted = time.monotonic()
            with contextlib.suppress(OSError):
                with open(world.path("s.bin"), "rb", buffering=0) as file:
                    file.read(1)
                self.wanted = None
                return
            self.wanted = None
            # A killed mount returns.
            time.sleep(0.5)

    def end(self, world):
        if self.kind == "stopped":
            world.origin.go_on()
        else:
            world.origin.control("*", fault=None)

    def evidence(self, world):
        if self.age < 1.5:
            return None
        waiting = max((read["waited_seconds"] for file in world.files_since(self.began)
                       for read in file["waiting_reads"]), default=0)
        # A waiting open is not yet a read.
        if self.wanted is not None and not world.may_be_dead:
            waiting = max(waiting, time.monotonic() - self.wanted)
        return f"{self.kind}: a read waited {waiting:.1f} s" if waiting > 0.3 else None


class ServerRestarting(Condition):
    name, rank = "server restarting", 62
    spares_complete = True
    promised = frozenset({"EIO", "ETIMEDOUT"})
    # Down, up, down, up: the times at which each begins.
    course = (0.0, 0.8, 1.6, 2.2)

    def begin(self, world):
        self.done = 0
        self.step(world)

    def step(self, world):
        if self.done < len(self.course) and self.age >= self.course[self.done]:
            if self.done % 2 == 0:
                world.origin.kill()
            else:
                world.origin.start()
            self.done += 1

    def end(self, world):
        if world.origin.process.poll() is not None:
            world.origin.start()

    def evidence(self, world):
        if self.done < len(self.course):
            return None
        for file in world.files_since(self.began):
            error = file["last_error"]
            if error or file["retries"] or file["state"] == "offline":
                return f"{self.done // 2} restarts; {file['name']}: {error or 'retries'}"
        return None


# MARK: What the judge must find, for the self-check

class WrongByte(Condition):
    """The only server of a file sends one wrong byte under the right tag."""
    name, rank = "wrong byte", 99

    def shape(self, world):
        world.origin.rule("wrong byte", {"path": "/data/p.bin", "range": "500000-500000"}, [
            "head", {"content": ["first", "499999"]}, {"content": ["500000", "500000"], "version": 9},
            {"content": ["max(first, 500001)", "last"]}])


class LateAnswer(Condition):
    """Every read takes longer than the judge allows."""
    name, rank = "late answer", 99

    def shape(self, world):
        world.origin.control("*", latency=400)
        world.judged_deadline = 0.3

    def end(self, world):
        world.origin.control("*", latency=None)


class Missing(Condition):
    """An error that a condition promises for other files."""
    name, rank = "missing file", 99

    def begin(self, world):
        world.origin.control("*/n*.bin", status=404)

    def end(self, world):
        world.origin.control("*/n*.bin", status=None)


class RequestLoop(Condition):
    """Somebody asks again and again for a file that others read."""
    name, rank = "request loop", 99

    def begin(self, world):
        for _ in range(1_500):
            world.origin.get("/data/x.bin?length=10")


class DeadDaemon(Condition):
    """A daemon that ends though nobody was to end it."""
    name, rank = "dead daemon", 99

    def begin(self, world):
        world.daemon.kill()


class ShortRead(Condition):
    """Reads that give less than was wanted, in the middle of a file."""
    name, rank = "short read", 99

    def shape(self, world):
        calls = itertools.count()
        Reader.pread = staticmethod(lambda descriptor, count, offset: os.pread(
            descriptor, count if next(calls) % 3 else 1, offset))


class FailingNames(Condition):
    """A look at the mount point that fails now and then."""
    name, rank = "failing ls", 99
    names = staticmethod(lambda names: os.listdir("/proc/self/no such file"))

    def shape(self, world):
        calls, list_names = itertools.count(), world.list_names
        world.list_names = lambda: list_names() if next(calls) % 2 else self.names(list_names())


class EmptyNames(FailingNames):
    """A mount point that looks empty now and then."""
    name = "empty ls"
    names = staticmethod(lambda names: [])


class HangingNames(FailingNames):
    """A look at the mount point that does not end."""
    name = "hanging ls"
    names = staticmethod(lambda names: time.sleep(120) or names)


class CacheLost(Condition):
    """The next mount finds nothing in the cache."""
    name, rank = "lost cache", 99

    def before_next_mount(self, world):
        shutil.rmtree(world.disk.cache)
        os.mkdir(world.disk.cache, 0o700)


class CacheForgotten(Condition):
    """A mount that drops what it has of files that nobody has open."""
    name, rank = "forgotten cache", 99

    def step(self, world):
        for name in world.subjects:
            with contextlib.suppress(OSError):
                world.daemon.command_line(f"evict {name}")


class CacheLostByKill(Condition):
    """The mount after a kill finds nothing in the cache."""
    name, rank = "cache lost by a kill", 99
    is_done = False

    def step(self, world):
        if not self.is_done and not world.daemon.is_alive:
            self.is_done = True
            CacheLost.before_next_mount(self, world)


class DeafToReload(Condition):
    """A mount that never sees a new list."""
    name, rank = "unread list", 99

    def shape(self, world):
        write_list, calls = world.write_list, itertools.count()
        world.write_list = lambda: None if next(calls) else write_list()


class CachedError(Condition):
    """Reads of all files that fail while a server stands still."""
    name, rank = "error of cached bytes", 99

    def shape(self, world):
        self.sign = f"{world.work}/failing"

        def pread(descriptor, count, offset):
            if os.path.exists(self.sign):
                raise OSError(errno.EIO, "made up")
            return os.pread(descriptor, count, offset)

        Reader.pread = staticmethod(pread)

    def begin(self, world):
        with open(self.sign, "w"):
            pass

    def end(self, world):
        os.unlink(self.sign)


class LateShortRead(Condition):
    """Reads that wait, and then give less than was wanted."""
    name, rank = "late short read", 99

    def shape(self, world):
        world.origin.control("*", latency=400)

        def pread(descriptor, count, offset):
            began = time.monotonic()
            piece = os.pread(descriptor, count, offset)
            return piece[:1] if time.monotonic() - began > 0.3 else piece

        Reader.pread = staticmethod(pread)

    def end(self, world):
        world.origin.control("*", latency=None)


class NotEvicted(Condition):
    """The next mount of a small cache lacks what had not been evicted."""
    name, rank = "lost rest", 99

    def before_next_mount(self, world):
        start = world.daemon.start

        def lose_and_start():
            CacheLost.before_next_mount(self, world)
            start()

        world.daemon.start = lose_and_start


# Each with the expected verdict of the judge, and the pair in which it occurs.
STILL = ("rate limit", "pause/resume")
SABOTAGE = {condition.name: (condition, kind, pair) for condition, kind, pair in (
    (WrongByte, "wrong", STILL), (LateAnswer, "late", STILL),
    (Missing, "unpromised", ("list reloaded", "pause/resume")), (RequestLoop, "requests", STILL),
    (DeadDaemon, "dead", STILL), (ShortRead, "short", ("rate limit", "version changed")),
    (FailingNames, "status", STILL), (EmptyNames, "status", STILL), (HangingNames, "late", STILL),
    (CacheLost, "lost", ("daemon killed", "list reloaded")), (CacheForgotten, "shrunk", STILL),
    (CacheLostByKill, "lost", ("length unknown", "daemon killed")),
    (DeafToReload, "not shown", ("list reloaded", "rate limit")),
    (CachedError, "unpromised", ("passthrough open", "server stalled")),
    (LateShortRead, "short", ("rate limit", "version changed")),
    (NotEvicted, "lost", ("eviction under way", "pause/resume")))}
