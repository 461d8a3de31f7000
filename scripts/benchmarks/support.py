"""The basis of all scenarios: the machine's programs and memory, the run's directory, rounds."""

import copy
import mmap
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from typing import Callable

from benchmarks.figures import Comparison, is_own
from programs import ROOT, Failure, has_mounts

# Programs that scripts/install-deps installs from PyPI come first. nginx is in a directory that an
# ordinary user's path often lacks.
SEARCH_PATH = ":".join([os.path.join(ROOT, ".build", "python", "bin"),
                        os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

# A longer run is ended: the slowest peer needs about a minute.
TIME_LIMIT = 300

def run(*command, **options):
    return subprocess.run(command, check=True, **options)


_STARTED = time.monotonic()


def note(text):
    """Says what is done, and when in the run."""
    print(f"{time.monotonic() - _STARTED:6.1f} s  {text}", file=sys.stderr, flush=True)


def last_line(text):
    """Where a program says what went wrong."""
    return (text.strip().splitlines() or [""])[-1][-200:]


def is_installed(program):
    return shutil.which(program, path=SEARCH_PATH) is not None


def is_root():
    return os.geteuid() == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def warm_memory(byte_count):
    """Takes so much memory and gives it back.

    A virtual machine gives free memory back to its host within seconds, and the first touch of it
    then costs more than what is measured; whoever comes first would pay that for the others.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, byte_count, flags=flags).close()


def percentile(values, share):
    """The least value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


@dataclass(frozen=True)
class Variant:
    """What takes part in a comparison: `measure` measures once and gives a sample.

    `rounds` bounds the rounds of what takes long and hardly varies; `programs` must be installed.
    """

    name: str
    measure: Callable[[], dict[str, float]]
    rounds: int | None = None
    programs: tuple[str, ...] = ()


class Bench:
    """One run: its directory, its programs, its rounds.

    Where `other_binaries` names the build of another tree, each variant of httpfs takes turns with
    that of the other tree, nothing else takes part, and `two_trees` gets what came of both.
    """

    def __init__(self, work, *, binaries, rounds, quick, other_binaries=None):
        self.work = work
        self.binaries = binaries
        self.other_binaries = other_binaries
        self.two_trees = []
        self.rounds = rounds
        self.quick = quick
        self.failures = []
        # An ordinary user must also reach the files below.
        os.chmod(work, 0o755)

    @property
    def few_rounds(self):
        """The rounds of what takes long: fewer in a quick run, which has five minutes."""
        return min(2, self.rounds) if self.quick else self.rounds

    def path(self, name):
        return os.path.join(self.work, name)

    def directory(self, name):
        os.makedirs(self.path(name), exist_ok=True)
        return self.path(name)

    def fresh_directory(self, name):
        """A directory that nobody has used, for a cache that outlives its mount."""
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.work)

    def binary(self, name):
        path = os.path.join(self.binaries, name)
        if not os.access(path, os.X_OK):
            raise Failure(f"no program {path}")
        return path

    def environment(self):
        """No proxy, no configuration of the user's, messages in English."""
        return {"PATH": SEARCH_PATH, "HOME": self.directory("home"), "LC_ALL": "C.UTF-8"}

    def compare(self, title, metrics, variants, *, limits=None, rounds=None, byte_count=0):
        """Lets the variants take turns (A B C, A B C, ...), so that what else the machine does
        meets all of them alike.

        A variant that fails is out; the others go on.
        """
        rounds = rounds or self.rounds
        own = [variant for variant in variants if is_own(variant.name)]
        if self.other_binaries:
            variants = [one for variant in own for one in (variant, self._of_other_tree(variant))]
        comparison = Comparison(title, list(metrics), {one.name: [] for one in variants},
                                limits or {}, byte_count=byte_count)
        self._take_turns(comparison, variants, rounds)
        if not self.other_binaries:
            return comparison
        self.two_trees.append(comparison)
        # The scenario reads the samples of the variants that it named.
        return replace(comparison, samples={one.name: comparison.samples[one.name] for one in own})

    def _of_other_tree(self, variant):
        """The same variant with the other tree's programs."""
        # The copy compares the bytes with those of its own first round.
        measure = copy.copy(variant.measure)

        def measure_other():
            binaries, self.binaries = self.binaries, self.other_binaries
            try:
                return measure()
            finally:
                self.binaries = binaries

        return replace(variant, name=f"{variant.name} (other tree)", measure=measure_other)

    def _take_turns(self, comparison, variants, rounds):
        title = comparison.title
        for turn in range(rounds):
            for variant in variants:
                if variant.name in comparison.skipped or turn >= (variant.rounds or rounds):
                    continue
                missing = [name for name in variant.programs if not is_installed(name)]
                if missing:
                    comparison.skipped[variant.name] = f"no {' '.join(missing)} here"
                    continue
                note(f"{title}: {variant.name}, round {turn + 1} of {variant.rounds or rounds} ...")
                try:
                    comparison.samples[variant.name].append(variant.measure())
                except Failure as failure:
                    note(f"{title}: {variant.name} failed: {failure}")
                    comparison.skipped[variant.name] = str(failure)
                    comparison.samples[variant.name].clear()
                    self.failures.append(f"{title}: {variant.name}: {failure}")

    def clean_up(self):
        """Removes the run's directory, unless something is still mounted in it."""
        if not has_mounts(self.work):
            shutil.rmtree(self.work, ignore_errors=True)
