#!/usr/bin/env python3
"""Runs one pair of conditions with one seed, and prints what came of it as a line of JSON.

Started by `scripts/faults --pairs`, in a mount namespace of its own:
run.py CONDITION CONDITION SEED DIRECTORY BINARIES [SABOTAGE]
"""

import collections
import json
import os
import signal
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fault_pairs.combinations import TABLE, promised_by
from fault_pairs.judge import Handle
from fault_pairs.readers import Crowd
from fault_pairs.server_conditions import SABOTAGE
from fault_pairs.world import GRACE, MIB, READ_TIMEOUT, STATUS_LIMIT, World

# How long both conditions hold at least, and by when each must have been seen.
SHORTEST = 2.2
STEP = 0.08
# When all is over, servers are asked again after a while, and the cache every 5 s.
RECOVERY = 12.0
# Requests of a file: a basis, and so many for each open, each read, and each read that had to wait.
BASE_REQUESTS, PER_OPEN, PER_READ, PER_SLOW_READ = 100, 3, 2, 5
# Descriptors that a mount may have more at its end: kept connections, pipes of threads, open caches.
MORE_DESCRIPTORS = 64 + 24 + 48


class PairRun:
    """One pair with one seed."""

    def __init__(self, pair, seed, work, binaries, sabotage=None):
        self.pair, self.seed = pair, seed
        self.world = World(binaries, work, seed)
        names = set(pair)
        kinds = [TABLE[name] for name in pair] + ([SABOTAGE[sabotage]] if sabotage else [])
        self.conditions = sorted((kind(names - {kind.name}) for kind in kinds),
                                 key=lambda condition: condition.rank)
        self.promised = self.world.promised = promised_by(pair)
        self.violations = []
        self.evidence = {}
        self.together = 0.0
        self.totals = collections.Counter()
        self.errors = collections.Counter()
        self.causes = {key: collections.Counter() for key in ("opens", "calls", "slow")}
        self.slowest = 0.0
        self.log = []

    def violate(self, kind, text):
        self.violations.append([kind, text])

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
            crowd = Crowd(world, self.promised, world.judged_deadline or READ_TIMEOUT + GRACE)
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

    # MARK: The conditions

    def hold(self):
        """Begins the conditions, lets them hold together, and ends them."""
        active = []
        self.pace(active, 0.4)
        for condition in self.conditions:
            condition.began = time.monotonic()
            condition.begin(self.world)
            active.append(condition)
            self.pace(active, 0.3)
            deadline = time.monotonic() + condition.lead
            while time.monotonic() < deadline and condition.name not in self.evidence:
                self.pace(active, STEP)
                self.look(condition)
        began = time.monotonic()
        both = None
        while active:
            self.pace(active, STEP)
            for condition in active:
                self.look(condition)
            if time.monotonic() - began < SHORTEST:
                continue
            # The last to begin ends first, but where it has not been seen yet and the other one has.
            unseen = [condition for condition in active if condition.name not in self.evidence]
            for condition in reversed(list(active)):
                if condition.name in self.evidence and (unseen or len(active) <= 2) \
                        or condition.age > condition.longest:
                    both = both or time.monotonic()
                    # The disk must go on before what is on it can be removed.
                    for frozen in [other for other in active if other.name == "disk frozen"]:
                        self.end(frozen, active)
                    if condition in active:
                        self.end(condition, active)
                    break
        self.together = (both or time.monotonic()) - began
        time.sleep(0.4)

    def pace(self, active, seconds):
        """Lets time pass, in which the conditions go on."""
        end = time.monotonic() + seconds
        while True:
            for condition in active:
                condition.step(self.world)
            if not self.world.daemon.is_alive and not self.world.may_be_dead:
                return
            if time.monotonic() >= end:
                return
            time.sleep(min(STEP, seconds))
            self.forget_pages()

    def forget_pages(self):
        if not self.world.disk.is_frozen and not self.world.disk.is_thin:
            self.world.disk.forget_pages()

    def look(self, condition):
        if condition.name not in self.evidence:
            evidence = condition.evidence(self.world)
            if evidence:
                self.evidence[condition.name] = evidence

    def end(self, condition, active):
        active.remove(condition)
        condition.end(self.world)
        self.look(condition)
        self.violations += condition.faults

    # MARK: The promises

    def judge(self, results, hanging):
        for result in results:
            for key in ("reads", "bytes", "wrong", "late", "unpromised"):
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
        if self.totals["reads"] == 0:
            self.violate("broken", "nobody could read anything")
        for name in self.pair:
            if name not in self.evidence:
                self.violate("not shown", f"'{name}' did not take hold")
        if self.world.slowest_status > STATUS_LIMIT:
            self.violate("late", f".status.json and ls took {self.world.slowest_status:.1f} s")

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
        code = world.daemon.unmount()
        if code != 0:
            self.violate("dead", f"the daemon ended with {code} after its unmount")
        if world.daemon.is_mounted:
            self.violate("left over", "the mount, after its unmount")
            return
        world.calls.faults.clear()
        world.calls.write()
        world.daemon.start()
        world.daemon.wait_until_ready()
        self.read_everything("by the next mount")
        code = world.daemon.unmount()
        if code != 0:
            self.violate("dead", f"the next mount ended with {code}")

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
                    fault = self.read_whole(name)
                except OSError as error:
                    if time.monotonic() < deadline:
                        time.sleep(0.1)
                        continue
                    self.violate("unpromised", f"{name} {when}: {error}")
                else:
                    if fault:
                        self.totals["wrong"] += 1
                        self.violate("wrong", f"{when}: {fault}")
                break

    def read_whole(self, name):
        descriptor = os.open(self.world.path(name), os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            handle = Handle(name, self.world.contents[name])
            offset = 0
            while True:
                piece = os.pread(descriptor, MIB, offset)
                fault = handle.fault_of(piece, offset, MIB)
                self.totals["reads"] += 1
                self.totals["bytes"] += len(piece)
                if fault or not piece:
                    return fault
                offset += len(piece)
        finally:
            os.close(descriptor)

    def compare_requests(self):
        opens, calls, slow = self.causes.values()
        for name, requests in self.world.responses().items():
            self.totals["requests"] += len(requests)
            self.totals["body bytes"] += sum(request["body_bytes"] for _, request in requests)
            bound = (BASE_REQUESTS + PER_OPEN * opens[name] + PER_READ * calls[name]
                     + PER_SLOW_READ * slow[name])
            if len(requests) > bound:
                self.violate("requests", f"{len(requests)} requests of {name}, for {opens[name]} opens "
                                         f"and {calls[name]} reads, of which {slow[name]} waited: "
                                         f"more than {bound}")

    def tear_down(self):
        for text in self.world.tear_down():
            self.violate("left over", text)
        with open("/proc/self/mountinfo") as table:
            for line in table:
                place = line.split()[4]
                if place.startswith(self.world.work + "/"):
                    self.violate("left over", f"a mount on {place}")
        if self.world.disk is not None:
            deadline = time.monotonic() + 5
            while self.world.disk.loop_devices() and time.monotonic() < deadline:
                time.sleep(0.05)
            for device in self.world.disk.loop_devices()[:1]:
                self.violate("left over", device)

    def result(self, seconds):
        return {
            "pair": self.pair, "seed": self.seed, "evidence": self.evidence,
            "together": round(self.together, 1), "totals": self.totals, "errors": self.errors,
            "slowest": round(self.slowest, 2),
            "slowest_status": round(self.world.slowest_status, 2),
            "violations": self.violations, "seconds": round(seconds, 1), "log": self.log,
        }


def main():
    # SIGTERM unwinds like Ctrl-C, so that everything is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pair, seed = tuple(sys.argv[1:3]), int(sys.argv[3])
    work, binaries = sys.argv[4:6]
    began = time.monotonic()
    run = PairRun(pair, seed, work, binaries, *sys.argv[6:7])
    try:
        run.run()
    except BaseException as error:
        run.violate("broken", "".join(traceback.format_exception(error))[-1500:])
    print(json.dumps(run.result(time.monotonic() - began)), flush=True)


if __name__ == "__main__":
    main()
