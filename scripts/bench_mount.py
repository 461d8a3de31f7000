"""The mount against itself, against curl and against a local file."""

import contextlib
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from bench_support import MIB, child, fail, markdown, nginx, origin, run, spread, wait_until

READ_LENGTH = MIB


def is_mounted(path):
    with open("/proc/self/mountinfo") as table:
        return any(line.split()[4] == path for line in table)


@contextlib.contextmanager
def mounted(bench, url, *options, cache=None):
    """A mount of one URL named `file`; gives the file's path."""
    directory = tempfile.mkdtemp(dir=bench.work)
    mountpoint = os.path.join(directory, "mnt")
    os.mkdir(mountpoint)
    urls = os.path.join(directory, "urls.txt")
    with open(urls, "w") as text:
        text.write(f"{url}\n  out=file\n")
    output = os.path.join(directory, "out")
    cache = cache or os.path.join(directory, "cache")
    try:
        with open(output, "w") as standard_output, child(
                bench.binary("httpfs"), "mount", *options, "--cache-dir", cache, urls, mountpoint,
                stdout=standard_output) as process:

            def ready():
                if process.poll() is not None:
                    fail("httpfs ended before it mounted")
                with open(output) as text:
                    return text.read().startswith("mounted ")

            wait_until(ready, 20, "mount")
            yield os.path.join(mountpoint, "file")
    finally:
        if is_mounted(mountpoint):
            subprocess.run(["fusermount3", "-u", "-z", mountpoint], check=False)
        if not is_mounted(mountpoint):
            shutil.rmtree(directory, ignore_errors=True)


def read_sequentially(path):
    """Seconds to open and read a whole file."""
    buffer = bytearray(READ_LENGTH)
    start = time.monotonic()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while os.readv(descriptor, [buffer]):
            pass
    finally:
        os.close(descriptor)
    return time.monotonic() - start


def read_at(path, offsets, length, threads):
    """Seconds to read `length` bytes at each offset."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        start = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            for piece in pool.map(lambda offset: os.pread(descriptor, length, offset), offsets):
                if len(piece) != length:
                    fail("a short read")
        return time.monotonic() - start
    finally:
        os.close(descriptor)


def download(bench, url):
    """Seconds that curl needs to write the URL to a file."""
    target = bench.path("curl.out")
    start = time.monotonic()
    run("curl", "-sS", "--fail", "--noproxy", "*", "-o", target, url)
    seconds = time.monotonic() - start
    os.remove(target)
    return seconds


def compare(bench, scenario, variants, *, megabytes=None, goal=None):
    """Runs the variants in turns; gives a row for each, the first being what the rest is held
    against.

    `variants` maps a name to a function that gives seconds; `megabytes` turns them into MB/s.
    `goal` maps names to what the ratio "first variant's speed / this one's" should be.
    """
    rows = []
    seconds = bench.in_turns(scenario, variants)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        speed = f"{megabytes / median:,.0f} MB/s" if megabytes else ""
        rows.append((scenario, name, f"{median:.3f} s", spread(seconds[name]), speed,
                     f"{median / first:.2f}", (goal or {}).get(name, "")))
    return rows


def per_connection_throttle(bench):
    """10 MB/s for each connection: what parallel connections bring."""
    length = (256 if bench.quick else 512) * MIB
    with origin(bench) as server:
        url = f"{server.base}/data/throttled?length={length}&seed=1&rate=10000000"

        def by_mount(*options):
            def measure():
                with mounted(bench, url, *options) as path:
                    return read_sequentially(path)
            return measure

        return compare(
            bench, f"{length // MIB} MiB at 10 MB/s per connection",
            {
                "httpfs": by_mount(),
                "httpfs --connections 1": by_mount("--connections", "1"),
                "one curl": lambda: download(bench, url),
            },
            megabytes=length / 1e6,
            goal={"httpfs --connections 1": ">= 5", "one curl": ">= 5"})


def unthrottled_loopback(bench):
    """No throttle at all: what the mount costs."""
    length = 1024 * MIB
    root = bench.directory("mount-www")
    with open(f"{root}/big", "wb") as file:
        block = random.Random(1).randbytes(16 * MIB)
        for number in range(length // len(block)):
            file.write(number.to_bytes(8, "little") + block[8:])
    with nginx(bench, root) as server:
        url = f"{server.base}/big"

        def by_mount(*options):
            def measure():
                with mounted(bench, url, *options) as path:
                    return read_sequentially(path)
            return measure

        rows = compare(
            bench, "1 GiB, unthrottled loopback, cold",
            {
                "httpfs": by_mount(),
                "httpfs --connections 1": by_mount("--connections", "1"),
                "curl -o": lambda: download(bench, url),
            },
            megabytes=length / 1e6,
            goal={"httpfs --connections 1": ">= 1"})
    shutil.rmtree(root)
    return rows


def random_reads(bench):
    """200 random reads of 4 KiB with 50 ms before each response: what a round trip costs."""
    count, latency = 200, 0.050
    length = 1024 * MIB
    rows = []
    with origin(bench) as server:
        url = f"{server.base}/data/random?length={length}&seed=2&latency={int(latency * 1000)}"
        generator = random.Random(3)

        def by_threads(threads):
            def measure():
                offsets = [generator.randrange(length // 4096) * 4096 for _ in range(count)]
                with mounted(bench, url) as path:
                    os.stat(path)
                    return read_at(path, offsets, 4096, threads)
            return measure

        for threads in (1, 16):
            ideal = count * latency / threads
            rows += compare(
                bench, f"200 random 4 KiB reads at 50 ms, {threads} thread{'s' * (threads > 1)}",
                {"httpfs": by_threads(threads), "round trips alone": lambda: ideal},
                goal={"round trips alone": ">= 0.77"})
    return rows


def cached_read(bench):
    """A complete file, opened again: passthrough against the file on the disk."""
    length = 1024 * MIB
    with origin(bench) as server:
        url = f"{server.base}/data/cached?length={length}&seed=4"
        local = bench.path("local")
        with open(local, "wb") as file:
            block = random.Random(5).randbytes(16 * MIB)
            for _ in range(length // len(block)):
                file.write(block)
        with mounted(bench, url) as path:
            read_sequentially(path)
            read_sequentially(local)
            # The switch to passthrough happens at an open, when no earlier one is left.
            time.sleep(0.5)
            rows = compare(
                bench, "1 GiB, complete in the cache",
                {"httpfs": lambda: read_sequentially(path),
                 "local file": lambda: read_sequentially(local)},
                megabytes=length / 1e6, goal={"local file": ">= 0.8"})
        os.remove(local)
    return rows


SCENARIOS = {
    "throttled": per_connection_throttle,
    "loopback": unthrottled_loopback,
    "random": random_reads,
    "cached": cached_read,
}

COLUMNS = ("Scenario", "Variant", "Median", "Spread", "Speed", "Time relative to httpfs", "Goal")


def measure(bench, names):
    """Runs the scenarios of these names; gives the text for the report."""
    rows = [row for name in names for row in SCENARIOS[name](bench)]
    return f"""\
- Method: the variants of a scenario take turns, {bench.rounds} rounds each, with a new mount and
  an empty cache (but for the complete file); the median counts. Spread is half of (slowest −
  fastest). Ratios within a scenario compare across machines; seconds do not.

{markdown(COLUMNS, rows)}

*Time relative to httpfs*: above 1, the variant is slower than httpfs with its defaults in the same
scenario. "Round trips alone" is no measurement but the least time that the server's delay allows.
"""
