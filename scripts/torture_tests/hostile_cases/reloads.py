"""Cases of lists that a mount reloads."""

import errno
import os
import signal
import time

from . import lists
from .bounds import INNOCENT_LINES, Prober, Snapshot, Violation, judged_cpu, of_process
from .mounts import (Mounted, look_at_directory, look_at_files, look_at_status, mount_again,
                     write_private)


class Absent(Prober):
    """A prober of a mount whose list may be without the innocent ones."""

    def read(self):
        self.excused(super().read)

    def look(self):
        self.excused(super().look)

    @staticmethod
    def excused(call):
        try:
            call()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESTALE, errno.ENOTDIR):
                raise


def run(job, cases, sabotage=None):
    """Has a mount read the list of each case; gives the violations."""
    directory = job.directory()
    for name in ("home", "outside"):
        os.makedirs(f"{directory}/{name}")
        write_private(f"{directory}/{name}/.bashrc", "mine\n")
    write_private(f"{directory}/urls.txt", INNOCENT_LINES)
    before = Snapshot(directory)
    mount = Mounted(job, directory, ["--log-file", f"{directory}/log"])
    found = [(None, violation) for violation in mount.wait()]
    try:
        if not found:
            prober = Absent(mount.point, job.chance, job.pace)
            prober.start()
            for case in cases:
                found += reload(case, mount)
                if mount.child.poll() is not None:
                    break
            found += [(None, violation) for violation in look_at_status(job, mount) + prober.finish()]
            job.reads += prober.count
            if mount.child.poll() is None:
                found += [(None, violation) for violation in mount.child.end(job.pace)]
            # For all cases together: a case that exceeds 2 s alone is already reported.
            found += [(None, violation) for violation in mount.child.costs()
                      if violation.bound != "cpu"]
    finally:
        mount.tear_down()
    write_private(f"{directory}/urls.txt", INNOCENT_LINES)
    found += [(None, violation) for violation in mount_again(job, mount, [], {})]
    # The list belongs to the script.
    found += look_at_files(directory, before, "urls.txt")
    found += [(None, violation) for violation in look_at_directory(directory)]
    job.remove(directory)
    return found


def reload(case, mount):
    """Has the list read again, waits until that is done, and looks at what it has cost."""
    if case.chance.randrange(3):
        data, case.what = lists.text_list(case.chance)
        if data[:2] != b"\x1f\x8b":
            data = INNOCENT_LINES.encode() + data
    else:
        data, case.what = lists.metalink(case.chance)
    write_private(f"{mount.directory}/urls.new", data)
    os.replace(f"{mount.directory}/urls.new", mount.list)
    first = of_process(mount.child.pid)
    mount.child.signal(signal.SIGHUP)
    cost, last, still = 0.0, first, 0
    deadline = time.monotonic() + 6
    # It is done when it has been idle for a while.
    while still < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
        facts = of_process(mount.child.pid)
        if facts is None or first is None or mount.child.poll() is not None:
            return [(case.number, Violation(
                "alive", f"ended with {mount.child.status}: {mount.child.tail()}"))]
        still = still + 1 if facts[0] - last[0] < 0.015 else 0
        cost, last = facts[0] - first[0], facts
    return [(case.number, violation) for violation in judged_cpu(" for the list", cost)]
