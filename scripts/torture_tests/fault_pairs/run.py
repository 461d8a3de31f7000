#!/usr/bin/env python3
"""Runs one pair of conditions with one seed, and prints the result as a line of JSON.

Started by `scripts/torture faults --pairs`, in a separate mount namespace:
run.py CONDITION CONDITION SEED DIRECTORY BINARIES [SABOTAGE]
"""

import collections
import errno
import os
import re
import sys
import threading
import time

sys.dont_write_bytecode = True
# The directory scripts/.
sys.path.insert(0, os.path.abspath(f"{__file__}/../../.."))

from torture_tests.fault_pairs.combinations import MOUNT, further_promises
from torture_tests.fault_pairs.holding import Holding, report_run
from torture_tests.fault_pairs.judge import MOST_WORDS, Handle
from torture_tests.fault_pairs.promises import promises_of, violations
from torture_tests.fault_pairs.readers import Crowd
from torture_tests.fault_pairs.server_conditions import SABOTAGE, LengthUnknown, VersionChanged
from torture_tests.fault_pairs.world import GRACE, MIB, READ_TIMEOUT, World

# At the end, servers are retried after a while, and the cache every 5 s.
RECOVERY = 12.0
# The bound of requests of a file, about four times what runs show: a basis, one per this many
# bytes, and one for each open and each read that had to wait (a read of present bytes costs none).
# Bytes that the cache does not hold are fetched again: for these, one more of both, and one for
# each read.
BASE_REQUESTS, BYTES_PER_REQUEST = 40, 64 << 10
HOLDS_NOTHING = {"cache full", "cache failing", "fsync failing", "spill in use", "eviction under way",
                 "disk frozen"}
# The bytes that the next mount may fetch beyond those that a file lacks: a first byte, which shows
# the version. For an incomplete file, also the rest of a block or of a piece on both sides.
MORE_BYTES, MORE_OF_INCOMPLETE = 4 << 10, 512 << 10
# The bytes that a killed daemon may have had in flight (docs/SEMANTICS.md, "The end"); none for
# files that had been complete for a second.
KILL_LOSS = 16 * MIB
# The additional descriptors that a mount may have at its end: kept connections, pipes of threads,
# open caches.
MORE_DESCRIPTORS = 64 + 24 + 48


def first_byte(request):
    """Where the body of an answer begins in its file."""
    first = re.match(r"bytes=(-?\d+)", request["range"] or "")
    return int(first[1]) if first and request["status"] == 206 else 0


def covered(spans):
    """How many bytes some spans, pairs of start and end, have together."""
    count, end = 0, -sys.maxsize
    for start, stop in sorted(spans):
        count += max(stop - max(start, end), 0)
        end = max(end, stop)
    return count


class PairRun(Holding):
    """One pair with one seed, of a mount."""

    def __init__(self, pair, seed, work, binaries, sabotage=None):
        kinds = [MOUNT.conditions[name] for name in pair] + ([SABOTAGE[sabotage][0]] if sabotage else [])
        super().__init__(pair, seed, World(binaries, work, seed), kinds)
        self.causes = {key: collections.Counter() for key in ("opens", "calls", "slow")}
        # The durations of short reads after which the next byte arrived.
        self.shorts = []

    def run(self):
        world = self.world
        crowd = None
        try:
            world.make_servers_and_disk()
            for condition in self.conditions:
                condition.shape(world)
            world.start()
            for condition in self.conditions:
                condition.warm(world)
            if "disk frozen" in self.pair:
                world.mount_again()
            for condition in self.conditions:
                condition.prepare(world)
            descriptors = world.daemon.descriptors()
            crowd = Crowd(world, world.judged_deadline or READ_TIMEOUT + GRACE)
            threading.Thread(target=world.watch, daemon=True).start()
            try:
                self.hold()
            finally:
                results, hanging = crowd.finish()
                world.is_over.set()
            self.judge(results, hanging)
            world.forget_held()
            self.finish(descriptors)
        except (SystemExit, OSError) as error:
            self.violate("broken", f"{type(error).__name__} {error}")
            daemon = world.daemon
            if daemon and daemon.process and not daemon.is_alive and not world.may_be_dead:
                self.violate("dead", f"the daemon has ended: {daemon.process.returncode}")
        finally:
            self.log = world.daemon.log() if world.daemon and self.violations else []
            if crowd is not None:
                crowd.tear_down()
            self.tear_down()

    @property
    def is_over(self):
        """Whether the daemon has ended though nobody was to end it."""
        return not self.world.daemon.is_alive and not self.world.may_be_dead

    # MARK: The promises

    def judge(self, results, hanging):
        results = results + [judge.result() for condition in self.conditions
                             for judge in getattr(condition, "judges", ())]
        for result in results:
            for key in ("reads", "bytes", "wrong", "late"):
                self.totals[key] += result[key]
            self.errors.update(result["errors"])
            self.slowest = max(self.slowest, result["slowest"])
            for kind, texts in result["words"].items():
                for text in texts:
                    self.violate(kind, text)
        for key in self.causes:
            for result in results:
                self.causes[key].update(result[key])
        for text in hanging:
            self.violate("late", text)
        self.judge_events([event for result in results for event in result["events"]])
        if self.totals["reads"] == 0:
            self.violate("broken", "nobody could read anything")
        self.judge_shown()
        self.judge_growth()
        for text in self.world.slowness():
            self.violate("late", text)
        for text in self.world.status_faults[:MOST_WORDS]:
            self.violate("status", text)

    def judge_events(self, events):
        """Holds what readers were told, and short reads, against what is promised of file and moment."""
        promises = promises_of(self.conditions) + further_promises(self.pair, self.conditions)
        told = collections.Counter()
        self.shorts = [round(event["ended"] - event["began"], 2) for event in events
                       if event["code"] == "SHORT" and not event["failed_next"]]
        self.totals["short"] += sum(event["code"] == "SHORT" for event in events)
        for kind, text in violations(events, promises):
            self.totals["unpromised"] += 1
            told[kind] += 1
            if told[kind] <= MOST_WORDS:
                self.violate(kind, text)

    def finish(self, descriptors):
        """All is over: everything can be read, now and by the next mount, and nothing is left."""
        world = self.world
        if not world.daemon.is_alive:
            self.violate("dead", f"the daemon has ended: {world.daemon.process.returncode}")
            return
        self.read_everything("when all was over")
        self.compare_requests()
        self.wait_for_silence()
        more = world.daemon.descriptors() - descriptors
        if more > MORE_DESCRIPTORS:
            self.violate("left over", f"{more} descriptors more than at the start")
        before = self.cached()
        self.judge_kill(before)
        code = world.daemon.unmount()
        if code != 0:
            self.violate("dead", f"the daemon ended with {code} after its unmount")
        if world.daemon.is_mounted:
            self.violate("left over", "the mount, after its unmount")
            return
        world.calls.faults.clear()
        world.calls.write()
        for condition in self.conditions:
            condition.before_next_mount(world)
        stored = self.stored()
        began = self.answered()
        world.daemon.start()
        world.daemon.wait_until_ready()
        self.read_everything("by the next mount")
        self.compare_caches(before, stored, self.cached(), began)
        code = world.daemon.unmount()
        if code != 0:
            self.violate("dead", f"the next mount ended with {code}")

    # MARK: The cache

    def cached(self):
        """What the mount says of the cache, by the name of the file."""
        return {file["name"]: file for file in self.world.daemon.status()["files"]}

    def answered(self):
        """How many requests servers have answered so far, by the name of the file and the server."""
        return collections.Counter((name, server) for name, requests in self.world.responses().items()
                                   for server, _ in requests)

    def sent_since(self, answered):
        """The bytes of files that servers have sent since, by the name of the file: a byte that was sent
        twice, as to a hedged request, counts once."""
        found, seen = collections.Counter(), collections.Counter()
        for name, requests in self.world.responses().items():
            spans = []
            for server, request in requests:
                seen[name, server] += 1
                if seen[name, server] > answered[name, server] and request["status"] in (200, 206):
                    start = first_byte(request)
                    spans.append((start, start + request["body_bytes"]))
            found[name] = covered(spans)
        return found

    def stored(self):
        """Bytes of data files on the disk by the length of the file, which no two files share.

        None of a file whose own sync failed, or the sync of the record that names its bytes (FAULTS 48).
        """
        self.world.calls.seen()
        doubtful = {path for _, path in self.world.calls.syncs.failed}
        lost = self.world.calls.syncs.lost_records
        found = collections.Counter()
        for path in self.world.disk.data_files():
            entry, name = os.path.split(path)
            if name.startswith("data-") and path not in doubtful and entry not in lost:
                status = os.stat(path)
                found[status.st_size] = max(found[status.st_size], 512 * status.st_blocks)
        return found

    def compare_caches(self, before, stored, after, answered):
        """Nothing that was cached is fetched again by the next mount, which keeps what it fetches."""
        # Servers write their log when a response has ended.
        time.sleep(0.2)
        sent = self.sent_since(answered)
        for name, subject in self.world.subjects.items():
            held = before[name]["cached_bytes"]
            length = after[name]["length"] or subject.length
            if before[name]["validator"] != after[name]["validator"]:
                # The cached bytes are of another version.
                held = 0
            elif HOLDS_NOTHING & set(self.pair):
                # While the cache fails, `.status.json` also counts bytes that are only in memory.
                # Bytes of a failed sync and evicted bytes are no longer claimed.
                held = min(held, stored[length])
            if "length unknown" in self.pair and name in LengthUnknown.promised_names and held < length:
                # A server that does not send a length does not accept ranges: the rest arrives with
                # all bytes before it.
                held = 0
            allowed = length - held + (MORE_BYTES if held >= length else MORE_OF_INCOMPLETE)
            self.totals["fetched again"] += max(sent[name] - (length - held), 0)
            if sent[name] > allowed:
                self.violate("lost", f"{name}: {held} of {length} bytes were cached, and the next mount "
                                     f"fetched {sent[name]}")
            if after[name]["cached_bytes"] < length:
                self.violate("not kept", f"{name}: the next mount has {after[name]['cached_bytes']} of "
                                         f"{length} bytes in the cache when all is read")

    def changing(self):
        """The files whose cached bytes a condition may replace."""
        return frozenset().union(*(condition.changing for condition in self.conditions))

    def doubtful(self):
        """The files of which a running mount may lose cached bytes, beside those that change: bytes that a
        mirror has sent and no hash confirms."""
        return self.changing() | ({"x.bin"} if "mirror lying" in self.pair else set())

    def complete(self):
        """The files that the cache has whole by now, and keeps."""
        if HOLDS_NOTHING & set(self.pair):
            return frozenset()
        now = time.monotonic()
        # A kill may cost the bytes that arrived in the second before it.
        latest = [now, now - 1] if "daemon killed" in self.pair else [now]
        found = set(self.world.subjects) - self.doubtful()
        for moment in latest:
            status = next((status for began, status in reversed(self.world.samples)
                           if status and began < moment), {"files": ()})
            found &= {file["name"] for file in status["files"] if file["state"] == "complete"}
        return frozenset(found)

    def judge_growth(self):
        """What a running mount has cached of a version only grows."""
        if HOLDS_NOTHING & set(self.pair):
            return
        doubtful, held, words = self.doubtful(), {}, []
        for moment, status in self.world.samples:
            for file in status["files"] if status else ():
                name, count = file["name"], file["cached_bytes"]
                key = name, file["validator"], status["generation"]
                if name not in doubtful and count < held.get(key, 0):
                    words.append(f"{name}: first {held[key]} bytes were cached, and then {count} (at {moment:.2f})")
                    doubtful |= {name}
                held[key] = count
        for text in words[:MOST_WORDS]:
            self.violate("shrunk", text)

    def judge_kill(self, now):
        """What was cached when the daemon was killed is not fetched again."""
        kill = next((condition for condition in self.conditions if condition.name == "daemon killed"), None)
        if kill is None or kill.killed is None or HOLDS_NOTHING & set(self.pair):
            return
        changing = self.changing()
        samples = [(moment, {file["name"]: file for file in status["files"]})
                   for moment, status in self.world.samples if status and moment < kill.killed]
        if not samples:
            return
        old = next((files for moment, files in reversed(samples) if moment < kill.killed - 1), {})
        last, excess = samples[-1][1], 0
        for name, file in now.items():
            if name in changing:
                continue
            held = last.get(name, {}).get("cached_bytes", 0)
            # A file that was not read since a reload has no length, and has fetched nothing.
            lacking = max((file["length"] or held) - held, 0)
            more = max(file["fetched_bytes"] - lacking, 0)
            excess += more
            if name in old and old[name]["state"] == "complete" and more > MORE_BYTES:
                self.violate("lost", f"{name} was complete a second before the kill, and {more} bytes of it "
                                     "were fetched again")
        self.totals["fetched again"] += excess
        if excess > KILL_LOSS:
            self.violate("lost", f"{excess} bytes that were cached at the kill were fetched again")

    def wait_for_silence(self):
        """Nobody reads any more: no handle is open, and nothing waits."""
        deadline = time.monotonic() + 15
        while True:
            status = self.world.daemon.status()
            handles = status["kernel"]["open_handles"]
            waiting = status["totals"]["waiting_reads"]
            if not handles and not waiting:
                return
            if time.monotonic() > deadline:
                self.violate("left over", f"{handles} open handles and {waiting} waiting reads")
                return
            time.sleep(0.05)

    def read_everything(self, when):
        deadline = time.monotonic() + RECOVERY
        for name in self.world.subjects:
            while True:
                try:
                    fault, versions = self.read_whole(name)
                except OSError as error:
                    if time.monotonic() < deadline:
                        time.sleep(0.1)
                        continue
                    self.violate("unpromised", f"{name} {when}: {error}")
                else:
                    newest = self.newest(name)
                    is_old = newest is not None and newest not in versions
                    if is_old and not fault and time.monotonic() < deadline:
                        time.sleep(0.1)
                        continue
                    if fault:
                        self.totals["wrong"] += 1
                        self.violate("wrong", f"{when}: {fault}")
                    elif is_old:
                        self.violate("old", f"{name} {when}: still version {sorted(versions)}")
                break

    def newest(self, name):
        """The version that every open must show by now; None where several may be seen."""
        is_changed = "version changed" in self.pair and "mirror lying" not in self.pair
        return 2 if is_changed and name in VersionChanged.files else None

    def read_whole(self, name):
        """Reads a file from its start: what is wrong with it, and the versions it may be of."""
        descriptor = os.open(self.world.path(name), os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            is_stream = name in self.world.without_length
            handle = Handle(name, self.world.contents[name],
                            os.fstat(descriptor).st_size if is_stream else None)
            offset = 0
            while True:
                piece = os.pread(descriptor, MIB, offset)
                fault = handle.fault_of(piece, offset, MIB)
                if not fault and handle.is_short(piece, offset, MIB):
                    short = f"{name} at {offset}: only {len(piece)} of {MIB} bytes"
                    # An error after it is raised, unless it has passed meanwhile.
                    if os.pread(descriptor, 1, offset + len(piece)):
                        raise OSError(errno.EIO, f"{short}, and then more")
                    fault = f"{short}, and then the end"
                self.totals["reads"] += 1
                self.totals["bytes"] += len(piece)
                if fault or not piece:
                    return fault, handle.candidates
                offset += len(piece)
        finally:
            os.close(descriptor)

    def compare_requests(self):
        opens, calls, slow = self.causes.values()
        for name, requests in self.world.responses().items():
            self.totals["requests"] += len(requests)
            self.totals["body bytes"] += sum(request["body_bytes"] for _, request in requests)
            causes = opens[name] + slow[name]
            if name not in self.world.subjects:
                continue
            bound = (BASE_REQUESTS + self.world.subjects[name].length // BYTES_PER_REQUEST + causes
                     + (causes + calls[name] if HOLDS_NOTHING & set(self.pair) else 0))
            self.closest = max(self.closest, len(requests) / bound)
            if len(requests) > bound:
                self.violate("requests", f"{len(requests)} requests of {name}, for {opens[name]} opens "
                                         f"and {calls[name]} reads, of which {slow[name]} waited: "
                                         f"more than {bound}")

    def result(self, seconds):
        return super().result(seconds) | {
            "slowest_status": round(max(self.world.status_times, default=0), 2), "shorts": self.shorts}


def main():
    pair, seed = tuple(sys.argv[1:3]), int(sys.argv[3])
    work, binaries = sys.argv[4:6]
    report_run(PairRun(pair, seed, work, binaries, *sys.argv[6:7]))


if __name__ == "__main__":
    main()
