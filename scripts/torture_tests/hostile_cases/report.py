"""The results of a run, and their report."""

import collections
import datetime
import sys
import time

from .bounds import BOUNDS, MOST_FORGIVEN, MOST_SLOWER, most_times
from .cases import kind_of


class Report:
    """What came of all cases."""

    def __init__(self, arguments, units):
        self.arguments = arguments
        self.count = sum(map(len, units))
        self.kinds = collections.Counter(kind_of(number) for unit in units for number in unit)
        self.done, self.requests, self.reads, self.commands = 0, 0, 0, 0
        self.violations = []
        self.words = {}
        # The largest bound of each kind after the adjustment to the machine's pace.
        self.in_force = {}
        self.began = time.monotonic()

    def add(self, words, violations, counts, in_force=None):
        for name, seconds in (in_force or {}).items():
            self.in_force[name] = max(self.in_force.get(name, 0), seconds)
        self.done += len(words)
        self.words.update(words)
        self.requests, self.reads, self.commands = (
            self.requests + counts[0], self.reads + counts[1], self.commands + counts[2])
        for members, bound, text, is_sure in violations:
            self.violations.append((members, bound, text, is_sure))
            print(f"{'FAIL' if is_sure else 'once'} {self.named(members)}: {bound}: {text}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{self.done} of {self.count} ", end="", file=sys.stderr)

    def named(self, members):
        if len(members) > 1:
            return f"cases {members[0]} to {members[-1]} together ({len(members)})"
        if not members:
            return "no case of its own"
        return f"case {members[0]} ({kind_of(members[0])}: {self.words[members[0]]})"

    def once(self):
        """The bounds of time that did not hold once, each with its cases: of many at a moment, one."""
        return {(tuple(members), bound) for members, bound, _, is_sure in self.violations if not is_sure}

    def verdict(self):
        """What is wrong, in a few words."""
        sure = sum(is_sure for *_, is_sure in self.violations)
        if sure:
            return f"{sure} violations"
        if self.done < self.count:
            return "not done"
        if len(self.once()) > most_times(self.count):
            return f"too often late: at most {most_times(self.count)} times are forgiven"
        return "no violation"

    def is_good(self):
        return self.verdict() == "no violation"

    def markdown(self):
        seconds = time.monotonic() - self.began
        grown = ", ".join(f"{seconds:.1f} in the place of {name}"
                          for name, seconds in sorted(self.in_force.items()))
        lines = [
            "# scripts/torture hostile", "",
            f"{self.done} of {self.count} cases, seed {self.arguments.seed}, "
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {seconds / 60:.1f} minutes with "
            f"{self.arguments.jobs} jobs: **{self.verdict()}**. {self.requests} hostile answers, "
            f"{self.commands} commands; {self.reads} reads of innocent files beside them. "
            f"{len(self.once())} bounds of time did not hold once, and held when asked again (at most "
            f"{most_times(self.count)} may). The largest bounds in force: {grown or 'none'}.", "",
            "| kind | cases | with a violation |", "| --- | --- | --- |"]
        bad = collections.Counter(
            kind_of(number) for number in {
                number for members, _, _, is_sure in self.violations if is_sure
                for number in members[:1]})
        lines += [f"| {kind} | {count} | {bad[kind]} |" for kind, count in sorted(self.kinds.items())]
        lines += ["", "What held of each, unless it is below, with times of a quiet machine (at most "
                  f"{MOST_SLOWER} times as long on a busy one; a time of up to "
                  f"{MOST_FORGIVEN * MOST_SLOWER} times as long was asked for again):", ""]
        lines += [f"- {name}: {text}" for name, text in BOUNDS.items()]
        if self.violations:
            lines += ["", "| case | bound | seen |", "| --- | --- | --- |"]
        for members, bound, text, is_sure in self.violations:
            cell = text.replace("|", "\\|").replace("\n", " ")[:300]
            lines.append(f"| {self.named(members)} | {bound}{'' if is_sure else ', not seen again'} | "
                         f"{cell} |".replace("\x00", ""))
        return "\n".join(lines) + "\n"
