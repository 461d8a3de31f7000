"""P9: several sequential readers, backward reads, strides."""

import os

from benchmarks import mounts, workloads
from benchmarks.cold import WARM_FACTOR, big_file
from benchmarks.figures import MIB, Result, at_least, at_most
from benchmarks.mounts import mounted
from benchmarks.servers import FAR, origin, write_file
from benchmarks.support import Variant, warm_memory
from programs import Failure

READERS = 8
ONE_READER = "httpfs, one reader"

METHOD = """\
- Method: {rounds} rounds in turns (of pieces 3, in a quick run 1), medians; each with a new mount
  and an empty cache. Eight readers read one file, each an eighth of it, or eight files, in pieces
  of 128 KiB; the speed is that of all together, held against one reader of the same number of
  bytes. Backward: pieces of 64 KiB from the end of a stretch to its start; strides: the first 64
  KiB of every MiB; both by one thread, and held against one reader who reads as many bytes in
  order. *Fetched ÷ asked* counts all bodies.
"""

METRICS = ("speed", "seconds", "fetched_ratio", "requests", "peak_bytes")


class PatternRead:
    """A way to read `byte_count` bytes of served files through a new mount.

    `has_right_bytes` looks at a mount that was read so, after the first measurement.
    """

    def __init__(self, bench, server, served, byte_count, read, has_right_bytes):
        self.bench, self.server, self.served = bench, server, served
        self.byte_count, self.read = byte_count, read
        self.has_right_bytes, self.is_verified = has_right_bytes, False

    def __call__(self):
        warm_memory(int(self.byte_count * WARM_FACTOR))
        before = self.server.traffic()
        with mounted(self.bench, mounts.own(), self.served) as mount:
            seconds = self.read(mount)["seconds"]
            usage, traffic = mount.usage(), self.server.traffic().since(before)
            if not self.is_verified:
                if not self.has_right_bytes(mount):
                    raise Failure("gave wrong bytes")
                self.is_verified = True
        return {"seconds": seconds, "fetched_ratio": traffic.body_bytes / self.byte_count,
                "requests": traffic.requests, "peak_bytes": usage.peak_bytes}


def readers_of(parts):
    """What reads [name, offset, length] each in a thread of its own."""
    return lambda mount: mount.read(workloads.several, "", parts=parts)


def in_order(name, offsets, length):
    """What reads `length` bytes at each offset, one after the other."""
    return lambda mount: mount.read(workloads.at_offsets, name, offsets=offsets, length=length,
                                    is_random=False)


def _crowd(bench, title, server, whole, parts):
    """One reader and eight: of one served file, and of served files of an eighth of its length."""
    share = whole.length // READERS
    name = whole.names[0]

    def has_right_bytes(served):
        return lambda mount: all(
            mount.read(workloads.hashed, one)["digest"] == server.digest(served, one)
            for one in served.names)

    ways = {
        ONE_READER: (whole, [[name, 0, whole.length]]),
        "httpfs, 8 readers of one file": (
            whole, [[name, index * share, share] for index in range(READERS)]),
        "httpfs, 8 readers of 8 files": (parts, [[one, 0, parts.length] for one in parts.names])}
    return bench.compare(title, METRICS, [
        Variant(variant, PatternRead(bench, server, served, whole.length, readers_of(pieces),
                                     has_right_bytes(served)))
        for variant, (served, pieces) in ways.items()], rounds=bench.few_rounds,
        byte_count=whole.length)


def _paths(bench, title, server, served, byte_count):
    """One reader in order, backward, and in strides, all of the same number of bytes."""
    piece, name = 64 << 10, served.names[0]
    backward = list(range(byte_count - piece, -1, -piece))
    strides = [index * MIB for index in range(byte_count // piece)]

    def has_right_bytes(offsets, length):
        read = in_order(name, offsets, length)
        return lambda mount: read(mount)["digest"] == server.digest_of_pieces(
            served, name, offsets, length)

    ways = {ONE_READER: (readers_of([[name, 0, byte_count]]), has_right_bytes([0], byte_count))}
    for variant, offsets in (("httpfs, backward", backward), ("httpfs, strides", strides)):
        ways[variant] = in_order(name, offsets, piece), has_right_bytes(offsets, piece)
    return bench.compare(title, METRICS, [
        Variant(variant, PatternRead(bench, server, served, byte_count, read, check))
        for variant, (read, check) in ways.items()], rounds=1 if bench.quick else 3,
        byte_count=byte_count)


def patterns(bench):
    """P9."""
    length = (128 if bench.quick else 256) * MIB
    names = [f"part{index}" for index in range(READERS)]
    comparisons = []
    with origin(bench) as server:
        line = {"total-rate": 100_000_000, **FAR}
        whole = server.serve("whole", ["file"], length, **line)
        parts = server.serve("parts", names, length // READERS, **line)
        comparisons.append(_crowd(
            bench, f"{length // MIB} MiB, 50 ms, 100 MB/s in total", server, whole, parts))
        long = server.serve("long", ["file"], 1024 * MIB, **line)
        byte_count = (4 if bench.quick else 16) * MIB
        comparisons.append(_paths(
            bench, f"{byte_count // MIB} MiB in pieces, 50 ms, 100 MB/s in total", server, long,
            byte_count))
    with big_file(bench) as (server, served):
        # Eight names of one file: a client sees eight files.
        first, *others = (os.path.join(server.root, name) for name in names)
        write_file(first, served.length // READERS)
        for other in others:
            os.link(first, other)
        comparisons.append(
            _crowd(bench, "1 GiB, unlimited loopback", server, served, server.files(names)))

    targets = []
    for comparison in comparisons:
        for variant in list(comparison.samples)[1:]:
            targets += [
                at_least(f"{comparison.title}: {variant}: speed relative to one reader",
                         comparison.ratio("seconds", ONE_READER, variant), 0.9),
                at_most(f"{comparison.title}: {variant}: fetched ÷ asked",
                        comparison.value(variant, "fetched_ratio"), 1.1)]
    return Result("ways to read", METHOD.format(rounds=bench.few_rounds), comparisons, targets)
