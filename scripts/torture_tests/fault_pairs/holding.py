"""How two conditions begin, hold together and end, for a mount and for downloads."""

import collections
import json
import signal
import sys
import time
import traceback

from programs import mount_points

from .conditions import OBEYED_WITHIN

# The minimum duration of both conditions together, and the time by which each must have been seen.
SHORTEST = 2.2
STEP = 0.08


class Holding:
    """One pair with one seed, in a world."""

    def __init__(self, pair, seed, world, kinds):
        self.pair, self.seed, self.world = pair, seed, world
        names = set(pair)
        self.conditions = sorted((kind(names - {kind.name}) for kind in kinds),
                                 key=lambda condition: condition.rank)
        self.violations = []
        self.evidence = {}
        # The conditions that did not take hold, and whether httpfs had to obey one of them.
        self.missing, self.is_disobeyed = [], False
        self.together = 0.0
        self.totals = collections.Counter()
        self.errors = collections.Counter()
        self.slowest = 0.0
        # How close the requests of a file came to their bound.
        self.closest = 0.0
        self.log = []

    def violate(self, kind, text):
        self.violations.append([kind, text])

    @property
    def is_over(self):
        """Whether what the conditions are to trouble has ended."""
        return False

    def go_on(self):
        """Called some ten times a second while conditions hold."""

    def complete(self):
        """The files that no trouble of transfers can reach any more."""
        return frozenset()

    # MARK: The conditions

    def hold(self):
        """Begins the conditions, lets them hold together, and ends them."""
        active = []
        self.pace(active, 0.4)
        for condition in self.conditions:
            if condition.spares_complete:
                condition.complete = self.complete()
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
            # The last to begin ends first, unless it has not been seen yet and the other one has.
            unseen = [condition for condition in active if condition.name not in self.evidence]
            for condition in reversed(list(active)):
                if condition.name in self.evidence and (unseen or len(active) <= 2) \
                        or condition.age > condition.longest or self.is_over:
                    both = both or time.monotonic()
                    # The disk must continue before files on it can be removed.
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
            self.world.calls.take_turns()
            self.go_on()
            if self.is_over:
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
        condition.ended = time.monotonic()
        self.look(condition)
        self.violations += condition.faults

    def judge_shown(self):
        """Both conditions must have taken hold."""
        for name in self.pair:
            if name not in self.evidence:
                condition = next(condition for condition in self.conditions if condition.name == name)
                self.missing.append(name)
                self.is_disobeyed |= condition.is_obeyed
                self.violate("not shown", f"'{name}' did not take hold" + (
                    f" in {OBEYED_WITHIN:.0f} s, and httpfs must obey it" if condition.is_obeyed else ""))

    def tear_down(self):
        for text in self.world.tear_down():
            self.violate("left over", text)
        for place in mount_points():
            if place.startswith(self.world.work + "/"):
                self.violate("left over", f"a mount on {place}")
        if self.world.disk is not None:
            deadline = time.monotonic() + 5
            while self.world.disk.loop_devices() and time.monotonic() < deadline:
                time.sleep(0.05)
            for device in self.world.disk.loop_devices()[:1]:
                self.violate("left over", device)

    def result(self, seconds):
        """What came of it, as plain values."""
        return {
            "pair": self.pair, "seed": self.seed, "evidence": self.evidence,
            "together": round(self.together, 1), "totals": self.totals, "errors": self.errors,
            "slowest": round(self.slowest, 2), "slowest_status": 0, "closest": round(self.closest, 2),
            "missing": self.missing, "is_disobeyed": self.is_disobeyed,
            "violations": self.violations, "seconds": round(seconds, 1), "log": self.log,
        }


def report_run(run):
    """Runs a pair to its end, and prints what came of it as a line of JSON."""
    # SIGTERM unwinds like Ctrl-C, so everything is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    try:
        run.run()
    except BaseException as error:
        run.violate("broken", "".join(traceback.format_exception(error))[-1500:])
    print(json.dumps(run.result(time.monotonic() - began)), flush=True)
