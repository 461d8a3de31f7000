"""Lists of many files: P7 `ls -l` at 50 ms, P10 a hundred thousand and a million names."""

import os
import time

from benchmarks import mounts, workloads
from benchmarks.figures import OWN, Result, at_most
from benchmarks.mounts import mounted
from benchmarks.servers import FAR, origin
from benchmarks.support import Variant
from benchmarks.usage import usage_of
from programs import Failure

FILE_LENGTH = 1 << 20

LS_METHOD = """\
- Method: {rounds} rounds in turns (of the peers and, in a quick run, of 10,000 files: 1), medians.
  The time is from the start of the mount's command to the end of `ls -l`. Each name and size was
  compared. *Second mount* has the cache of the one before. A listing is the page of a directory as
  nginx makes it. A round trip of 50 ms comes before each response, and one more before the first
  one of a connection.
"""

FIRST, LISTING, SECOND = "httpfs, a list", "httpfs, listing", "httpfs, second mount"


class LongListing:
    """`ls -l` of a new mount with an empty cache; each call checks what it says.

    `again` does the same with the cache of the latest call.
    """

    def __init__(self, bench, system, server, served):
        self.bench, self.system, self.server, self.served = bench, system, server, served
        self.cache = None

    def __call__(self):
        self.cache = self.bench.fresh_directory("cache")
        return self._list(self.cache)

    def again(self):
        if self.cache is None:
            raise Failure("there was no first mount")
        return self._list(self.cache)

    def _list(self, cache):
        before = self.server.traffic()
        with mounted(self.bench, self.system, self.served, cache=cache) as mount:
            output = mount.run("ls", "-l", mount.directory, env=self.bench.environment())
            seconds = time.monotonic() - mount.started
            traffic = self.server.traffic().since(before)
            self._check(output)
            return {"seconds": seconds, "mount_seconds": mount.mount_seconds,
                    "requests": traffic.requests, "fetched_bytes": traffic.body_bytes,
                    "peak_bytes": mount.usage().peak_bytes}

    def _check(self, output):
        rows = [line.split() for line in output.splitlines()[1:]]
        found = {row[-1]: row[4] for row in rows}
        if set(found) != set(self.served.names):
            raise Failure(f"shows {len(found)} names, not those {len(self.served.names)}")
        wrong = sum(size != str(self.served.length) for size in found.values())
        if wrong:
            raise Failure(f"shows a wrong size of {wrong} files")


def long_listings(bench):
    """P7."""
    metrics = ("seconds", "mount_seconds", "requests", "fetched_bytes", "peak_bytes")
    comparisons, targets = [], []
    with origin(bench) as server:
        for count, cold, listed, second in ((1_000, 2.5, 0.3, 0.2), (10_000, 25, 1, 1)):
            served = server.serve(f"list{count}", [f"f{index:05}" for index in range(count)],
                                  FILE_LENGTH, **FAR)

            def listings(system):
                return LongListing(bench, system, server, served)

            of_list = listings(mounts.own())
            variants = [Variant(FIRST, of_list), Variant(SECOND, of_list.again),
                        Variant(LISTING, listings(mounts.own_listing()))]
            if not bench.quick:
                # The peers that request each file take a minute, with little variation.
                variants += [Variant(system.name, listings(system), 1, system.programs)
                             for system in (mounts.rclone("full"), mounts.httpdirfs())]
            comparison = bench.compare(f"{count:,} files", metrics, variants,
                                       rounds=1 if bench.quick and count > 1_000
                                       else bench.few_rounds)
            comparisons.append(comparison)
            for name, goal in ((FIRST, cold), (LISTING, listed), (SECOND, second)):
                targets.append(at_most(
                    f"{comparison.title}: {name}: mount + ls -l", comparison.value(name, "seconds"),
                    goal, "s"))
            targets.append(at_most(f"{comparison.title}: {SECOND}: requests",
                                   comparison.value(SECOND, "requests"), 0))
    return Result("ls -l", LS_METHOD.format(rounds=bench.few_rounds), comparisons, targets)


HUGE_METHOD = """\
- Method: {rounds} rounds in turns, medians. *Mount* is from the start of the command to the mount,
  memory per entry the resident memory at the end (after `ls` and the read) less that of a list of
  one name, divided by the number of names. `ls` writes to a pipe and asks for no attributes. The
  read is of 4 KiB at the start of one file, at 50 ms.
"""


class HugeList:
    """A mount of a list; each call mounts it, lists it and reads one file."""

    def __init__(self, bench, server, served):
        self.bench, self.server, self.served = bench, server, served

    def __call__(self):
        before = self.server.traffic()
        with mounted(self.bench, mounts.own(), self.served) as mount:
            # The list is read before the mount; the first answer shows that it serves.
            os.stat(mount.directory)
            mount_seconds = time.monotonic() - mount.started
            start = time.monotonic()
            names = mount.run("ls", mount.directory, env=self.bench.environment()).split()
            ls_seconds = time.monotonic() - start
            if sorted(names) != sorted(self.served.names):
                raise Failure(f"ls shows {len(names)} names")
            if requests := self.server.traffic().since(before).requests:
                raise Failure(f"ls caused {requests} requests")
            seen = workloads.first_bytes(mount.path(self.served.names[len(names) // 2]), 0)
            usage = usage_of(mount.process)
        return {"mount_seconds": mount_seconds, "ls_seconds": ls_seconds,
                "read_seconds": seen["seconds"], "resident_bytes": usage.resident_bytes,
                "peak_bytes": usage.peak_bytes}


def huge_lists(bench):
    """P10."""
    metrics = ("mount_seconds", "ls_seconds", "read_seconds", "bytes_per_entry", "peak_bytes")
    counts = [1, 100_000] if bench.quick else [1, 100_000, 1_000_000]
    with origin(bench) as server:
        variants = []
        for count in counts:
            served = server.serve(f"huge{count}", [f"f{index:07}" for index in range(count)],
                                  FILE_LENGTH, is_listed=False, **FAR)
            variants.append(Variant(f"{OWN}, {count:,} name{'s' * (count > 1)}",
                                    HugeList(bench, server, served),
                                    rounds=2 if count > 100_000 else None))
        comparison = bench.compare("httpfs mount LIST", metrics, variants)

    one, *larger = comparison.samples
    base = [sample["resident_bytes"] for sample in comparison.samples[one]]
    targets = []
    for name, count in zip(larger, counts[1:]):
        for sample in comparison.samples[name]:
            if base:
                sample["bytes_per_entry"] = (sample["resident_bytes"] - min(base)) / count
        seconds = comparison.value(name, "mount_seconds")
        targets += [
            at_most(f"{name}: mount, per 100,000", seconds and seconds / count * 100_000, 1, "s"),
            at_most(f"{name}: memory per entry", comparison.value(name, "bytes_per_entry"), 400,
                    "B"),
            at_most(f"{name}: the read, relative to a list of one name",
                    comparison.ratio("read_seconds", name, one), 1.1)]
    return Result("huge lists", HUGE_METHOD.format(rounds=bench.rounds), [comparison], targets)
