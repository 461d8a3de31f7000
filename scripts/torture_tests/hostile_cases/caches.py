"""Cases of cache records: many entries of a cache, each with the record of one case."""

import errno
import os
import shutil
import signal
import time

from . import records
from .answers import content
from .bounds import (INNOCENT_LINES, LATE_SECONDS, Child, Prober, Snapshot, Violation, look_at_text)
from .chance import edge, once_in, spelt, strange
from .mounts import Mounted, look_at_directory, look_at_files, mount_again, write_private
from .server import INNOCENT, PORT

SLOTS, LENGTH = 16, 300_000


def name_of(slot):
    return f"small-{slot}.bin"


def make_template(job):
    """A cache with an entry for each slot, some of them complete."""
    directory = job.directory()
    write_list(directory)
    mount = Mounted(job, directory)
    try:
        if mount.wait():
            raise SystemExit(f"hostile: the mount for the caches does not start: {mount.child.tail()}")
        for slot in range(SLOTS):
            with open(f"{mount.point}/{name_of(slot)}", "rb", buffering=0) as file:
                while file.read(1 << 20) and slot % 2:
                    pass
        if mount.child.end(job.pace):
            raise SystemExit("hostile: the mount for the caches does not end")
    finally:
        mount.tear_down()
    return f"{directory}/cache"


def write_list(directory):
    write_private(f"{directory}/urls.txt", INNOCENT_LINES + "".join(
        f"http://u:CANARYpw@{INNOCENT}:{PORT}/{name_of(slot)}\n" for slot in range(SLOTS)))


def entries(cache):
    """The directory of each slot's entry."""
    found = {}
    for root, _, names in os.walk(f"{cache}/v1/files"):
        if "record" in names:
            with open(f"{root}/record", "rb") as file:
                data = file.read()
            for slot in range(SLOTS):
                if name_of(slot).encode() in data:
                    found[slot] = root
    return found


def change(case, entry, directory):
    """Does to an entry what the case is; gives what that is."""
    chance = case.chance

    def place(path):
        # Only the owner has access to the cache: no other user makes links there.
        return records.displace(chance, path, f"{directory}/outside", may_link=False)

    form = chance.randrange(10)
    if form < 6:
        with open(f"{entry}/record", "rb") as file:
            data, what = records.bad(chance, file.read())
        with open(f"{entry}/record", "wb") as file:
            file.write(data)
    elif form < 8:
        what = "a record is " + place(f"{entry}/record")
    else:
        data = next(name for name in os.listdir(entry) if name.startswith("data-"))
        what = "a data file is " + place(f"{entry}/{data}")
    if once_in(chance, 4):
        lines = [b"http://127.201.0.1:8080 %s %s" % (spelt(chance, edge(chance)), b"20000"),
                 b"http://127.201.0.1:8080 6 " + spelt(chance, edge(chance)), strange(chance),
                 b"http://x 1 1" * 20_000, b"http://127.201.0.1:8080 9223372036854775807 20779"]
        with open(f"{directory}/cache/v1/hosts", "ab") as file:
            file.write(chance.choice(lines) + b"\n" + b"http://h:1 4 20779\n" * chance.choice((1, 5000)))
        what += "; an odd line in hosts"
    if once_in(chance, 8):
        os.makedirs(f"{directory}/cache/v1/pins/" + chance.choice(("d", "0" * 64, "f" * 63)),
                    exist_ok=True)
        what += "; an odd pin"
    case.what = what


def run(job, cases, sabotage=None):
    """Runs the cases with one cache; gives the violations."""
    if job.template is None:
        job.template = make_template(job)
    directory = job.directory()
    for name in ("home", "outside"):
        os.makedirs(f"{directory}/{name}")
        write_private(f"{directory}/{name}/.bashrc", "mine\n")
    write_private(f"{directory}/outside/hard", "mine, too\n" * 1000)
    shutil.copytree(job.template, f"{directory}/cache")
    write_list(directory)
    places = entries(f"{directory}/cache")
    for slot, case in enumerate(cases):
        change(case, places[slot], directory)
    before = Snapshot(directory, without=(f"{directory}/cache",))
    found = []
    for words in (["ls"], ["ls", "--json"], ["verify"]):
        found += command(job, directory, words)
    mount = Mounted(job, directory)
    try:
        found += mount.wait()
        if not found:
            found += read_all(job, mount, cases)
        found += mount.child.costs()
        if mount.child.poll() is None:
            found += mount.child.end(job.pace)
        elif mount.child.status < 0:
            found.append(Violation("alive", f"killed by {signal.Signals(-mount.child.status).name}: "
                                   f"{mount.child.tail()}"))
    finally:
        mount.tear_down()
    found += mount_again(job, mount, [], {})
    words = [["verify", "--repair"], ["evict", "--to", "1000"], ["clear", "--yes"]]
    found += command(job, directory, words[cases[0].number % 3])
    found += [violation for _, violation in look_at_files(directory, before, *(
        f"cache.{word}.{kind}" for word in ("ls", "verify", "evict", "clear") for kind in ("out", "err")))]
    found += look_at_directory(directory)
    job.remove(directory)
    return [(None, violation) for violation in found]


def command(job, directory, words):
    """Runs a subcommand of httpfs cache; gives what is wrong with it."""
    child = Child([job.httpfs, "cache", *words, "--cache-dir", f"{directory}/cache"], directory,
                  job.environment(directory), "cache." + words[0])
    found = child.ended(job.pace, "late", f"cache {' '.join(words)}", 5)
    if child.status is None:
        child.kill()
    elif child.status not in (0, 1):
        found.append(Violation("alive", f"cache {' '.join(words)}: {child.status}: {child.tail()}"))
    for path in (child.output, child.errors):
        with open(path, "rb") as file:
            found += look_at_text(f"cache {' '.join(words)}", file.read(), is_for_terminal=True)
    return found + child.costs()


def read_all(job, mount, cases):
    prober = Prober(mount.point, job.chance, job.pace)
    prober.start()
    found = []
    for slot in range(len(cases)):
        began = time.monotonic()
        try:
            with open(f"{mount.point}/{name_of(slot)}", "rb") as file:
                if file.read() != content(3, 0, LENGTH):
                    found.append(Violation("bytes", f"{name_of(slot)}: {cases[slot].what}"))
        except OSError as error:
            # The server is innocent, and a damaged cache must not affect reads.
            if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED):
                found.append(Violation(
                    "bytes", f"{name_of(slot)} cannot be read ({error.strerror}): {cases[slot].what}"))
        took = time.monotonic() - began
        found += job.pace.judged("late", f"{name_of(slot)} took {took:.1f} s", took, LATE_SECONDS)
    found += prober.finish()
    job.reads += prober.count
    return found
