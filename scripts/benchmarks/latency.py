"""The cost of round trips: P4 the first bytes of a file, P5 random reads. All at 50 ms."""

import os
import random
import time

from benchmarks import mounts, workloads
from benchmarks.figures import MIB, OWN, Result, at_most
from benchmarks.mounts import mounted
from benchmarks.servers import FAR, LATENCY, origin
from benchmarks.support import Variant, percentile
from programs import Failure

START, MIDDLE = 0, 512 * MIB
FILE_LENGTH = 1024 * MIB
COUNT, PIECE = 200, 4096

FIRST_BYTES_METHOD = """\
- Method: {rounds} rounds in turns, medians. 4 KiB are read with one `pread`, at the start of a file
  of 1 GiB or in its middle. *Nothing known*: new mount, empty cache; the time is from the start of
  the command to the end of the read. *Warm connection*: a new file, half a second after another one
  of the same server was read; *known*: the file was opened in an earlier mount with the same cache,
  and other bytes of it were read; of both the time is that of `open` and `read`. A round trip of 50
  ms comes before each response, and one more before the first one of a connection.
"""


def _first_bytes(mount, name, offset, expected):
    """Reads 4 KiB at once, in this process: the mount has just come."""
    seen = workloads.first_bytes(mount.path(name), offset)
    if seen["digest"] != expected[offset]:
        raise Failure("gave wrong bytes")
    return seen["seconds"]


def _sample(mount, read_seconds, total_seconds, traffic):
    return {"round_trips": total_seconds / LATENCY, "seconds": total_seconds,
            "mount_seconds": mount.mount_seconds, "read_seconds": read_seconds,
            "requests": traffic.requests, "fetched_bytes": traffic.body_bytes,
            "peak_bytes": mount.usage().peak_bytes}


class FirstBytes:
    """The ways to read the first bytes; each method gives what measures once."""

    def __init__(self, bench, server):
        self.bench, self.server = bench, server
        self.served = server.serve("first", ["file"], FILE_LENGTH, **FAR)
        self.pair = server.serve("pair", ["other", "file"], FILE_LENGTH, **FAR)
        self.expected = {
            offset: server.digest_of_pieces(self.served, "file", [offset], PIECE)
            for offset in (START, MIDDLE)}

    def nothing_known(self, system, offset):
        def measure():
            before = self.server.traffic()
            with mounted(self.bench, system, self.served) as mount:
                seconds = _first_bytes(mount, "file", offset, self.expected)
                total = time.monotonic() - mount.started
                return _sample(mount, seconds, total, self.server.traffic().since(before))
        return measure

    def warm_connection(self, offset):
        def measure():
            with mounted(self.bench, mounts.own(), self.pair) as mount:
                workloads.first_bytes(mount.path("other"), START)
                # The kernel's read-ahead of the other file must not occupy the connection.
                time.sleep(0.5)
                before = self.server.traffic()
                seconds = _first_bytes(mount, "file", offset, self.expected)
                return _sample(mount, seconds, seconds, self.server.traffic().since(before))
        return measure

    def known(self):
        def measure():
            cache = self.bench.fresh_directory("known")
            with mounted(self.bench, mounts.own(), self.served, cache=cache) as mount:
                _first_bytes(mount, "file", START, self.expected)
            before = self.server.traffic()
            with mounted(self.bench, mounts.own(), self.served, cache=cache) as mount:
                seconds = _first_bytes(mount, "file", MIDDLE, self.expected)
                return _sample(mount, seconds, seconds, self.server.traffic().since(before))
        return measure


def first_bytes(bench):
    """P4."""
    rounds = 5 if bench.quick else 2 * bench.rounds
    metrics = ("round_trips", "seconds", "mount_seconds", "read_seconds", "requests",
               "fetched_bytes", "peak_bytes")
    peers = [mounts.rclone("full"), mounts.httpdirfs(), mounts.httpfs2(), mounts.nbdkit()]
    comparisons, targets = [], []
    with origin(bench) as server:
        ways = FirstBytes(bench, server)
        for offset, place, trips in ((START, "at the start", 2.2), (MIDDLE, "in the middle", 3.2)):
            comparison = bench.compare(
                f"Nothing known, 4 KiB {place}", metrics,
                [Variant(system.name, ways.nothing_known(system, offset),
                         programs=system.programs, rounds=1 if bench.quick and peer else None)
                 for peer, system in enumerate([mounts.own(), *peers])], rounds=rounds)
            comparisons.append(comparison)
            seconds = comparison.value(OWN, "seconds")
            targets.append(at_most(
                f"{comparison.title}: mount + open + read ({trips} round trips + 30 ms)",
                seconds and seconds * 1000, trips * LATENCY * 1000 + 30, "ms"))
        ready = bench.compare("httpfs, when something is known", metrics, [
            Variant("httpfs, warm connection, at the start", ways.warm_connection(START)),
            Variant("httpfs, warm connection, in the middle", ways.warm_connection(MIDDLE)),
            Variant("httpfs, known from an earlier mount", ways.known())], rounds=rounds)
    for variant, trips in zip(ready.samples, (1.1, 2.1, 2.2)):
        targets.append(at_most(f"{variant}: open + read",
                               ready.value(variant, "round_trips"), trips, "round trips"))
    return Result("the first bytes", FIRST_BYTES_METHOD.format(rounds=rounds),
                  [*comparisons, ready], targets)


RANDOM_METHOD = """\
- Method: {rounds} rounds in turns (peers and, in a quick run, one thread: 1), medians. 200
  different pages of 4 KiB of a file of 1 GiB, new ones each round, are read with `pread` and
  `POSIX_FADV_RANDOM` through a new mount with an empty cache, after a `stat`. *Fetched ÷ asked*
  counts all bodies of the mount, also what the `stat` brought. Memory is the daemon's peak.
"""


class RandomReads:
    """A mount; each call reads other pages through a new mount with an empty cache."""

    def __init__(self, bench, system, server, served, threads):
        self.bench, self.system, self.server, self.served = bench, system, server, served
        self.threads, self.generator = threads, random.Random(threads)
        self.is_verified = False

    def __call__(self):
        pages = self.generator.sample(range(self.served.length // PIECE), COUNT)
        offsets = [page * PIECE for page in pages]
        before = self.server.traffic()
        with mounted(self.bench, self.system, self.served) as mount:
            os.stat(mount.path("file"))
            seen = mount.read(workloads.at_offsets, "file", offsets=offsets, length=PIECE,
                              threads=self.threads)
            usage, traffic = mount.usage(), self.server.traffic().since(before)
        self._verify(offsets, seen["digest"])
        latencies = [seconds * 1000 for seconds in seen["latencies"]]
        return {"seconds": seen["seconds"], "p50_ms": percentile(latencies, 50),
                "p99_ms": percentile(latencies, 99),
                "fetched_ratio": traffic.body_bytes / (COUNT * PIECE),
                "peak_bytes": usage.peak_bytes, "requests": traffic.requests}

    def _verify(self, offsets, digest):
        if not self.is_verified:
            if digest != self.server.digest_of_pieces(self.served, "file", offsets, PIECE):
                raise Failure("gave wrong bytes")
            self.is_verified = True


def random_reads(bench):
    """P5."""
    metrics = ("seconds", "p50_ms", "p99_ms", "fetched_ratio", "peak_bytes", "requests")
    slow_peers = [] if bench.quick else [
        mounts.httpfs2(), mounts.nbdkit(), mounts.rclone("off"), mounts.rclone("full"),
        mounts.httpdirfs()]
    comparisons, targets = [], []
    with origin(bench) as server:
        served = server.serve("random", ["file"], FILE_LENGTH, **FAR)

        def compare(threads, limit_seconds, **options):
            systems = [mounts.own(), *slow_peers]
            comparison = bench.compare(
                f"200 random reads of 4 KiB, {threads} thread{'s' * (threads > 1)}", metrics,
                [Variant(system.name, RandomReads(bench, system, server, served, threads),
                         programs=system.programs, rounds=None if system.is_own else 1)
                 for system in systems],
                limits={"round trips alone": {
                    "seconds": COUNT * LATENCY / threads, "p50_ms": LATENCY * 1000,
                    "p99_ms": LATENCY * 1000, "fetched_ratio": 1}}, **options)
            comparisons.append(comparison)
            targets.append(at_most(f"{comparison.title}: time", comparison.value(OWN, "seconds"),
                                   limit_seconds, "s"))
            return comparison

        def trips_target(comparison, metric, trips):
            value = comparison.value(OWN, metric)
            targets.append(at_most(f"{comparison.title}: {metric.removesuffix('_ms')}",
                                   value and value / LATENCY / 1000, trips, "round trips"))

        one = compare(1, 10.4, rounds=1 if bench.quick else None)
        trips_target(one, "p99_ms", 1.5)
        many = compare(16, 0.85)
        trips_target(many, "p50_ms", 1.1)
        trips_target(many, "p99_ms", 2.2)
        for comparison in (one, many):
            targets += [
                at_most(f"{comparison.title}: fetched ÷ asked",
                        comparison.value(OWN, "fetched_ratio"), 2),
                at_most(f"{comparison.title}: peak memory",
                        (peak := comparison.value(OWN, "peak_bytes")) and peak / MIB, 64, "MiB")]
    return Result("random reads", RANDOM_METHOD.format(rounds=bench.rounds), comparisons, targets)
