"""Lets generated hostile servers and files have a go at httpfs, and looks whether its bounds hold.

Usage: scripts/torture hostile [--cases N] [--first-case K] [--seed S] [--kind NAME]...
                               [--case K]... [--jobs N] [--output FILE] [--binaries DIRECTORY]
                               [--self-check]
  --cases       how many cases (default 2000), from --first-case on (default 0)
  --seed        decides, with its number, all of a case (default 1)
  --kind        only cases of this kind among them; may be repeated: body, cache, config, get, head,
                list, listing, metalink, names, netrc, partial, proxy, put, redirect, reload, session,
                trace
  --case        only this case, by itself; may be repeated
  --jobs        so many side by side (default: two for each core)
  --output      write what came of it there, as Markdown
  --binaries    where httpfs is (default .build/release)
  --self-check  show that each bound can fail: everything misbehaves, and has to be noticed
A case is a server, a list, a listing, a Metalink, a sidecar of a cache or of a download, a session, a
trace, a configuration, a netrc, cookie file or proxy that somebody hostile has made, by grammar and by
mutation. Servers, reloads and caches share mounts; where a mount breaks a bound its cases run again in
smaller groups, until it is known which it was. The bounds are in hostile_cases/bounds.py.
What does not hold fails the run; only a time of up to four times its bound is asked for again, and
only so often (3 times, and once more for each 100 cases).
Needs root: everything happens in namespaces of its own, without any network but the loopback, on an
overlay of the machine's files whose changes are looked at, and ends with the script.
Exit status: 0 all bounds hold, 1 one does not.
"""

import argparse
import fcntl
import json
import multiprocessing
import os
import queue
import socket
import struct
import sys

from programs import ROOT
from torture_tests.hostile_cases import frame, jobs, self_check, server
from torture_tests.hostile_cases.bounds import calibrate
from torture_tests.hostile_cases.cases import KINDS, kind_of
from torture_tests.hostile_cases.report import Report
from torture_tests.support import TORTURE, WITHOUT_COPIES, raise_descriptor_limit, workplace


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="torture hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first-case", type=int, default=0, metavar="K")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="NAME")
    parser.add_argument("--case", action="append", type=int, metavar="K")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--binaries", metavar="DIRECTORY", default=f"{ROOT}/.build/release")
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("--is-isolated", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.cases < 1 or arguments.jobs < 1 or arguments.first_case < 0:
        parser.error("--cases and --jobs need at least 1, --first-case at least 0")
    arguments.binaries = os.path.abspath(arguments.binaries)
    return arguments


def isolate(words):
    """Begins again in namespaces of its own: what is mounted, started and connected ends there."""
    if os.geteuid() != 0:
        sys.exit("hostile: needs root, for namespaces of its own")
    os.execvp("unshare", [
        "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private",
        "--mount-proc", "--", *WITHOUT_COPIES, sys.executable, TORTURE, "hostile",
        *words, "--is-isolated"])


def bring_loopback_up():
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(any_socket, 0x8914, request)


def numbers_of(arguments):
    if arguments.case:
        return [[number] for number in arguments.case]
    last = arguments.first_case + arguments.cases
    return list(jobs.units([
        number for number in range(arguments.first_case, last)
        if not arguments.kind or kind_of(number) in arguments.kind]))


def run(arguments, work):
    units = numbers_of(arguments)
    if not units:
        sys.exit("hostile: no such case")
    report = Report(arguments, units)
    notes = f"{work}/elsewhere"
    services = server.start(server.serve_innocent, notes)
    context = multiprocessing.get_context("fork")
    tasks, results = context.Queue(), context.Queue()
    count = min(arguments.jobs, len(units))
    for unit in units + [None] * count:
        tasks.put(unit)
    workers = [context.Process(target=jobs.work, args=(
        index, arguments.seed, f"{arguments.binaries}/httpfs", work, tasks, results))
        for index in range(count)]
    for worker in workers:
        worker.start()
    try:
        while report.done < report.count:
            try:
                report.add(*results.get(timeout=1))
            except queue.Empty:
                # The results of the last worker may still be in flight.
                if not any(worker.is_alive() for worker in workers) and results.empty():
                    print("FAIL: all jobs have ended", flush=True)
                    break
    finally:
        for worker in workers:
            worker.join(5)
            if worker.is_alive():
                worker.terminate()
                worker.join(20)
        services.terminate()
    for path in jobs.strays(work):
        report.add({}, [([], "files", f"elsewhere: {path}", True)], (0, 0, 0))
    if os.path.exists(notes):
        with open(notes) as file:
            for line in sorted(set(file)):
                report.add({}, [([], "secret", "elsewhere: " + json.loads(line), True)], (0, 0, 0))
    return report


def main(words):
    arguments = parse_arguments(words)
    if not os.access(f"{arguments.binaries}/httpfs", os.X_OK):
        sys.exit(f"hostile: no httpfs in {arguments.binaries}; build it first")
    if not arguments.is_isolated:
        isolate(words)
    bring_loopback_up()
    raise_descriptor_limit(8192)
    calibrate()
    with workplace("hostile") as work, frame.entered(work):
        if arguments.self_check:
            sys.exit(self_check.run(f"{arguments.binaries}/httpfs", work))
        report = run(arguments, work)
    text = report.markdown()
    if arguments.output:
        with open(arguments.output, "w") as file:
            file.write(text)
    print(text.split("\n")[2])
    sys.exit(0 if report.is_good() else 1)
