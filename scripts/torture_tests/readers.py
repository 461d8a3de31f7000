"""Lets 10,000 readers read at once, through a mount of a cold cache: all of one file, then of 1,000.

With fewer readers there is less to read, in the second crowd in a tenth as many files as readers:
readers are always more than pieces, so that some want the same one.

Usage: scripts/torture readers [--readers N] [--seed S] [--binaries DIRECTORY]
  --readers   how many threads read at the same time (default 10000)
  --seed      decides bytes and places (default 1)
  --binaries  where httpfs and Origin are (default .build/release)
Prints figures with their bounds: no error, no wrong byte, no byte fetched twice, at most 256 MiB of
memory, and for both 10 s and 5 ms for each reader, 60 s in all for 10,000 (a quiet machine takes 50).
A busy one may take as many times longer, three at most, as it takes for what has nothing to do with
httpfs: a loop of so much processor time, in as many processes as there are workers, before and after.
Exit status: 0 all hold, 1 one does not.
"""

import argparse
import contextlib
import json
import mmap
import os
import random
import subprocess
import sys
import threading
import time

from programs import MIB, ROOT, end
from torture_tests.support import (TORTURE, Mount, Origin, Verdict, raise_descriptor_limit,
                                   workplace)

# One interpreter runs one thread at a time; a few of them keep the processors busy.
WORKERS = 4
PIECE = 64 << 10
MEMORY_LIMIT = 256 * MIB
# The time limit of both crowds on a quiet machine: mounts and files, and each reader.
BASE_SECONDS, READER_SECONDS = 10, 0.005
# The maximum factor for a busy machine, by its pace.
MOST_SLOWER = 3
# The processor time of a measurement of the pace.
PACE_SECONDS = 0.5
# The maximum number of pieces of the one file, and their maximum share of the readers.
MOST_PIECES, PIECE_SHARE = 2048, 0.8


def spin():
    """Says how long a loop of PACE_SECONDS of processor time takes."""
    began, start = time.monotonic(), time.process_time()
    while time.process_time() - start < PACE_SECONDS:
        pass
    print(time.monotonic() - began)


def slowness():
    """How many times longer than alone processes take now, one for each processor of the workers."""
    count = min(WORKERS, len(os.sched_getaffinity(0)))
    loops = [subprocess.Popen([sys.executable, TORTURE, "readers", "--spin"],
                              stdout=subprocess.PIPE, text=True) for _ in range(count)]
    seconds = [float(loop.communicate()[0]) for loop in loops]
    return max(1.0, sum(seconds) / len(seconds) / PACE_SECONDS)


def work(job):
    """A worker: starts its readers, waits for the word, lets them read; says how it went."""
    mount, references = job["mount"], job["references"]
    contents = {}
    for name in {reader["name"] for reader in job["readers"]}:
        with open(f"{references}/{name}", "rb") as file:
            contents[name] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    start = threading.Event()
    errors, wrong, slowest = [], [], [0.0]

    def read(reader):
        start.wait()
        began = time.monotonic()
        name, offset = reader["name"], reader["offset"]
        try:
            # Half of the readers bypass the page cache: each of those is a separate request.
            flags = os.O_RDONLY | (os.O_DIRECT if reader["direct"] else 0)
            descriptor = os.open(f"{mount}/{name}", flags)
            try:
                with mmap.mmap(-1, PIECE) as buffer:
                    count = os.preadv(descriptor, [buffer], offset)
                    if buffer[:count] != contents[name][offset:offset + PIECE]:
                        wrong.append((name, offset))
            finally:
                os.close(descriptor)
        except OSError as error:
            errors.append(f"{name} at {offset}: {error}")
        slowest[0] = max(slowest[0], time.monotonic() - began)

    threading.stack_size(128 << 10)
    threads = [threading.Thread(target=read, args=(reader,)) for reader in job["readers"]]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.readline()
    start.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"errors": errors, "wrong": wrong, "slowest": slowest[0]}), flush=True)


def doubles(requests):
    """What was sent more than once: for each such piece its length, and the two requests."""
    found = []
    paths = {}
    for request in requests:
        first = int((request["range"] or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        paths.setdefault(request["path"], []).append((first, request))
    for parts in paths.values():
        covered, earlier = 0, None
        for first, request in sorted(parts, key=lambda part: part[0]):
            last = first + request["body_bytes"]
            if min(covered, last) > first:
                found.append((min(covered, last) - first, earlier, request))
            if last > covered:
                covered, earlier = last, request
    return found


def time_limit(arguments):
    """What both crowds may take on a quiet machine, in seconds."""
    return BASE_SECONDS + READER_SECONDS * arguments.readers


def crowd(verdict, work_directory, arguments, file_count, length):
    """All readers on `file_count` cold files of `length` bytes."""
    title = f"{arguments.readers} readers of {file_count} file{'s' * (file_count > 1)}"
    directory = f"{work_directory}/{title.replace(' ', '-')}"
    references = f"{directory}/references"
    os.makedirs(references)
    choice = random.Random(arguments.seed)
    origin = Origin(arguments.binaries, directory)
    mount = None
    workers = []
    try:
        names = [f"f{index}.bin" for index in range(file_count)]
        seeds = {name: choice.getrandbits(32) for name in names}
        for name in names:
            with open(f"{references}/{name}", "wb") as file:
                file.write(origin.content(name, length, seeds[name]))
        origin.clear_log()
        mount = Mount(
            arguments.binaries, directory,
            [origin.url(name, length, seeds[name], latency=200) for name in names])

        pieces = [(name, offset) for name in names for offset in range(0, length, PIECE)]
        readers = []
        for index in range(arguments.readers):
            # Every piece is read equally often at first; the rest is random.
            name, offset = pieces[index] if index < len(pieces) else choice.choice(pieces)
            readers.append({"name": name, "offset": offset, "direct": index % 2 == 1})
        choice.shuffle(readers)

        for index in range(WORKERS):
            job = {"mount": mount.mountpoint, "references": references,
                   "readers": readers[index::WORKERS]}
            path = f"{directory}/job{index}"
            with open(path, "w") as file:
                json.dump(job, file)
            workers.append(subprocess.Popen(
                [sys.executable, TORTURE, "readers", "--job", path], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True))
        for worker in workers:
            if worker.stdout.readline() != "ready\n":
                sys.exit("a worker could not start its threads")
        began = time.monotonic()
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        peak = 0
        done = threading.Event()

        def watch():
            nonlocal peak
            while not done.wait(0.1):
                # Every reader's error shows that a mount has ended.
                with contextlib.suppress(OSError):
                    peak = max(peak, mount.status()["totals"]["waiting_reads"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            results = [json.loads(worker.communicate(timeout=MOST_SLOWER * time_limit(arguments))[0])
                       for worker in workers]
        finally:
            done.set()
        seconds = time.monotonic() - began
        watcher.join()

        errors = [error for result in results for error in result["errors"]]
        wrong = sum(len(result["wrong"]) for result in results)
        verdict.check(f"{title}, errors", len(errors), not errors)
        for error in errors[:3]:
            print(f"     {error}")
        verdict.check(f"{title}, wrong pieces", wrong, wrong == 0)
        requests = origin.requests()
        sent = sum(request["body_bytes"] for request in requests)
        found = doubles(requests)
        double = sum(count for count, _, _ in found)
        verdict.check(
            f"{title}, bytes fetched twice", f"{double} of {sent} in {len(requests)} requests",
            double == 0)
        for count, *pair in found[:3]:
            print(f"     {count} bytes of {pair[0]['path']}:", ", ".join(
                f"{request['range']} sent {request['body_bytes']} at {request['time_ms']:.0f} ms "
                f"for {request['duration_ms']:.0f} ms" for request in pair))
        peak_memory = mount.memory("VmHWM")
        verdict.check(f"{title}, peak memory of httpfs", f"{peak_memory / MIB:.0f}",
                      peak_memory <= MEMORY_LIMIT, " MiB")
        slowest = max(result["slowest"] for result in results)
        print(f"     {seconds:.1f} s; the slowest reader {slowest:.1f} s; "
              f"at most {peak} reads waited in httpfs at once")
        verdict.check(f"{title}, unmounted with exit code", code := mount.unmount(), code == 0)
        return seconds
    finally:
        for worker in workers:
            end(worker)
        if mount:
            mount.tear_down()
        origin.end()


def main(words):
    parser = argparse.ArgumentParser(prog="torture readers", description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binaries", default=os.path.join(ROOT, ".build", "release"))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--spin", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.spin:
        return spin()
    # The second crowd has a tenth as many files, which must be more than one.
    if arguments.readers < 20:
        parser.error("--readers needs at least 20")
    # A descriptor for each reader of a worker, plus some more.
    raise_descriptor_limit(arguments.readers // WORKERS + 1024)
    if arguments.job:
        with open(arguments.job) as file:
            return work(json.load(file))
    verdict = Verdict()
    paces = [slowness()]
    with workplace("readers") as directory:
        pieces = min(MOST_PIECES, int(arguments.readers * PIECE_SHARE))
        seconds = crowd(verdict, directory, arguments, file_count=1, length=pieces * PIECE)
        paces.append(slowness())
        seconds += crowd(
            verdict, directory, arguments, file_count=arguments.readers // 10, length=8 * PIECE)
    paces.append(slowness())
    slower = min(max(paces), MOST_SLOWER)
    limit = time_limit(arguments) * slower
    verdict.check("both", f"{seconds:.1f} s, at most {limit:.0f} at {slower:.1f} times the time of a quiet "
                  "machine", seconds <= limit)
    verdict.exit()
