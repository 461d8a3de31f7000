"""Thousands of names: the cost of a mount's end, and the memory of a download of all of them."""

import concurrent.futures
import contextlib
import os

from .bounds import INNOCENT_LINES, Prober, Violation
from .cases import NAMES_INTERVAL
from .commands import COMMON, look_at_command, prepare
from .mounts import Mounted, look_at_directory, look_at_status, mount_again, write_private
from .server import INNOCENT, PORT

# Each look-up creates an entry of the cache, which the end of the mount would commit.
COUNTS = (1000, 3000, 4600)
READERS = 16
# No server answers there: the test measures waiting downloads.
DOWNLOADS = 40_000


def run(job, cases, sabotage=None):
    """Runs the one case; gives the violations."""
    case, = cases
    found = (download if case.number // NAMES_INTERVAL % 2 else look)(job, case)
    return [(case.number, violation) for violation in found]


def download(job, case):
    """Has get begin with a list of very many files."""
    case.what = f"a download of {DOWNLOADS} files"
    directory = job.directory()
    prepare(directory)
    write_private(f"{directory}/list", "".join(
        f"http://127.203.0.1:9/{index}.bin\n" for index in range(DOWNLOADS)))
    # It would wait for each of them, so it is told to end.
    _, found = look_at_command(
        job, directory, ["get", *COMMON, "-i", f"{directory}/list", "-o", "."], {}, "command",
        is_endless=True)
    job.remove(directory)
    return found


def look(job, case):
    """Looks at many names, and ends the mount at once."""
    count = case.chance.choice(COUNTS)
    reads = case.chance.randrange(2)
    case.what = f"{count} new names, {'read' if reads else 'looked at'}, then the end"
    directory = job.directory()
    os.makedirs(f"{directory}/home")
    write_private(f"{directory}/urls.txt", INNOCENT_LINES + "".join(
        f"http://{INNOCENT}:{PORT}/n{index}.bin\n" for index in range(count)))
    mount = Mounted(job, directory)
    found = mount.wait()
    try:
        if not found:
            found += exercise(job, mount, count, reads)
    finally:
        mount.tear_down()
    found += mount_again(job, mount, [], {})
    found += look_at_directory(directory)
    job.remove(directory)
    return found


def exercise(job, mount, count, reads):
    def look_at(index):
        path = f"{mount.point}/n{index}.bin"
        with contextlib.suppress(OSError):
            if not reads:
                os.stat(path)
                return
            with open(path, "rb") as file:
                file.read(4096)

    prober = Prober(mount.point, job.chance, job.pace)
    prober.start()
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        list(pool.map(look_at, range(count)))
    found = look_at_status(job, mount) + prober.finish()
    job.reads += prober.count + count
    if mount.child.poll() is not None:
        return found + [Violation("alive", f"ended with {mount.child.status}: {mount.child.tail()}")]
    found += mount.child.end(job.pace)
    # The reader causes the cost of thousands of requests.
    return found + [violation for violation in mount.child.costs() if violation.bound != "cpu"]
