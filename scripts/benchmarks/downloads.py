"""`httpfs get` without options, compared with aria2, axel and curl."""

from benchmarks import clients
from benchmarks.cold import FLOOR, Contest, big_file
from benchmarks.figures import MIB, Result, at_least, at_most
from benchmarks.servers import FAR, LATENCY, origin

METHOD = """\
- Without options, httpfs uses up to 32 connections, axel and aria2 as many as their names say.
  `get -x 16` and `axel -n 32` show what the same number of connections does.
- Method: {rounds} rounds in turns (1 of what takes long), every download to a fresh directory; the
  median counts, for memory the largest. Seconds are from the start of the process to its end; CPU
  is user and system time of the client alone. Each client's file was compared by SHA-256 once.
  httpfs alone syncs the file to the disk before it gets its name; the others leave that to the
  kernel. On a line whose total rate is shared no client can be faster than one connection: a speed
  of 1 is as good as it gets; what httpfs lacks of it is its start (a few ms more than curl's) and
  the sync at the end.
"""

CLIENTS = (clients.GET, clients.ARIA2, clients.AXEL, clients.CURL)


def _compare(bench, title, server, served, *, limits=None, slow=(), left_out=(), more=()):
    """Lets the clients take turns; the slow ones have one round. A quick run leaves some out."""
    contest = Contest(bench, server, served)
    return contest.compare(
        title, [contest.download(client, rounds=1 if client in slow else None)
                for client in (*CLIENTS, *more) if not (bench.quick and client in left_out)],
        limits=limits, rounds=bench.few_rounds)


def measure(bench):
    with big_file(bench) as (server, served):
        loopback = _compare(bench, "1 GiB, unlimited loopback", server, served,
                            slow=[clients.ARIA2, clients.AXEL] if bench.quick else [])
    with origin(bench) as server:
        slow = server.serve("slow", ["file"], 256 * MIB, rate=10_000_000)
        throttled = _compare(bench, "256 MiB at 10 MB/s per connection", server, slow,
                             slow=[clients.CURL], left_out=[clients.CURL])
        # Connections start slowly here and deliver little: the client must open many at once.
        distant = server.serve("distant", ["file"], 256 * MIB, rate=10_000_000, **FAR)
        throttled_far = _compare(bench, "256 MiB at 10 MB/s per connection, 50 ms", server, distant,
                                 slow=[clients.CURL], left_out=[clients.CURL],
                                 more=[clients.GET_16, clients.AXEL_32])
        far = server.serve("far", ["file"], 256 * MIB, **{"total-rate": 100_000_000}, **FAR)
        # curl is the reference here.
        line = _compare(bench, "256 MiB at 50 ms and 100 MB/s in total", server, far, limits={
            FLOOR: {"seconds": 2 * LATENCY + far.length / 100e6}},
            left_out=[clients.ARIA2, clients.AXEL])
    comparisons = [loopback, throttled, throttled_far, line]

    own = clients.GET.name
    targets = []
    for comparison in comparisons:
        best = comparison.best("seconds", [one.name for one in CLIENTS if one is not clients.GET])
        if best:
            targets.append(at_least(
                f"{comparison.title}: speed relative to the best of the others ({best})",
                comparison.ratio("seconds", best, own), 1))
    targets.append(at_least(f"{throttled_far.title}: speed relative to {clients.AXEL.name}",
                            throttled_far.ratio("seconds", clients.AXEL.name, own), 1.2))
    targets.append(at_most(f"{loopback.title}: processor time relative to curl",
                           loopback.ratio("cpu_seconds", own, clients.CURL.name), 1.2))
    peaks = [peak for one in comparisons if (peak := one.value(own, "peak_bytes")) is not None]
    targets.append(at_most("Peak resident memory, the largest of all rounds",
                           max(peaks) / MIB if peaks else None, 40, "MiB"))
    return Result("Downloads", METHOD.format(rounds=bench.few_rounds), comparisons, targets)
