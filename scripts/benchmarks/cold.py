"""Cold sequential reads of a file: P1 loopback, P2 and P3 throttled networks, P11 over TLS."""

import contextlib
import os

from benchmarks import clients, mounts, workloads
from benchmarks.figures import MIB, OWN, Result, at_least
from benchmarks.mounts import mounted
from benchmarks.servers import FAR, LATENCY, certificate, nginx, origin, write_file
from benchmarks.support import Variant, is_root, warm_memory
from programs import Failure

# Enough for a whole file in memory twice: as a cache file, and as pages of the mount.
WARM_FACTOR = 2.5

# Nearly 256 MiB: if the length is a multiple of httpdirfs's blocks of 8 MiB, it requests bytes past
# the end, and the answer crashes it.
LINE_LENGTH = 256 * MIB - 4096

METRICS = ("seconds", "speed", "cpu_seconds", "peak_bytes", "requests")

# A computed limit: the time if all other steps took none.
FLOOR = "handshake, round trip and line"

METHOD = """\
- Method: {rounds} rounds in turns (slow peers: 1, in a quick run all peers that mount), the median
  counts, for memory the largest. A mount is new, its cache empty; the time is from the `open` to
  the end of the last `read` (1 MiB each). A download is timed from the start of its process to its
  end. Each variant's bytes were compared by SHA-256 once. CPU is user and system time of the
  daemon, or of the client, alone. Memory that a run needs is touched before it, because a virtual
  machine gives free memory back to its host.
"""


class WholeRead:
    """A mount and a served file; each call reads it whole through a new mount with an empty cache.

    The first call verifies the bytes too, after the measurement.
    """

    def __init__(self, bench, system, server, served, digest):
        self.bench, self.system, self.server, self.served = bench, system, server, served
        self.digest, self.is_verified = digest, False

    def __call__(self):
        warm_memory(int(self.served.length * WARM_FACTOR))
        before = self.server.traffic()
        with mounted(self.bench, self.system, self.served) as mount:
            name = self.served.names[0]
            seen = mount.read(workloads.sequential, name)
            usage, traffic = mount.usage(), self.server.traffic().since(before)
            if seen["length"] != self.served.length:
                raise Failure(f"gave {seen['length']} bytes of {self.served.length}")
            if not self.is_verified:
                if mount.read(workloads.hashed, name)["digest"] != self.digest:
                    raise Failure("gave wrong bytes")
                self.is_verified = True
            return {"seconds": seen["seconds"], "cpu_seconds": usage.cpu_seconds,
                    "peak_bytes": usage.peak_bytes,
                    "requests": traffic.requests}


class Contest:
    """Variants that get the same file from the same server."""

    def __init__(self, bench, server, served):
        self.bench, self.server, self.served = bench, server, served
        self.digest = server.digest(served, served.names[0])

    def compare(self, title, variants, **options):
        return self.bench.compare(title, METRICS, variants, byte_count=self.served.length,
                                  **options)

    def mount(self, system, **options):
        return Variant(system.name,
                       WholeRead(self.bench, system, self.server, self.served, self.digest),
                       programs=system.programs, **options)

    def download(self, client, **options):
        return Variant(client.name,
                       clients.Download(self.bench, client, self.server, self.served, self.digest),
                       programs=client.programs, **options)


@contextlib.contextmanager
def big_file(bench, *, tls=None):
    """nginx with a file of 1 GiB that is in memory."""
    root = bench.directory("www")
    path = f"{root}/big"
    if not os.path.exists(path):
        write_file(path, 1024 * MIB)
    with nginx(bench, root, tls=tls) as server:
        yield server, server.files(["big"])


def speed_target(comparison, reference, goal):
    return at_least(f"{comparison.title}: speed relative to {reference}",
                    comparison.ratio("seconds", reference, OWN), goal)


def loopback(bench):
    """P1."""
    with big_file(bench) as (server, served):
        contest = Contest(bench, server, served)
        variants = [contest.mount(mounts.own()), contest.download(clients.CURL)]
        variants += [contest.mount(system, rounds=1 if bench.quick else None) for system in (
            mounts.rclone("full", is_parallel=True), mounts.rclone("off", is_parallel=True),
            mounts.httpfs2())]
        if not bench.quick:
            # A single connection shows the cost of parallel ones when they gain nothing.
            variants += [contest.mount(mounts.own_with("--connections", "1")),
                         contest.mount(mounts.nbdkit()),
                         contest.mount(mounts.httpdirfs(), rounds=1)]
        comparison = contest.compare("1 GiB, unlimited loopback", variants)
    return Result("a cold file, read whole", METHOD.format(rounds=bench.rounds), [comparison],
                  [speed_target(comparison, clients.CURL.name, 1.5)])


def per_connection(bench):
    """P2."""
    length, rate = LINE_LENGTH, 10_000_000
    comparisons, targets = [], []
    for suffix, delay in (("", {}), (", 50 ms", FAR)):
        with origin(bench) as server:
            contest = Contest(
                bench, server, server.serve("throttled", ["file"], length, rate=rate, **delay))
            rivals = (clients.AXEL, clients.ARIA2)
            rclone = mounts.rclone("full", is_parallel=True)
            variants = [contest.mount(mounts.own()), *map(contest.download, rivals)]
            if not bench.quick:
                # Clients with one connection take half a minute, with little variation.
                variants += [
                    contest.mount(mounts.own_with("--connections", "1"), rounds=1),
                    contest.download(clients.CURL, rounds=1),
                    contest.mount(rclone, rounds=None if rclone.options else 1),
                    contest.mount(mounts.httpdirfs(), rounds=1)]
            comparison = contest.compare(
                f"256 MiB at 10 MB/s per connection{suffix}", variants, rounds=bench.few_rounds,
                limits={"16 connections at best": {
                    "seconds": length / rate / 16 + (2 * LATENCY if delay else 0)}})
        comparisons.append(comparison)
        targets += [speed_target(comparison, client.name, 1.0) for client in rivals]
    return Result("a throttle on each connection", METHOD.format(rounds=bench.few_rounds),
                  comparisons, targets)


def shared_line(bench):
    """P3."""
    length, rate = LINE_LENGTH, 100_000_000
    with origin(bench) as server:
        served = server.serve("line", ["file"], length, **{"total-rate": rate}, **FAR)
        contest = Contest(bench, server, served)
        variants = [contest.mount(mounts.own()), contest.download(clients.CURL)]
        if not bench.quick:
            variants += [contest.download(clients.AXEL), contest.download(clients.ARIA2),
                         contest.mount(mounts.rclone("full", is_parallel=True)),
                         contest.mount(mounts.httpdirfs(), rounds=1)]
        comparison = contest.compare(
            "256 MiB, 50 ms, 100 MB/s in total", variants, rounds=bench.few_rounds,
            limits={FLOOR: {"seconds": length / rate + 2 * LATENCY}})

    def share(variant):
        speed = comparison.value(variant, "speed")
        return speed and speed * 1e6 / rate

    return Result(
        "a line with latency", METHOD.format(rounds=bench.few_rounds), [comparison],
        [at_least(f"{comparison.title}: share of the line's rate (a connection that is new to the "
                  f"server can have {share(FLOOR):.3f})", share(OWN), 0.97)])


def over_tls(bench):
    """P11."""
    tls = certificate(bench)
    with big_file(bench, tls=tls) as (server, served):
        contest = Contest(bench, server, served)
        curl = clients.CURL.trusting("--cacert", tls.authority_path)
        variants = [contest.download(curl)]
        if is_root():
            variants.insert(0, contest.mount(mounts.own_trusting(bench, tls.authority_path)))
        comparison = contest.compare("1 GiB over TLS, unlimited loopback", variants,
                                     rounds=bench.few_rounds)
    if not is_root():
        comparison.skipped[OWN] = "only root can make a mount trust the authority of this run"
    return Result("a cold file over TLS", METHOD.format(rounds=bench.few_rounds), [comparison],
                  [speed_target(comparison, curl.name, 1.2)])
