#!/usr/bin/env python3
"""Runs one pair of conditions of a download with one seed, and prints the result as a line of JSON.

Started by `scripts/torture faults --pairs --get`, in a separate mount namespace:
get_run.py CONDITION CONDITION SEED DIRECTORY BINARIES [SABOTAGE]
"""

import os
import sys
import time

sys.dont_write_bytecode = True
# The directory scripts/.
sys.path.insert(0, os.path.abspath(f"{__file__}/../../.."))

from torture_tests.fault_pairs.get_combinations import GET
from torture_tests.fault_pairs.get_sabotage import SABOTAGE
from torture_tests.fault_pairs.get_world import PARTIAL_NAMES, PASSING_NAMES, RATE, STALL_TIMEOUT, GetWorld
from torture_tests.fault_pairs.holding import STEP, Holding, report_run
from torture_tests.fault_pairs.world import KIB, MIB

# The time limit of a process after the end of all conditions: the rest at the slowest rate, a
# stalled request and the longest delays of retries.
DEADLINE = 45
# The time that a user waits before giving the same command again.
PAUSE = 0.4
# The bound of requests of one process, about three times what runs show: a basis, and one per this
# many bytes.
BASE_REQUESTS, BYTES_PER_REQUEST = 30, 128 << 10
# The bytes that a process may fetch beyond those that the partial file lacks: partly present
# blocks. After a kill, these include the bytes since the last record, up to 2 s before.
MORE_BYTES, KILL_LOSS = 512 * KIB, 2 * RATE + 2 * MIB
# The maximum number of requests of a repeated command: the file's own URL, and its redirect target.
MOST_WHEN_UNCHANGED = 6


class GetRun(Holding):
    """One pair with one seed, of a download."""

    def __init__(self, pair, seed, work, binaries, sabotage=None):
        kinds = [GET.conditions[name] for name in pair] + ([SABOTAGE[sabotage][0]] if sabotage else [])
        super().__init__(pair, seed, GetWorld(binaries, work, seed), kinds)
        self.is_complete = False

    def run(self):
        world = self.world
        try:
            world.make_servers_and_disk()
            for condition in self.conditions:
                condition.shape(world)
            world.start()
            self.hold()
            self.finish()
        except (SystemExit, OSError) as error:
            self.violate("broken", f"{type(error).__name__} {error}")
        finally:
            self.log = world.daemon.log() if world.daemon and self.violations else []
            self.tear_down()

    # MARK: While the conditions hold

    @property
    def is_over(self):
        return self.is_complete

    def go_on(self):
        """Gives the same command again when it has ended without the file."""
        download = self.world.daemon
        if self.is_complete:
            time.sleep(STEP)
        elif download.note_end():
            self.judge_attempt(download.last)
            if not self.is_complete and time.monotonic() > download.last.ended + PAUSE:
                download.start()

    # MARK: The promises

    def judge_attempt(self, attempt):
        """How a process has ended, and what it has left; once."""
        if hasattr(attempt, "is_judged"):
            return
        attempt.is_judged = True
        code = attempt.code
        self.slowest = max(self.slowest, attempt.ended - attempt.began)
        if code:
            self.errors[f"exit {code}" if code > 0 else f"signal {-code}"] += 1
        said = attempt.said()
        if code == 0:
            self.judge_file(f"of process {attempt.number}, which ended with 0")
            self.is_complete = True
        elif code < 0:
            if not (attempt.was_killed and code == -9):
                self.violate("dead", f"process {attempt.number} ended by signal {-code}: {said[-300:]}")
        elif not any(condition.allows(attempt) for condition in self.conditions
                     if hasattr(condition, "allows")):
            self.totals["unpromised"] += 1
            self.violate("unpromised", f"process {attempt.number} ended with {code} after "
                                       f"{attempt.ended - attempt.began:.1f} s: {said[-300:]}")
        elif not attempt.errors() and not said:
            self.violate("silent", f"process {attempt.number} ended with {code}, and said nothing")
        if code:
            self.judge_failed(attempt)
        self.judge_names(attempt)

    def judge_file(self, what):
        """The file under its name is whole, and of the version that its validators name."""
        version, named = self.world.version_at_name(), self.world.version_named()
        self.totals["reads"] += 1
        if version not in self.world.contents["x.bin"]:
            self.totals["wrong"] += 1
            self.violate("wrong", f"the file {what}: {version}")
            return
        self.totals["bytes"] += len(self.world.contents["x.bin"][version])
        if named is not None and named != version:
            self.violate("wrong", f"the file {what} has version {version}, and its validators are of {named}")

    def judge_failed(self, attempt):
        """A process that failed has left what was under the name."""
        version = self.world.version_at_name()
        # A kill may come after the rename.
        if attempt.was_killed and version in self.world.contents["x.bin"]:
            return
        if version != ("none" if self.world.earlier is None else "earlier"):
            self.totals["wrong"] += 1
            self.violate("wrong", f"process {attempt.number} ended with {attempt.code}, and under the name "
                                  f"is: {version}")

    def judge_names(self, attempt):
        """Nothing is in the directory except what the documentation names."""
        suffixes = {name.removeprefix("x.bin") for name in self.world.names()}
        allowed = {""} if attempt.code == 0 else {""} | PARTIAL_NAMES
        if attempt.was_killed:
            allowed |= PASSING_NAMES
        if suffixes - allowed:
            self.violate("left over", f"process {attempt.number}, which ended with {attempt.code}, left "
                                      f"{', '.join(sorted(suffixes - allowed))}")

    # MARK: When all is over

    def finish(self):
        """The command completes the file, and has nothing to do after that."""
        world, download = self.world, self.world.daemon
        world.quicken()
        self.end_attempt()
        for condition in self.conditions:
            condition.before_next_mount(world)
        world.calls.faults.clear()
        world.calls.write()
        if not self.is_complete:
            stored = world.stored_bytes()
            download.start()
            self.end_attempt()
            self.judge_again(stored)
        elif world.version_at_name() not in world.contents["x.bin"]:
            self.violate("lost", f"the whole file was there, and now: {world.version_at_name()}")
        if self.is_complete:
            self.repeat()
        for condition in self.conditions:
            self.look(condition)
            for fault in condition.faults:
                if fault not in self.violations:
                    self.violations.append(fault)
        self.judge_shown()
        self.judge_requests()

    def end_attempt(self):
        """Waits for the last process, and judges it."""
        deadline = time.monotonic() + DEADLINE
        while not self.world.daemon.note_end():
            if time.monotonic() > deadline:
                self.totals["late"] += 1
                self.violate("late", f"process {self.world.daemon.last.number} runs {DEADLINE} s after all "
                                     "conditions were over")
                self.world.daemon.kill()
                self.world.daemon.last.process.wait(20)
            time.sleep(0.02)
        self.judge_attempt(self.world.daemon.last)

    def judge_again(self, stored):
        """What was stored is not fetched again by the command that completes the file."""
        last = self.world.daemon.last
        if not self.is_complete:
            self.violate("not completed", f"the same command ended with {last.code} when all was over")
            return
        sent = self.sent_since(last.began)
        length = max(len(content) for content in self.world.contents["x.bin"].values())
        loses = any(condition.loses for condition in self.conditions)
        killed = "download killed" in self.pair
        only_killed = killed and not any(condition.loses for condition in self.conditions
                                         if condition.name != "download killed")
        allowed = length + MORE_BYTES
        if not loses:
            allowed -= stored
        elif only_killed:
            allowed -= max(stored - KILL_LOSS, 0)
        elif {"wrong pieces", "mirror lying", "version changed"} & set(self.pair):
            # The fetched bytes may be wrong, or of another version.
            allowed += length
        self.totals["fetched again"] += max(sent - (length - stored), 0)
        if sent > allowed:
            self.violate("lost", f"{stored} of {length} bytes were stored, and the command that completed "
                                 f"the file fetched {sent}")

    def sent_since(self, moment):
        # Servers write their log when a response has ended.
        time.sleep(0.1)
        return sum(request["body_bytes"] for server in ("origin", "mirror")
                   for request in self.world.answers(server) if request["moment"] >= moment)

    def repeat(self):
        """The same command once more: it keeps what it finds, or fetches the newest version."""
        world = self.world
        before, identity = world.version_at_name(), os.stat(world.target).st_ino
        world.daemon.start()
        began = world.daemon.last.began
        self.end_attempt()
        after = world.version_at_name()
        if "version changed" in self.pair and "mirror lying" not in self.pair and after != 2:
            self.violate("old", f"the same command again leaves version {after}")
        if world.earlier is None and before == after:
            asked = sum(request["moment"] >= began for _, request in world.responses()["x.bin"])
            if os.stat(world.target).st_ino != identity or asked > MOST_WHEN_UNCHANGED:
                self.violate("not kept", f"the same command again made {asked} requests for a file that is "
                                         "unchanged")

    def judge_requests(self):
        requests = self.world.responses()["x.bin"]
        self.totals["requests"] += len(requests)
        self.totals["body bytes"] += sum(request["body_bytes"] for _, request in requests)
        length = self.world.subjects["x.bin"].length
        attempts = len(self.world.daemon.attempts)
        bound = attempts * BASE_REQUESTS + length // BYTES_PER_REQUEST
        self.closest = len(requests) / bound
        if len(requests) > bound:
            self.violate("requests", f"{len(requests)} requests by {attempts} processes: more than {bound}")


def main():
    pair, seed = tuple(sys.argv[1:3]), int(sys.argv[3])
    work, binaries = sys.argv[4:6]
    report_run(GetRun(pair, seed, work, binaries, *sys.argv[6:7]))


if __name__ == "__main__":
    main()
