"""P6: a complete file after a remount, compared with the local file and passthrough_hp."""

import contextlib
import json
import os
import time
from dataclasses import dataclass
from typing import Callable, ContextManager

from benchmarks import mounts, passthrough_hp, workloads
from benchmarks.cold import big_file
from benchmarks.figures import OWN, Result, at_least
from benchmarks.mounts import Mounted, mounted
from benchmarks.support import Variant, is_installed, is_root, warm_memory
from programs import Failure

LOCAL = "local file"
AS_ROOT, AS_USER = f"{OWN}, root", f"{OWN}, ordinary user"
PASSTHROUGH_HP = "passthrough_hp"

METHOD = """\
- Method: {rounds} rounds in turns (peers: 1), medians. 1 GiB that an earlier mount has cached; a
  new mount for each figure, so that the kernel's pages of the mount are gone, while the cache file
  (like the local file) is in memory. *Again* is a second `open` and read of all in the same mount.
  Random reads are fio's psync engine, buffered, 4 KiB, for {fio_seconds} s; *hot* ones after the
  file was read whole in the same mount. *mmap* touches every page in order. passthrough_hp of
  libfuse (its defaults, from Debian's source package) shows the local file; the ordinary user is
  `nobody`.
"""


@dataclass(frozen=True)
class Subject:
    """Something whose file is read: a new mount for each figure, or no mount at all."""

    name: str
    open: Callable[[], ContextManager[Mounted]]
    file: str
    programs: tuple[str, ...] = ()
    rounds: int | None = None


class _Local(Mounted):
    """A directory that is read as a mount is."""

    def __init__(self, directory):
        super().__init__(directory, os.getpid(), [], 0, 0)

    def usage(self):
        return None


def _fio(mount, name, jobs, seconds):
    """Random reads a second."""
    output = mount.run(
        "fio", "--name=random", f"--filename={mount.path(name)}", "--readonly", "--rw=randread",
        "--bs=4k", "--ioengine=psync", f"--numjobs={jobs}", "--thread", "--time_based",
        f"--runtime={seconds * 1000:.0f}ms", "--invalidate=0", "--group_reporting",
        "--output-format=json", cwd="/")
    job, = json.loads(output[output.index("{"):])["jobs"]
    if job["error"]:
        raise Failure(f"fio: error {job['error']}")
    return job["read"]["iops"]


class CachedReads:
    """The ways to read a cached file; each gives what measures a subject once."""

    def __init__(self, bench, fio_seconds):
        self.bench, self.fio_seconds = bench, fio_seconds

    def _warm(self, mount, subject):
        """Brings the local file into memory, where the cache files of the others are."""
        warm_memory(1 << 30)
        if isinstance(mount, _Local):
            mount.read(workloads.sequential, subject.file)

    def _sample(self, mount, values):
        usage = mount.usage()
        return values | ({"peak_bytes": usage.peak_bytes} if usage else {})

    def _timed(self, mount, workload, subject):
        return self._sample(mount, {"seconds": mount.read(workload, subject.file)["seconds"]})

    def whole(self, subject):
        with subject.open() as mount:
            self._warm(mount, subject)
            return self._timed(mount, workloads.sequential, subject)

    def again(self, subject):
        with subject.open() as mount:
            mount.read(workloads.sequential, subject.file)
            # The kernel sends the release after the close; wait, so the next open finds the file
            # closed.
            time.sleep(0.2)
            return self._timed(mount, workloads.sequential, subject)

    def mapped(self, subject):
        with subject.open() as mount:
            self._warm(mount, subject)
            return self._timed(mount, workloads.mapped, subject)

    def random(self, jobs, *, is_hot):
        def measure(subject):
            with subject.open() as mount:
                if is_hot:
                    mount.read(workloads.sequential, subject.file)
                    time.sleep(0.2)
                rate = _fio(mount, subject.file, jobs, self.fio_seconds)
                return self._sample(mount, {"rate": rate})
        return measure


def _filled_cache(bench, system, served, digest):
    """A cache directory in which the system has the whole file; nobody mounts it now."""
    cache = bench.fresh_directory("filled")
    with mounted(bench, system, served, cache=cache) as mount:
        if mount.read(workloads.hashed, served.names[0])["digest"] != digest:
            raise Failure("gave wrong bytes")
    return cache


def _subject(name, file, prepare, **options):
    """A subject that is prepared now, before anything is measured; `prepare` gives what opens it.

    Where that fails, the failure is said when the subject's turn comes: the others go on.
    """
    try:
        return Subject(name, prepare(), file, **options)
    except Failure as failure:
        reason = str(failure)

        def unavailable():
            raise Failure(reason)

        return Subject(name, unavailable, file, **options)


def _remounted(bench, system, served, digest, **options):
    """A subject whose cache has the whole file."""

    def prepare():
        cache = _filled_cache(bench, system, served, digest)
        return lambda: mounted(bench, system, served, cache=cache)

    return _subject(system.name, served.names[0], prepare, programs=system.programs, **options)


def _reference(bench, served, root):
    """passthrough_hp on the server's own directory."""

    def prepare():
        system = mounts.PassthroughHP(PASSTHROUGH_HP, PASSTHROUGH_HP, source=root,
                                      executable=passthrough_hp.build(bench))
        return lambda: mounted(bench, system, served)

    return _subject(PASSTHROUGH_HP, served.names[0], prepare)


def cached_reads(bench):
    """P6."""
    rounds = bench.few_rounds
    fio_seconds = 0.5 if bench.quick else 3
    comparisons = {}
    with contextlib.ExitStack() as resources:
        server, served = resources.enter_context(big_file(bench))
        digest = server.digest(served, served.names[0])
        name = AS_ROOT if is_root() else AS_USER
        subjects = [_remounted(bench, mounts.own(name), served, digest)]
        if is_root():
            nobody = resources.enter_context(mounts.own_as_nobody(bench, AS_USER))
            subjects.append(_remounted(bench, nobody, served, digest))
        subjects += [Subject(LOCAL, lambda: contextlib.nullcontext(_Local(server.root)), "big"),
                     _reference(bench, served, server.root)]
        if not bench.quick:
            subjects += [_remounted(bench, system, served, digest, rounds=1)
                         for system in (mounts.rclone("full"), mounts.httpdirfs())
                         if all(map(is_installed, system.programs))]

        reads = CachedReads(bench, fio_seconds)
        for title, metric, measure in (
                ("sequential", "speed", reads.whole), ("sequential, again", "speed", reads.again),
                ("mmap", "speed", reads.mapped),
                ("random, 1 job", "rate", reads.random(1, is_hot=False)),
                ("random, 4 jobs", "rate", reads.random(4, is_hot=False)),
                ("random, hot, 1 job", "rate", reads.random(1, is_hot=True)),
                ("random, hot, 4 jobs", "rate", reads.random(4, is_hot=True))):
            uses_fio = ("fio",) if metric == "rate" else ()
            comparisons[title] = bench.compare(
                f"Cached, {title}", (metric, "peak_bytes"),
                [Variant(subject.name, lambda subject=subject, measure=measure: measure(subject),
                         subject.rounds, (*subject.programs, *uses_fio)) for subject in subjects],
                rounds=rounds, byte_count=served.length)

    def target(title, variant, reference, goal):
        comparison = comparisons[title]
        metric = comparison.metrics[0]
        return at_least(f"{comparison.title}: {variant} relative to {reference}",
                        comparison.ratio(metric, variant, reference), goal)

    cold = ("sequential", "sequential, again", "mmap", "random, 1 job", "random, 4 jobs")
    hot = ("random, hot, 1 job", "random, hot, 4 jobs")
    targets = []
    if is_root():
        targets += [target(title, AS_ROOT, LOCAL, 0.9) for title in (*cold, *hot)]
    targets += [target(title, AS_USER, PASSTHROUGH_HP, 1) for title in cold]
    targets += [target(title, AS_USER, LOCAL, 0.9) for title in hot]
    return Result("complete in the cache, after a remount",
                  METHOD.format(rounds=rounds, fio_seconds=fio_seconds),
                  list(comparisons.values()), targets)
