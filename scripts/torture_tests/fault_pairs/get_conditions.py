"""The conditions of a download: the applicable ones of a mount, and some additional ones."""

import re
import time

from .conditions import CacheFailing, CacheFull, Condition, SyncFailing
from .server_conditions import (LengthLearnedLate, LengthUnknown, MirrorLying, ServerRestarting,
                                ServerStalled, SignedURLExpired, VersionChanged)
from .world import KIB, MIB, PIECE

# The offset at which early ends occur, and for how many seconds: a condition that needs another
# request of a stream then gets one.
CUT_AT, CUT_FOR = 2 * MIB, 3.0

# These faults end a process at once, so a server must begin its own faults before them.
ENDING = frozenset({"disk full", "disk failing"})
BEFORE_ENDING = 25


# The exit codes of a failed transfer, one for each kind of reason.
FAILURES = frozenset({1, 2, 3, 6, 9, 19, 22, 23, 24, 32, 60})


class GetCondition(Condition):
    """A trouble of `httpfs get`."""

    # The exit codes that the documentation promises because of it, besides 0.
    exits = frozenset()
    # Whether the partial file or its record may lack bytes that were stored.
    loses = False
    # Whether the server ends the first response early.
    cuts = False

    def allows(self, attempt):
        """Whether a process may have ended as it did because of this."""
        return (attempt.code in self.exits and self.began is not None and attempt.ended >= self.began
                and (self.ended is None or attempt.began <= self.ended))

    def shape(self, world):
        super().shape(world)
        if self.cuts:
            world.origin.rule("cut", {"path": "/data/x.bin", "times": 1},
                              ["head", {"body": CUT_AT}, "reset"])

    def step(self, world):
        super().step(world)
        # A stream restarts at its first byte, so it must not be cut forever.
        if self.cuts and self.age > CUT_FOR:
            world.origin.remove_rule("cut")

    def end(self, world):
        super().end(world)
        if self.cuts:
            world.origin.remove_rule("cut")

    def promises(self):
        return []


class DiskFull(GetCondition, CacheFull):
    name, exits, loses = "disk full", FAILURES, True

    def __init__(self, others):
        super().__init__(others)
        # Calls that fail by injection do not reach the disk.
        self.lead = 3.0 if "disk failing" in others else 0.0

    def evidence(self, world):
        said = world.said("No space left|free some space", self.began)
        return super().evidence(world) or (f"said: {said}" if said else None)


class DiskFailing(GetCondition, CacheFailing):
    name, exits, loses = "disk failing", FAILURES, True


class DiskSyncFailing(GetCondition, SyncFailing):
    name, exits, loses = "fsync failing", FAILURES, True
    # A sync comes 2 s after the first new byte, and a stream that starts again brings old bytes
    # first.
    longest = 9.0

    def __init__(self, others):
        super().__init__(others)
        # Bytes that are never stored are never synced, and a download that ends within 2 s has no
        # sync.
        self.lead = 3.0


class Frozen(GetCondition):
    name, rank, longest = "disk frozen", 70, 3.5

    def begin(self, world):
        self.was_running = world.daemon.is_alive
        world.disk.freeze()

    def end(self, world):
        world.disk.thaw()

    def evidence(self, world):
        self.was_running |= world.daemon.is_alive
        return f"frozen for {self.age:.1f} s" if self.age > 2 and self.was_running else None


class NoLength(GetCondition, LengthUnknown):
    loses = True

    def shape(self, world):
        world.without_length.add("x.bin")
        world.subjects["x.bin"].parameters["chunked"] = "yes"

    def end(self, world):
        pass

    def evidence(self, world):
        for line in world.daemon.lines():
            if line["event"] == "progress" and line["received"] and line["total"] is None:
                return f"{line['received']} bytes were received, and no length was known"
        return None


class LateLength(GetCondition, LengthLearnedLate):
    loses = True

    def evidence(self, world):
        if self.is_there:
            return None
        lines = [line for line in world.daemon.lines() if line["event"] == "progress"]
        # A killed server does not log the response that it was sending.
        late = (any(request["rule"] == "late" for request in world.answers())
                or any(line["received"] and line["total"] is None for line in lines))
        if late and any(line["total"] for line in lines):
            return "an answer without length, then one with a length"
        return None


class NewVersion(GetCondition, VersionChanged):
    longest, is_obeyed, loses, cuts = 6.0, False, True, True
    files = ("x.bin",)

    def __init__(self, others):
        super().__init__(others)
        self.is_obeyed = False

    def evidence(self, world):
        later = [request for request in world.answers() if request["moment"] > self.began + 0.05]
        return f"{len(later)} answers with another version" if later else None


class LyingMirror(GetCondition, MirrorLying):
    loses = cuts = True
    # A list of hashes contains the length; and bytes that are stored decoded are not compared with
    # the hashes.
    without_pieces = MirrorLying.without_pieces | {"compressed"}

    def evidence(self, world):
        lies = world.answers("mirror")
        said = world.said(re.escape(world.mirror.base.rpartition("/")[2]), 0)
        return f"{len(lies)} answers of the mirror" if lies else f"said: {said}" if said else None


class ExpiredURL(GetCondition, SignedURLExpired):
    cuts = True
    files = ("x.bin",)

    def evidence(self, world):
        requests = [request for _, request in world.responses()["x.bin"]]
        refused = sum(request["status"] == 403 for request in requests)
        signed = [request["moment"] for request in requests if request["path"].startswith("/signed/")]
        renewed = sum(moment > min(signed) + 1.5 for moment in signed)
        return f"{refused} refusals, {renewed} new targets" if refused or renewed else None


class Stalled(GetCondition, ServerStalled):
    # The required silence in seconds; --json reports progress once a second.
    silence = 2.0

    def __init__(self, others):
        super().__init__(others)
        if others & ENDING:
            self.rank, self.lead = BEFORE_ENDING, 3.0

    def shape(self, world):
        self.kind = ("stopped", "stall", "stall-head")[(world.seed - 1) % 3]
        if "server restarting" in self.others and self.kind == "stopped":
            # A new server process would not be stopped; each lets the first half of a body through.
            self.kind = "stall-head"
        # The first response must be the wrong one; a list with hashes gives the length for others.
        self.cuts = self.kind != "stopped" and "wrong pieces" not in self.others
        super().shape(world)

    def begin(self, world):
        self.seen = None
        self.moved = time.monotonic()
        if self.kind == "stopped":
            world.origin.stop()
        else:
            world.origin.control("*", fault=self.kind)

    def evidence(self, world):
        now = world.daemon.last.number, world.daemon.last.received()
        if now != self.seen or not world.daemon.is_alive:
            self.seen, self.moved = now, time.monotonic()
        seconds = time.monotonic() - self.moved
        if seconds > self.silence:
            return f"{self.kind}: nothing came for {seconds:.1f} s"
        # A download may go on by other requests while single answers stall.
        stalled = [request for request in world.answers()
                   if request["moment"] > self.began and request["duration_ms"] > self.silence * 1000]
        return f"{self.kind}: {len(stalled)} answers took longer than {self.silence:.0f} s" \
            if self.kind != "stopped" and stalled else None


class Restarting(GetCondition, ServerRestarting):
    # A process without any answer tries only three times.
    exits = FAILURES

    def __init__(self, others):
        super().__init__(others)
        if others & ENDING:
            self.rank = BEFORE_ENDING

    def allows(self, attempt):
        return super().allows(attempt) and attempt.number > 1

    def begin(self, world):
        self.hits = 0
        super().begin(world)

    def step(self, world):
        before = self.done
        super().step(world)
        if self.done > before and self.done % 2 == 1:
            self.hits += world.daemon.is_alive

    def evidence(self, world):
        # An ended download is restarted, and needs the server.
        return f"{self.hits} restarts below a download" if self.done == len(self.course) and self.hits else None


class DownloadKilled(GetCondition):
    """`kill -9`, twice; the runner starts the same command again."""
    name, rank, loses = "download killed", 60, True
    longest = 6.0
    moments = (0.4, 1.6)

    def begin(self, world):
        self.kills = 0
        self.first = len(world.daemon.attempts)

    def step(self, world):
        if self.kills < len(self.moments) and self.age > self.moments[self.kills] and world.daemon.is_alive:
            world.daemon.kill()
            self.kills += 1

    def evidence(self, world):
        later = world.daemon.attempts[self.first:]
        return f"killed {self.kills} times, and begun again" if self.kills and later else None


class LimitedRate(GetCondition):
    name, rank = "rate limit", 7
    limit = 700 * KIB
    # The bytes that are received at once, which a process may report before it has waited for them.
    burst = MIB

    def shape(self, world):
        world.options += ["--rate-limit", str(self.limit)]

    def evidence(self, world):
        found = None
        for attempt in world.daemon.attempts:
            for line in attempt.lines():
                count = line["received"] - line["resumed"] if line["event"] == "progress" else 0
                if count > self.limit * line["elapsed"] * 1.1 + self.burst and not self.faults:
                    self.faults.append(["too fast", f"{count} bytes in {line['elapsed']} s at a limit of "
                                                    f"{self.limit} bytes/s"])
                if count > 0 and line["elapsed"] >= 1:
                    found = f"{count} bytes in {line['elapsed']:.1f} s"
        return found


class Hedging(GetCondition):
    """Several connections, one of which brings nothing any more: its bytes are asked for again."""
    name, rank = "hedging", 8

    def shape(self, world):
        world.options += ["--connections", "4"]
        world.origin.rule("hedge", {"path": "/data/x.bin", "range": True, "times": 1},
                          ["head", {"body": 100_000}, "stall"])

    def end(self, world):
        world.origin.remove_rule("hedge")

    def evidence(self, world):
        answers = world.answers()
        for stalled in answers:
            first, last = span(stalled)
            end = stalled["moment"] + stalled["duration_ms"] / 1000 + 0.5
            if stalled["rule"] == "hedge" and any(
                    first < span(other)[0] <= last and stalled["moment"] < other["moment"] < end
                    for other in answers):
                return f"what stalled behind {first} was asked for again"
        return None


def span(request):
    """The first and last byte that a request wants."""
    match = re.match(r"bytes=(\d+)-(\d*)", request["range"] or "")
    return (int(match[1]), int(match[2] or 1 << 62)) if match else (0, 1 << 62)


class WrongPieces(GetCondition):
    """A server that sends wrong bytes of a piece, once or until it is mended, and a list with hashes."""
    name, rank, loses = "wrong pieces", 9, True

    def shape(self, world):
        world.subjects["x.bin"].has_pieces = True
        self.is_lasting = world.seed % 3 == 2
        # If the mirror is wrong only once, the wrong byte is in the range of every first response.
        self.place = PIECE * (5 if self.is_lasting else 0) + 1_000
        # A server that is started again is wrong once more, and a single server has two tries. Beside a
        # lying mirror, both servers have sent wrong bytes, and no server is left to ask.
        if self.is_lasting or {"server restarting", "mirror lying"} & self.others:
            self.exits = FAILURES
        match = {"path": "/data/x.bin", "range": f"{self.place}-{self.place}"}
        world.origin.rule("wrong piece", match if self.is_lasting else match | {"times": 1}, [
            "head", {"content": ["first", f"{self.place - 1}"]},
            {"content": [f"max(first, {self.place})", f"min(last, {self.place + 99})"], "version": 9},
            {"content": [f"max(first, {self.place + 100})", "last"]}])

    def end(self, world):
        world.origin.remove_rule("wrong piece")

    def evidence(self, world):
        wrong = [request for request in world.answers()
                 if request["rule"] == "wrong piece" and reaches(request, self.place)]
        return f"{len(wrong)} answers with a wrong piece" if wrong else None


def reaches(request, place):
    return request["complete"] or span(request)[0] + request["body_bytes"] > place


class Compressed(GetCondition):
    name, rank, loses = "compressed", 11, True

    def shape(self, world):
        world.options += ["--compressed"]
        world.subjects["x.bin"].parameters["coding"] = "gzip"

    def evidence(self, world):
        coded = [request for request in world.answers()
                 if "gzip" in request["headers"].get("accept-encoding", "") and request["body_bytes"]]
        return f"{len(coded)} answers with a coded body" if coded else None
