"""A job runs units of cases, one after the other, and checks what each leaves elsewhere."""

import itertools
import os
import random
import re
import shutil

from . import caches, commands, frame, mounts, names, reloads
from .bounds import CPU_SECONDS, ENDS_SECONDS, Pace, Snapshot, Violation, in_force
from .cases import SHARED, Case, kind_of
from .server import start_hostile

RUNNERS = {"head": mounts.run, "body": mounts.run, "redirect": mounts.run, "listing": mounts.run,
           "reload": reloads.run, "cache": caches.run, "names": names.run}


def runner_of(kind):
    return RUNNERS.get(kind, commands.run)


def units(numbers):
    """The cases in the groups that run together."""
    groups = {}
    for number in numbers:
        kind = kind_of(number)
        # Servers of all kinds share a mount; commands share nothing.
        group = mounts if runner_of(kind) is mounts.run else kind
        groups.setdefault(group, []).append(number)
    for members in groups.values():
        size = SHARED.get(kind_of(members[0]), 1)
        for first in range(0, len(members), size):
            yield members[first:first + size]


class Job:
    """What runs units: its servers, its directories, its idle mount, and what was counted."""

    def __init__(self, index, seed, httpfs, work):
        self.seed, self.httpfs, self.work = seed, httpfs, f"{work}/job{index}"
        os.makedirs(self.work)
        self.proxy_host = f"127.202.0.{index + 1}"
        self.server, self.pipe = start_hostile(seed, self.proxy_host)
        # The positions of probes; it decides nothing else.
        self.chance = random.Random(f"{seed} probes {index}")
        self.pace, self.template = Pace(f"{work}/pace{index}"), None
        # The processor time and the time limit of a command; --self-check has its own.
        self.cpu_seconds, self.seconds = CPU_SECONDS, ENDS_SECONDS
        self.requests = self.reads = self.commands = 0
        self.numbers = itertools.count()
        # The description of each case.
        self.words = {}
        # A name that climbs too far leads to one of these.
        for directory in (work, self.work):
            os.makedirs(f"{directory}/outside", exist_ok=True)

    def start(self):
        self.pace.start()

    def tear_down(self):
        self.pace.is_over.set()
        if self.pace.is_alive():
            # Its files are in the work directory.
            self.pace.join(5)
        self.pipe.close()
        self.server.terminate()

    def directory(self):
        path = f"{self.work}/{next(self.numbers)}"
        os.makedirs(path)
        return path

    def remove(self, path):
        shutil.rmtree(path, ignore_errors=True)

    def environment(self, directory):
        """Nothing of the caller's: no proxy, no home."""
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": f"{directory}/home",
                "LANG": "C.UTF-8", "TMPDIR": f"{directory}/home"}

    def open(self, cases):
        """Starts the servers of some cases."""
        self.pipe.send(("open", [case.number for case in cases if case.is_served]))
        if not self.pipe.poll(30) or not self.pipe.recv():
            raise SystemExit("hostile: the servers do not start")

    def close(self):
        """Ends them; gives what they have seen."""
        self.pipe.send(("close", []))
        if not self.pipe.poll(30):
            raise SystemExit("hostile: the servers do not end")
        return self.pipe.recv()

    def elsewhere(self):
        """All files that are no case's: of this job, of the workplace, of the machine."""
        around = Snapshot(self.work, without=[
            f"{self.work}/{name}" for name in os.listdir(self.work) if name.isdigit()])
        # Other jobs run or start meanwhile.
        place = os.path.dirname(self.work)
        others = re.compile(re.escape(place) + r"/((job|pace)\d+|frame|elsewhere|program)(/|$)")
        top = Snapshot(place, without=[
            entry.path for entry in os.scandir(place) if others.match(entry.path)])
        around.files.update({path: facts for path, facts in top.files.items()
                             if not others.match(path)})
        around.files.update(frame.changes())
        around.files.update(Snapshot(frame.SHARED_MEMORY, without=[place]).files)
        return around

    def run_cases(self, cases, sabotage=None):
        """Runs cases once: violations, each with the number of its case where that is known."""
        before = self.elsewhere()
        found = runner_of(cases[0].kind)(self, cases, sabotage)
        return found + [(None, Violation("files", f"elsewhere: {path}"))
                        for path in before.changes(self.elsewhere())]

    def run(self, numbers):
        cases = [Case(self.seed, number) for number in numbers]
        found = self.run_cases(cases)
        self.words = {case.number: case.what for case in cases} | self.words
        return found

    def settle(self, numbers):
        """Runs cases, and again in smaller groups where something is wrong, until it is known whose.

        Gives tuples of the numbers, the violation, and whether it is sure: all are but times that
        were not seen again.
        """
        found = self.run(numbers)
        if not found:
            return []
        if len(numbers) == 1:
            return self.asked_again(numbers, [violation for _, violation in found])
        # A secret identifies its case; a delay may be caused by another case.
        known = [([number], violation, True) for number, violation in found
                 if number is not None and violation.bound in ("secret", "asked")]
        open_ones = [violation for number, violation in found
                     if number is None or violation.bound not in ("secret", "asked")]
        if not open_ones:
            return known
        size = (len(numbers) + 3) // 4
        settled = [result for first in range(0, len(numbers), size)
                   for result in self.settle(numbers[first:first + size])]
        # Violations of all cases together that no single case repeats.
        seen = {(violation.bound, violation.is_time) for _, violation, _ in settled}
        rest = [violation for violation in open_ones
                if (violation.bound, violation.is_time) not in seen and violation.bound != "cpu"]
        # The joint processor time is attributable to no case; their joint effect is.
        return known + settled + self.asked_again(numbers, rest)

    def asked_again(self, numbers, found):
        """Runs cases again where a time is among what was found; gives what settle() gives."""
        again = []
        if any(violation.is_time for violation in found):
            # As above: the joint processor time is attributable to no case.
            again = [violation for _, violation in self.run(numbers)
                     if violation.bound != "cpu" or len(numbers) == 1]
        first, second = ({violation.bound for violation in seen} for seen in (found, again))
        return [(numbers, violation, not violation.is_time or violation.bound in second)
                for violation in found] + [
                    (numbers, violation, not violation.is_time) for violation in again
                    if not violation.is_time or violation.bound not in first]


def strays(work):
    """What is beside the cases in the directories of all jobs: a name may climb so far."""
    found = []
    for name in os.listdir(work):
        if re.fullmatch(r"job\d+", name):
            cases = [entry.path for entry in os.scandir(f"{work}/{name}") if entry.name.isdigit()]
            found += Snapshot(f"{work}/{name}", without=cases).files.keys() - {
                *cases, f"{work}/{name}/outside"}
    return sorted(found)


def work(index, seed, httpfs, directory, tasks, results):
    """The process of a job: takes units until there is none."""
    job = Job(index, seed, httpfs, directory)
    try:
        job.start()
        while True:
            numbers = tasks.get()
            if numbers is None:
                break
            before = (job.requests, job.reads, job.commands)
            job.words = {}
            settled = job.settle(numbers)
            results.put((job.words, [(members, violation.bound, violation.text, is_sure)
                                   for members, violation, is_sure in settled],
                         (job.requests - before[0], job.reads - before[1],
                          job.commands - before[2]), dict(in_force)))
    finally:
        job.tear_down()
