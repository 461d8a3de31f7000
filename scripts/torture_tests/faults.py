"""Runs the fault table: every row of faults with several seeds, and what came of it.

Usage: scripts/torture faults [--seeds N] [--first-seed S] [--row K]... [--jobs N]
                              [--output FILE] [--limit SECONDS] [--scratch-path DIRECTORY]
                              [--skip-build] [--no-install]
       scripts/torture faults --pairs [--get] [--seeds N] [--first-seed S] [--pair A,B]... [--sample]
                              [--jobs N] [--output FILE] [--json FILE] [--self-check]
                              [--binaries DIRECTORY]

A row is one or more tests whose names begin with its number
(Tests/EndToEndTests/Suites/FaultTable), or that are named below. A seed decides lengths, places and
patterns, and repeats them: a row that fails with a seed fails again with `--row K --first-seed S
--seeds 1`. Most rows wait, for deadlines and for slow servers, so that several jobs share the
seeds, each in a mount namespace of its own; then come, alone, the rows that load the machine. The
table goes to standard output as Markdown, and to a file if asked for.

With --pairs it runs, in the place of rows, every pair of 18 conditions (fault_pairs, named by --list)
that hold at the same time, with readers of several kinds. Each run shows that both conditions took hold, and that every read gave right bytes of one version or a promised error by
its deadline, that requests stayed below a bound, that the daemon lives, that all is right
afterwards, also for the next mount, and that nothing is left. It takes the build as it is, and
needs root. --sample is what scripts/test runs; --self-check shows that violations are found.

With --pairs --get the conditions trouble `httpfs get` in the place of a mount, and the same command
is given again until the file is there. Each run shows that exit code 0 means a whole file of the
version that its validators name, that another code is promised and leaves what was under the name,
that nothing is left that the documentation does not name, and that the command that completes the
file fetches no more than a bound again, by its deadline and with bounded requests.

Exit status: 0 when every row has tests and all of them passed with every seed, else 1.
Rows that need root or a tool fail without it.
"""

import argparse
import collections
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from programs import ROOT
from torture_tests.support import OWN_MOUNTS, processes_of

TABLE = os.path.join(ROOT, "Tests", "EndToEndTests")
ROWS = [*range(1, 87)]

# Rows that need the whole machine: they run last, one at a time.
ALONE = {73, 83}

# Tests of rows in other suites: the row, the expectation, the suite, and the function.
ELSEWHERE = [
    (83, "two conditions at once, ten pairs of those of --pairs: each promise still holds",
     "FaultPairs",
     "`Pairs of conditions: right bytes or a promised error in time, and nothing left`"),
]
# Those of them without a seed, which run once.
WITHOUT_SEED = [
    (82, "the cache's file system stands still for a minute: reads of absent bytes, look-ups, status "
     "in time",
     "SlowDisks", "`a disk frozen for a minute holds up no look-up, open, status or read`"),
    (84, "1,000 fields of a head and more: taken, or the transfer fails",
     "ResponseHeads", "manyFields"),
    (84, "80,000 folded lines: a moment, and one value", "ResponseHeads", "manyFolds"),
    (84, "heads of any number of fields and folds: bounded, and linear", "HeadFuzzTests", "items"),
    (84, "a tag of 240,000 attributes: no other listing waits, nor the end of the mount", "Bounds",
     "`a tag of very many attributes delays no other listing, and not the end of the mount`"),
    (84, "a page of tags of 900 attributes: linear",
     "DocumentTests", "manyAttributesCostNoMoreThanTheirBytes"),
    (84, "2,400,000 attributes of a Metalink: refused before they are parsed",
     "MetalinkTests", "manyAttributesBehindAnErrorAreRefusedBeforeTheyAreParsed"),
    (84, "mirrors in a Metalink: 1,000, and no more",
     "MetalinkTests", "aFileMayHaveAThousandURLsAndNoMore"),
    (84, "mirrors and header lines in a list: so many, and no more",
     "RejectionTests", "oneMoreThanTheBoundIsRefused"),
    (84, "cookies without end: the server's own go, those of others stay",
     "RequestRedirects", "cookieFlood"),
]
# The names of suites with rows end like this, and the tests' names begin with the number.
SUITE = re.compile(r"\bstruct (\w+Rows)\b|\bextension RealMounts\.(\w+Rows)\b")
TEST = re.compile(r'@Test\(\s*"(\d\d) ([^"\\]*(?:\\.[^"\\]*)*)".*?\bfunc (\w+)', re.DOTALL)
# The argument of a test's case that is its seed: the first one.
SEED = re.compile(r"(\d+)(?:, |$)")
# The figures of reads that a row's test prints.
FIGURES = re.compile(r"^FAULT-ROW (\{.*\})$")


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="torture faults", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="seeds per row (default 3)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them (default 1)")
    parser.add_argument("--row", type=int, action="append", choices=ROWS, metavar="K",
                        help="only this row; may be repeated")
    parser.add_argument("--jobs", type=int, default=2,
                        help="so many runs side by side, which share the seeds (default 2)")
    parser.add_argument("--output", metavar="FILE", help="write the table there, too")
    parser.add_argument("--limit", type=float, default=14_400,
                        help="end the run after so many seconds (default 14400)")
    parser.add_argument("--scratch-path", metavar="DIRECTORY",
                        help="the build directory (default .build)")
    parser.add_argument("--skip-build", action="store_true", help="take the build as it is")
    parser.add_argument("--no-install", action="store_true", help="take the machine as it is")
    arguments = parser.parse_args(words)
    if arguments.seeds < 1 or arguments.first_seed < 0:
        parser.error("--seeds needs at least 1, --first-seed at least 0")
    if arguments.jobs < 1:
        parser.error("--jobs needs at least 1")
    return arguments



class RowTest:
    """A test of a row, as its source names it, and what came of it."""

    def __init__(self, row, name, suite, function, knows_seeds=True):
        self.row, self.suite, self.function = row, suite, function
        self.knows_seeds = knows_seeds
        self.fault, _, self.outcome = name.replace('\\"', '"').partition(": ")
        # The duration of each seed; a test without seeds has one entry, for None.
        self.seeds = {}
        self.failures = collections.defaultdict(list)

    @property
    def failed_seeds(self):
        return sorted(seed for seed in self.seeds if seed is not None and self.failures[seed])

    @property
    def seconds(self):
        """Of one seed, in the mean."""
        return sum(self.seeds.values()) / max(len(self.seeds), 1)

    def result(self, seed_count):
        if self.failed_seeds or self.failures[None]:
            seeds = ", ".join(map(str, self.failed_seeds))
            return f"**FAILED**, seed {seeds}" if seeds else "**FAILED**"
        if len(self.seeds) < (seed_count if self.knows_seeds else 1):
            return "**NOT RUN TO ITS END**"
        return "pass"

    def passed(self, seed_count):
        """How many seeds passed, of how many."""
        if not self.knows_seeds:
            return "–"
        return f"{len(self.seeds) - len(self.failed_seeds)}/{seed_count}"

    @property
    def path(self):
        """The end of the test's name, as --filter sees it."""
        return f"{self.suite}/{self.function}"

    @property
    def pattern(self):
        # The runner's patterns support backslashes only before ASCII punctuation.
        return "[./]" + re.sub(r"([][(){}.*+?^$|\\])", r"\\\1", self.path) + r"\("


def tests_in_sources():
    """All tests of rows: those found in the sources by their numbers, and those named above."""
    tests = [RowTest(*words) for words in ELSEWHERE]
    tests += [RowTest(*words, knows_seeds=False) for words in WITHOUT_SEED]
    for directory, _, names in os.walk(TABLE):
        for name in sorted(names):
            if not name.endswith(".swift"):
                continue
            with open(os.path.join(directory, name)) as file:
                text = file.read()
            suites = [(match.start(), match[1] or match[2]) for match in SUITE.finditer(text)]
            for match in TEST.finditer(text):
                before = [suite for start, suite in suites if start < match.start()]
                if before:
                    tests.append(RowTest(int(match[1]), match[2], before[-1], match[3],
                                         knows_seeds="arguments:" in match[0]))
    return sorted(tests, key=lambda test: test.row)


def swift(arguments, *words):
    command = ["swift", words[0], "-c", "release", *words[1:]]
    if arguments.scratch_path:
        command += ["--scratch-path", os.path.abspath(arguments.scratch_path)]
    return command


class Run:
    """One run of the tests with some of the seeds.

    All it mounts and starts is below a directory, and in a mount namespace, of its own.
    """

    def __init__(self, arguments, tests, seeds):
        self.arguments, self.tests, self.seeds = arguments, tests, seeds
        self.directory = os.path.realpath(tempfile.mkdtemp(prefix="httpfs-faults-"))
        os.chmod(self.directory, 0o755)
        self.figures = collections.Counter()
        self.left_behind = []
        self.has_passed = False
        self.runner = None

    def run(self):
        """Runs the tests and reads what came of them."""
        events = os.path.join(self.directory, "events.json")
        names = "|".join(test.pattern for test in self.tests)
        # Use the runner itself: two parallel runs of `swift test` would need the same lock.
        build = os.path.abspath(self.arguments.scratch_path or os.path.join(ROOT, ".build"))
        command = [os.path.join(build, "release", "httpfsPackageTests.xctest"),
                   "--testing-library", "swift-testing", "--filter", names,
                   "--event-stream-output-path", events, "--event-stream-version", "0"]
        environment = os.environ | {
            "TMPDIR": self.directory,
            "HTTPFS_FAULT_SEEDS": str(len(self.seeds)),
            "HTTPFS_FIRST_FAULT_SEED": str(self.seeds[0]),
            "HTTPFS_CROWD": "10000",
        }
        self.runner = subprocess.Popen(
            [*OWN_MOUNTS, "sh", "-c",
             f'"$@"; status=$?; cp /proc/self/mountinfo {self.mounts}; exit $status', "sh", *command],
            cwd=ROOT, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        for line in self.runner.stdout:
            self.note(line.rstrip("\n"))
        self.has_passed = self.runner.wait() == 0
        if os.path.exists(events):
            self.read(events)

    def end(self):
        """Ends the runner, if it still runs: its output blocks while it hangs."""
        if self.runner is not None and self.runner.poll() is None:
            try:
                os.killpg(self.runner.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    @property
    def mounts(self):
        """The file for the mounts at the end, as the run's namespace has them."""
        return os.path.join(self.directory, "mounts")

    def note(self, line):
        figures = FIGURES.match(line)
        if figures:
            for name, value in json.loads(figures[1]).items():
                if name not in ("row", "seed"):
                    self.figures[name] += value
        elif line.startswith(("✔ Test ", "✘ Test ")) and " recorded an issue " not in line:
            print(line, file=sys.stderr, flush=True)
        elif line.startswith("error:") or "Fatal error" in line:
            print(line, file=sys.stderr, flush=True)

    def read(self, path):
        """Reads the runner's event stream: which tests ran with which seed, how long, and why not."""
        by_path = {test.path: test for test in self.tests}
        started = {}
        with open(path) as stream:
            for line in stream:
                try:
                    record = json.loads(line)
                except ValueError:
                    break  # The runner died while it wrote.
                payload = record["payload"]
                # A module, suites, a function, and then its place in the sources.
                name = payload.get("testID", "").partition(".")[2].rpartition("/")[0]
                test = by_path.get("/".join(name.rpartition("(")[0].split("/")[-2:]))
                if record["kind"] != "event" or test is None:
                    continue
                case = payload.get("_testCase", {}).get("displayName") or ""
                match = SEED.match(case)
                seed = int(match[1]) if match and test.knows_seeds else None
                moment = payload["instant"]["absolute"]
                # A test without arguments reports no cases.
                unit = "testCase" if test.knows_seeds else "test"
                if payload["kind"] == unit + "Started":
                    started[test, case] = moment
                elif payload["kind"] == unit + "Ended":
                    # A seed may have several cases, with other arguments after it.
                    test.seeds[seed] = (test.seeds.get(seed, 0)
                                        + moment - started.get((test, case), moment))
                elif payload["kind"] == "issueRecorded":
                    text = " ".join(message["text"] for message in payload.get("messages", []))
                    test.failures[seed].append(text)

    def clean_up(self):
        """Takes down what the run has left, which is a failure, and removes its directory."""
        for mountpoint in self.mounts_left():
            self.left_behind.append(f"mount {mountpoint}")
        # The mounts disappear with the last process of the namespace.
        for process, name in processes_of(self.directory):
            self.left_behind.append(f"process {process} ({name})")
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.directory, ignore_errors=True)

    def mounts_left(self):
        try:
            with open(self.mounts) as table:
                places = [line.split()[4] for line in table]
        except FileNotFoundError:
            return []  # The runner was ended.
        return [place for place in places if place.startswith(self.directory + "/")]


def shares(arguments, jobs):
    """The seeds of each job, in runs of neighbours."""
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    jobs = min(jobs, len(seeds))
    return [seeds[job * len(seeds) // jobs:(job + 1) * len(seeds) // jobs] for job in range(jobs)]


def run_all(runs, limit):
    """Runs all side by side, until the last has ended or the limit ends them."""
    threads = [threading.Thread(target=run.run, daemon=True) for run in runs]
    try:
        for thread in threads:
            thread.start()
        end = time.monotonic() + limit
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0))
    finally:
        for run in runs:
            run.end()
        for thread in threads:
            thread.join(10)
        for run in runs:
            run.clean_up()


def report(arguments, tests, runs, missing, seconds):
    """The table as Markdown, with the sums below it."""
    lines = ["| row | fault | acceptable outcome | seeds | s each | result |",
             "| --- | --- | --- | --- | --- | --- |"]
    figures = sum((run.figures for run in runs), collections.Counter())
    for test in tests:
        lines.append(
            f"| {test.row:02} | {test.fault} | {test.outcome} | {test.passed(arguments.seeds)} | "
            f"{test.seconds:.1f} | {test.result(arguments.seeds)} |".replace("|  |", "| |"))
    for row in missing:
        lines.append(f"| {row:02} | | | 0 | | **NO TEST** |")
    rows = {test.row for test in tests}
    bad = {test.row for test in tests if test.result(arguments.seeds) != "pass"}
    lines += [
        "",
        f"{len(rows - bad)} of {len(rows) + len(missing)} rows pass with {arguments.seeds} seed(s) "
        f"from {arguments.first_seed}: {len(tests)} tests in {seconds / 60:.1f} minutes, "
        f"{min(arguments.jobs, arguments.seeds)} job(s).",
        f"{figures['reads']} reads compared byte by byte in response rows: "
        f"{figures['wrong']} wrong, {figures['late']} past the deadline + 5 s, "
        f"{figures['deaths']} daemons dead.",
    ]
    if missing:
        lines.append(f"Rows without a test: {', '.join(map(str, missing))}.")
    lines += [f"Left behind: {what}." for run in runs for what in run.left_behind]
    return "\n".join(lines) + "\n"


def main(words):
    if "--pairs" in words:
        from torture_tests.fault_pairs import command
        return command.main(words)
    arguments = parse_arguments(words)
    tests = tests_in_sources()
    wanted = sorted(set(arguments.row or ROWS))
    tests = [test for test in tests if test.row in wanted]
    missing = [row for row in wanted if row not in {test.row for test in tests}]

    if not arguments.no_install and not arguments.skip_build:
        subprocess.run([os.path.join(ROOT, "scripts", "install-deps")], check=True)
    if not arguments.skip_build:
        subprocess.run(swift(arguments, "build", "--build-tests"), cwd=ROOT, check=True)

    # SIGTERM unwinds like Ctrl-C, so everything is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    runs = []
    seeded = [test for test in tests if test.knows_seeds]
    for jobs, some in (arguments.jobs, [test for test in seeded if test.row not in ALONE]), (
            1, [test for test in seeded if test.row in ALONE]), (
            0, [test for test in tests if not test.knows_seeds]):
        seeds = shares(arguments, jobs) if jobs else [[arguments.first_seed]]
        phase = [Run(arguments, some, share) for share in seeds] if some else []
        run_all(phase, max(arguments.limit - (time.monotonic() - start), 0))
        runs += phase
    text = report(arguments, tests, runs, missing, time.monotonic() - start)
    print(text, end="")
    for test in tests:
        for seed, reasons in sorted(test.failures.items(), key=lambda item: item[0] or 0):
            for reason in reasons[:3]:
                # A script reports its violations at the end.
                text = reason if len(reason) <= 1200 else f"{reason[:200]} … {reason[-1000:]}"
                print(f"\nrow {test.row:02}, {test.function}, seed {seed}: {text}")
    if arguments.output:
        with open(arguments.output, "w") as file:
            file.write(
                f"# The fault table\n\n{datetime.date.today()}: `scripts/torture faults --seeds "
                f"{arguments.seeds} --first-seed {arguments.first_seed}`.\n\n{text}")
    is_good = (bool(runs) and all(run.has_passed for run in runs) and not missing
               and not any(run.left_behind for run in runs)
               and all(test.result(arguments.seeds) == "pass" for test in tests))
    sys.exit(0 if is_good else 1)
