"""Shows that each bound can fail, with misbehaving programs and sabotaged mounts."""

import fcntl
import os
import shutil
import signal
import sys
import threading
import time

from . import heads, server
from .bounds import (BOUNDS, CPU_SECONDS, END_SECONDS, LATE_SECONDS, MOST_FORGIVEN,
                     MOST_SLOWER, READ_SECONDS, Violation, most_times)
from .cases import Case, kind_of
from .jobs import Job, strays
from .report import Report

URL = "url = next(word for word in sys.argv if word.startswith('http'))\n"
SEND = URL + """
import socket, urllib.parse
parts = urllib.parse.urlsplit(url)
def send(host, port, method, target, field):
    with socket.create_connection((host, port)) as s:
        s.sendall(f'{method} {target} HTTP/1.1\\r\\n{field}\\r\\nContent-Length: 1\\r\\n\\r\\nx'.encode())
        s.recv(1)
"""
# A tenth of the work exceeds a bound of a tenth; the machine's pace never makes it wider than this.
BURN_BOUND = CPU_SECONDS / 10
BURN = f"while time.process_time() < {1.2 * MOST_SLOWER * BURN_BOUND}: pass"
# The time in which a program must misbehave, for busy machines.
PATIENCE_SECONDS = 60
# The programs that replace httpfs, by the kind of case, and the bound that each exceeds.
PROGRAMS = [
    (None, "list", "sys.exit(1)"),
    ("alive", "get", "os.kill(os.getpid(), 11)"),
    ("alive", "get", "sys.exit(77)"),
    ("cpu", "get", BURN),
    ("memory", "get", "x = b'x' * (120 << 20); time.sleep(0.3)"),
    ("end", "get", "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"),
    ("secret", "get", URL + "print(url, file=sys.stderr)"),
    ("secret", "get", "import base64; print(base64.b64encode(b'user:CANARYpw1'))"),
    ("secret", "get", "open('out.record', 'w').write('CANARYsig1')"),
    ("secret", "get", SEND + "send(parts.hostname, 8081, 'GET', '/', 'X-Secret: CANARYhdr1')"),
    ("secret", "get", SEND + "send(parts.hostname, 8081, 'GET', '/', 'Authorization: Basic dTpw')"),
    ("terminal", "get", "print('\\x1b[2J', file=sys.stderr)"),
    ("terminal", "get", "sys.stderr.buffer.write(b'\\xc2\\x9b2J')"),
    ("files", "get", "open('../outside/new', 'w')"),
    ("files", "get", "open('../home/.bashrc', 'a').write('x')"),
    ("files", "list", "open('.ssh/authorized_keys', 'w').write('x')"),
    ("files", "list", "open('link/victim', 'w').write('x')"),
    ("files", "list", "open('/etc/victim', 'w')"),
    ("files", "list", "os.makedirs('/httpfs-hostile-victim')"),
    ("files", "list", "open('../../outside/victim', 'w')"),
    ("files", "list", "open('../' * 3 + 'outside/victim', 'w')"),
    ("files", "list", "open('../command-evil', 'w')"),
    ("files", "list", "open('/dev/shm/victim', 'w')"),
    ("files", "get", "open('/usr/bin/env', 'a').write('x')"),
    ("asked", "get", ""),
    ("bytes", "proxy", "sys.exit(0)"),
    ("bytes", "list", "print('one file')"),
    ("bytes", "proxy", "open('out.bin', 'w').write('nonsense')"),
    ("bytes", "list", "open('x.bin', 'w').write('nonsense')"),
    ("post", "put", SEND + "for _ in range(2): send(parts.hostname, 8080, 'POST', '/commit', 'A: b')"),
    ("bytes", "partial", "open('out.bin', 'wb').write(bytes(300_000))"),
]


HANGS = "time.sleep(300)"


def stopped(mount, seconds, factor=MOST_SLOWER):
    """A daemon that does nothing for longer than a bound, whatever the machine's pace."""
    os.kill(mount.child.pid, signal.SIGSTOP)

    def go_on():
        time.sleep(seconds * factor + 1)
        mount.child.signal(signal.SIGCONT)

    threading.Thread(target=go_on, daemon=True).start()


def written(path, text):
    with open(path, "a") as file:
        file.write(text)


def sabotages(held):
    """What is done to a real mount, at which moment, and the bounds that this breaks."""
    def lock(mount):
        held.append(open(f"{mount.cache}/lock"))
        fcntl.flock(held[-1], fcntl.LOCK_EX)

    return [
        ((), "reading", lambda mount: None),
        (("alive", "innocent"), "reading", lambda mount: os.kill(mount.child.pid, signal.SIGKILL)),
        (("innocent", "late"), "reading", lambda mount: stopped(mount, LATE_SECONDS)),
        (("end",), "end", lambda mount: stopped(mount, END_SECONDS)),
        (("cache",), "ended", lock),
        (("secret",), "ended", lambda mount: written(f"{mount.cache}/v1/x", "CANARYsig1")),
        (("secret",), "status", lambda mount: written(f"{mount.directory}/log", "CANARYpw1\n")),
        (("terminal",), "status", lambda mount: written(f"{mount.directory}/log", "\x1b[2J\n")),
        (("files",), "status", lambda mount: written(f"{mount.directory}/outside/.bashrc", "x")),
    ]


def program_of(work, text):
    """A program that stands for httpfs."""
    path = f"{work}/program"
    with open(path, "w") as file:
        file.write(f"#!{sys.executable} -B\nimport os, signal, sys, time\n{text}\n")
    os.chmod(path, 0o755)
    return path


def settled_once(job, kind, httpfs, sabotage=None):
    """What is sure of a case whose first run alone is bad, by its program or by a sabotage."""
    deeds = [sabotage]

    def run(numbers):
        try:
            return job.run_cases([Case(1, numbers[0])], deeds.pop() if deeds else None)
        finally:
            job.httpfs = httpfs

    job.run = run
    try:
        return [(None, violation)
                for _, violation, is_sure in job.settle([case_of(1, kind)]) if is_sure]
    finally:
        del job.run


def case_of(seed, kind):
    """The first harmless case of a kind."""
    for number in range(100_000):
        if kind_of(number) == kind:
            case = Case(seed, number)
            if not case.is_served or case.changes == [heads.odd_type]:
                return number
    raise SystemExit(f"hostile: no harmless case of {kind}")


def forgives_only_time():
    """Whether what was seen once is sure unless it is a time, with one case and with many."""
    for numbers in ([1], list(range(20))):
        job = object.__new__(Job)
        job.results = [[(None, Violation("alive", "x")), (None, Violation("late", "y", True))],
                       [(None, Violation("end", "z", True))]]
        job.run = lambda numbers, job=job: job.results.pop(0) if job.results else []
        sure = [violation.text for _, violation, is_sure in job.settle(numbers) if is_sure]
        if sure != ["x"]:
            return False
    return True


def forgives_few():
    """Whether so many times may be forgiven and no more, and those of one moment are one."""
    count = 200
    for late, is_good in ((most_times(count), True), (most_times(count) + 1, False)):
        report = Report(None, [[number] for number in range(count)])
        report.done = count
        report.violations = 20 * [([number], "late", "x", False) for number in range(late)]
        if report.is_good() != is_good:
            return False
    return True


def sees_strays(work):
    """Whether a file in the directory of another job is seen."""
    os.makedirs(f"{work}/job999/3")
    before = strays(work)
    with open(f"{work}/job999/victim", "w"):
        pass
    seen = set(strays(work)) - set(before)
    shutil.rmtree(f"{work}/job999")
    return seen == {f"{work}/job999/victim"}


def run(httpfs, work):
    """Runs all of it; gives the exit status."""
    services = server.start(server.serve_innocent, f"{work}/elsewhere")
    job = Job(0, 1, httpfs, work)
    job.start()
    shown, failures = set(), 0
    for is_good, what in ((forgives_only_time(), "what is seen once is not sure"),
                          (forgives_few(), "times are forgiven without end"),
                          (sees_strays(work), "a file in the directory of another job is not seen")):
        if not is_good:
            failures += 1
            print(f"FAIL {what}", flush=True)
    held = []

    def judge(what, expected, found):
        nonlocal failures
        bounds = {violation.bound for _, violation in found}
        is_good = set(expected) <= bounds and (bool(expected) or not bounds)
        failures += not is_good
        shown.update(expected if is_good else ())
        seen = "; ".join(str(violation) for _, violation in found)[:160] or "nothing"
        print(f"{'ok  ' if is_good else 'FAIL'} {', '.join(expected) or 'nothing wrong'}: {what!r}: {seen}",
              flush=True)

    try:
        for bound, kind, text in PROGRAMS:
            job.httpfs = program_of(work, text)
            cases = [Case(1, case_of(1, kind))]
            job.seconds = END_SECONDS if bound == "end" else PATIENCE_SECONDS
            job.cpu_seconds = BURN_BOUND if bound == "cpu" else CPU_SECONDS
            judge(text.strip().split("\n")[-1], (bound,) if bound else (), job.run_cases(cases))
        job.httpfs, job.cpu_seconds = httpfs, CPU_SECONDS
        for expected, moment, deed in sabotages(held):
            cases = [Case(1, case_of(1, "head"))]
            judge(f"{moment} {' '.join(expected)}", expected, job.run_cases(
                cases, lambda now, mount, deed=deed, moment=moment: deed(mount)
                if now == moment else None))
            for file in held:
                file.close()
            held.clear()
        # A single event that is not repeated is sure if it takes this long.
        job.httpfs, job.seconds = program_of(work, HANGS), END_SECONDS
        judge("a command does not end once", ("ends",), settled_once(job, "proxy", httpfs))
        job.httpfs, job.seconds = httpfs, PATIENCE_SECONDS
        judge("a daemon stands still once", ("innocent",), settled_once(
            job, "head", httpfs, lambda now, mount: stopped(
                mount, READ_SECONDS, MOST_SLOWER * MOST_FORGIVEN) if now == "reading" else None))
    finally:
        job.tear_down()
        services.terminate()
    for bound in BOUNDS.keys() - shown:
        failures += 1
        print(f"FAIL {bound}: was not shown to fail", flush=True)
    return 1 if failures else 0
