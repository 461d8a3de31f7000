"""`httpfs get` without an option against aria2, axel and curl."""

from benchmarks import clients
from benchmarks.cold import METRICS, Contest, big_file
from benchmarks.figures import MIB, Result, at_least, at_most
from benchmarks.servers import FAR, origin

METHOD = """\
- Method: {rounds} rounds in turns, every download to a fresh directory; the median counts, for
  memory the largest. Seconds are from the start of the process to its end; CPU is user and system
  time of the client alone. Each client's file was compared by SHA-256 once. httpfs alone syncs the
  file to the disk before it gets its name; the others leave that to the kernel. On a line whose
  total rate is shared no client can be faster than one connection: 1.00 is as good as it gets.
"""

CLIENTS = (clients.GET, clients.ARIA2, clients.AXEL, clients.CURL)


def _compare(bench, title, server, served, *, limits=None, one_connection_is_slow=False):
    contest = Contest(bench, server, served)
    variants = []
    for client in CLIENTS:
        is_slow = one_connection_is_slow and client is clients.CURL
        if not (is_slow and bench.quick):
            variants.append(contest.download(client, rounds=1 if is_slow else None))
    return bench.compare(title, METRICS, variants, limits=limits)


def measure(bench):
    with big_file(bench) as (server, served):
        loopback = _compare(bench, "1 GiB, unlimited loopback", server, served)
    with origin(bench) as server:
        slow = server.serve("slow", ["file"], 256 * MIB, rate=10_000_000)
        throttled = _compare(bench, "256 MiB at 10 MB/s per connection", server, slow,
                             one_connection_is_slow=True)
        far = server.serve("far", ["file"], 256 * MIB, **{"total-rate": 100_000_000}, **FAR)
        seconds = 0.1 + far.length / 100e6
        line = _compare(bench, "256 MiB at 50 ms and 100 MB/s in total", server, far, limits={
            "handshake, round trip and line": {
                "seconds": seconds, "speed": far.length / 1e6 / seconds}})
    comparisons = [loopback, throttled, line]

    own = clients.GET.name
    targets = []
    for comparison in comparisons:
        best = comparison.best("seconds", [one.name for one in CLIENTS if one is not clients.GET])
        if best:
            targets.append(at_least(
                f"{comparison.title}: speed relative to the best of the others ({best})",
                comparison.ratio("seconds", best, own), 1))
    targets.append(at_most(f"{loopback.title}: processor time relative to curl",
                           loopback.ratio("cpu_seconds", own, clients.CURL.name), 1.2))
    peaks = [peak for one in comparisons if (peak := one.value(own, "peak_bytes")) is not None]
    targets.append(at_most("Peak resident memory, the largest of all rounds",
                           max(peaks) / MIB if peaks else None, 32, "MiB"))
    return Result("Downloads", METHOD.format(rounds=bench.rounds), comparisons, targets)
