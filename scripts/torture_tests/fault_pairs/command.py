"""`scripts/torture faults --pairs`: every pair of conditions with several seeds, side by side."""

import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from programs import ROOT
from torture_tests.support import DIRECTORY, OWN_MOUNTS, processes_of

from . import get_sabotage, promise_check, report, server_conditions
from .combinations import MOUNT
from .get_combinations import GET

# A run that takes longer hangs.
LIMIT = 240
# A run in which readers did not bring a condition about shows nothing, and is repeated. These are
# the maximum number of attempts, and the maximum share of repeated runs (two are always allowed).
MOST_ATTEMPTS, MOST_REPEATED = 3, 0.05


def parse_arguments(words):
    parser = argparse.ArgumentParser(
        prog="torture faults --pairs",
        description="Runs every pair of conditions, with readers of several kinds.")
    parser.add_argument("--pairs", action="store_true", help="pairs of conditions, not rows of the table")
    parser.add_argument("--get", action="store_true", help="of downloads, not of a mount")
    parser.add_argument("--seeds", type=int, default=3, help="seeds per pair (default 3)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them (default 1)")
    parser.add_argument("--pair", action="append", metavar="A,B",
                        help="only this pair; may be repeated")
    parser.add_argument("--sample", action="store_true",
                        help="only the pairs that scripts/test runs")
    parser.add_argument("--self-check", action="store_true",
                        help="show that each kind of violation is found, and run no pair")
    parser.add_argument("--list", action="store_true", help="name the conditions and end")
    parser.add_argument("--jobs", type=int, default=2, help="so many runs side by side (default 2)")
    parser.add_argument("--output", metavar="FILE", help="write the table there, too")
    parser.add_argument("--json", metavar="FILE", help="write what came of each run there")
    parser.add_argument("--binaries", default=os.path.join(ROOT, ".build", "release"),
                        help="where httpfs, Origin and libFailingCalls.so are (default .build/release)")
    arguments = parser.parse_args(words)
    if arguments.seeds < 1 or arguments.first_seed < 0 or arguments.jobs < 1:
        parser.error("--seeds and --jobs need at least 1, --first-seed at least 0")
    arguments.target = DOWNLOADS if arguments.get else MOUNTS
    try:
        arguments.pair = [arguments.target.combinations.pair_named(text) for text in arguments.pair or ()]
    except ValueError as error:
        parser.error(str(error))
    return arguments


class Target:
    """What is put under pairs of conditions: the pairs, the script of one run, and the self-check."""

    def __init__(self, combinations, script, sabotage):
        self.combinations, self.sabotage = combinations, sabotage
        self.script = os.path.join(DIRECTORY, "fault_pairs", script)


MOUNTS = Target(MOUNT, "run.py", server_conditions.SABOTAGE)
DOWNLOADS = Target(GET, "get_run.py", get_sabotage.SABOTAGE)


class Job:
    """One run, in a process and a mount namespace of its own."""

    running = set()

    def __init__(self, target, binaries, pair, seed, sabotage=None):
        self.target, self.binaries, self.pair, self.seed, self.sabotage = target, binaries, pair, seed, sabotage
        self.name = f"{' + '.join(pair)}, seed {seed}" + (f", {sabotage}" if sabotage else "")

    def run(self):
        """Runs the pair until both conditions have taken hold, or not even the last attempt shows that.

        What httpfs itself must obey is asked of the first attempt.
        """
        missing = []
        for _ in range(MOST_ATTEMPTS):
            result = self.attempt()
            # The conditions that did not take hold in earlier attempts.
            result["repeated"] = list(missing)
            if {kind for kind, _ in result["violations"]} != {"not shown"} or result["is_disobeyed"]:
                break
            missing.append(" and ".join(result["missing"]))
        return result

    def attempt(self):
        directory = os.path.realpath(tempfile.mkdtemp(prefix="httpfs-pairs-"))
        words = [*OWN_MOUNTS, sys.executable, "-B", self.target.script, *self.pair, str(self.seed), directory,
                 os.path.abspath(self.binaries), *([self.sabotage] if self.sabotage else [])]
        process = subprocess.Popen(
            words, cwd=ROOT, env=os.environ | {"TMPDIR": directory}, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        Job.running.add(process)
        try:
            output, errors = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            # The process cleans up; if it cannot, it is killed.
            process.terminate()
            try:
                output, errors = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
            errors += f"\nnot done after {LIMIT} s"
        finally:
            Job.running.discard(process)
        result = self.result(output, errors)
        for number, name in processes_of(directory):
            result["violations"].append(["left over", f"process {number} ({name})"])
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(directory, ignore_errors=True)
        return result

    def result(self, output, errors):
        try:
            result = json.loads(output.splitlines()[-1])
        except (ValueError, IndexError):
            result = {"pair": self.pair, "seed": self.seed, "evidence": {}, "together": 0,
                      "totals": {}, "errors": {}, "missing": [], "is_disobeyed": False, "slowest": 0, "slowest_status": 0,
                      "violations": [["broken", "no result"]], "seconds": 0, "log": []}
        if errors.strip():
            result["violations"].append(["broken", errors.strip()[-1500:]])
        return result


def run_all(jobs, count):
    """Runs the jobs, so many side by side, and gives their results in their order."""
    pool = concurrent.futures.ThreadPoolExecutor(count)
    futures = [pool.submit(job.run) for job in jobs]
    try:
        for job, future in zip(jobs, futures):
            result = future.result()
            mark = "✘" if result["violations"] else "✔"
            print(f"{mark} {job.name}: {result['totals'].get('reads', 0)} "
                  f"{job.target.combinations.what}, "
                  f"{result['seconds']} s", file=sys.stderr, flush=True)
            if not job.sabotage:
                for kind, text in result["violations"]:
                    print(f"    {kind}: {text}", file=sys.stderr, flush=True)
    finally:
        for future in futures:
            future.cancel()
        for process in list(Job.running):
            process.terminate()
        pool.shutdown()
    return [future.result() for future in futures]


def check_judge(arguments):
    """Shows that each violation is found where it is made; gives whether all were."""
    jobs = [Job(arguments.target, arguments.binaries, pair, arguments.first_seed, sabotage)
            for sabotage, (_, _, pair) in arguments.target.sabotage.items()]
    faults = [*promise_check.faults(), *promise_check.sync_faults()]
    count = len(promise_check.CASES) + len(promise_check.SYNC_CASES)
    print(f"{'FAIL' if faults else 'ok  '} promises: {'; '.join(faults) or count}", flush=True)
    is_good = not faults
    for job, result in zip(jobs, run_all(jobs, arguments.jobs)):
        kinds = {kind for kind, _ in result["violations"]}
        expected = arguments.target.sabotage[job.sabotage][1]
        is_found = expected in kinds
        is_good &= is_found
        words = next((text for kind, text in result["violations"] if kind == expected),
                     f"NOT FOUND, only {sorted(kinds)}")
        print(f"{'ok  ' if is_found else 'FAIL'} {job.sabotage}: {words}", flush=True)
    return is_good


def main(words):
    arguments = parse_arguments(words)
    if arguments.list:
        print("\n".join(arguments.target.combinations.conditions))
        return
    if os.geteuid() != 0:
        sys.exit("faults: --pairs needs root, for mounts, loop devices and passthrough")
    for name in ("httpfs", "Origin", "libFailingCalls.so"):
        if not os.path.exists(os.path.join(arguments.binaries, name)):
            sys.exit(f"faults: no {name} in {arguments.binaries}: "
                     "run 'swift build -c release --build-tests' first")
    # SIGTERM unwinds like Ctrl-C, so everything is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if arguments.self_check:
        sys.exit(0 if check_judge(arguments) else 1)
    combinations = arguments.target.combinations
    pairs = arguments.pair or (combinations.sample if arguments.sample else combinations.pairs)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    began = time.monotonic()
    results = run_all([Job(arguments.target, arguments.binaries, pair, seed) for seed in seeds for pair in pairs],
                      arguments.jobs)
    repeated = sum(len(result["repeated"]) for result in results)
    is_often = repeated > max(2, MOST_REPEATED * len(results))
    text = report.table(combinations, pairs, seeds, results, arguments.jobs, time.monotonic() - began)
    if is_often:
        text += f"\n{repeated} repetitions of {len(results)} runs are too many: conditions do not take hold.\n"
    print(text, end="")
    if arguments.output:
        report.write(arguments.output, text, words)
    if arguments.json:
        with open(arguments.json, "w") as file:
            for result in results:
                file.write(json.dumps(result) + "\n")
    sys.exit(1 if is_often or any(result["violations"] for result in results) else 0)
