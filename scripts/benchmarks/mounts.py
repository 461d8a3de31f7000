"""httpfs and its peers as mounts: a command for each, and a common way to mount and unmount."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

from benchmarks import workloads
from benchmarks.figures import OWN
from benchmarks.servers import Served
from benchmarks.support import SEARCH_PATH, TIME_LIMIT, last_line, run
from benchmarks.usage import Usage, children_of, usage_of
from programs import Failure, child, is_mounted, wait_until


@dataclass(frozen=True)
class Place:
    """Where a mount goes: the mount point, an empty directory, and the cache's."""

    mountpoint: str
    cache: str
    scratch: str


@dataclass(frozen=True)
class System:
    """A file system: how it is called here, what it needs, and what starts it in the foreground.

    `launcher` is put before the command; `enter` before a reader's, where the mount can be seen
    only from where its daemon is. Words of it that are `{process}` become the daemon's number.
    """

    name: str
    program: str
    is_own: bool = False
    launcher: tuple[str, ...] = ()
    enter: tuple[str, ...] = ()
    user: str | None = None

    @property
    def programs(self):
        return () if self.is_own else (self.program,)

    def command(self, bench, served, place):
        raise NotImplementedError


@dataclass(frozen=True)
class HttpFS(System):
    """Our own, on a list; without further options but where its cache is, unless some are named."""

    options: tuple[str, ...] = ()

    def command(self, bench, served, place):
        path = f"{place.scratch}/urls.txt"
        with open(path, "w") as text:
            text.writelines(f"{url}\n" for url in served.urls)
        return [bench.binary("httpfs"), "mount", *self.options, "--cache-dir", place.cache, path,
                place.mountpoint]


class HttpFSListing(System):
    """Our own on the server's listing."""

    def command(self, bench, served, place):
        return [bench.binary("httpfs"), "mount", "--cache-dir", place.cache, served.url,
                place.mountpoint]


@dataclass(frozen=True)
class Rclone(System):
    """`rclone mount`; the mode is its --vfs-cache-mode."""

    mode: str = "off"
    options: tuple[str, ...] = ()

    def command(self, bench, served, place):
        return ["rclone", "mount", "--config", "", "--http-url", served.url, "--vfs-cache-mode",
                self.mode, *self.options, "--cache-dir", place.cache, ":http:", place.mountpoint]


class HttpDirFS(System):
    def command(self, bench, served, place):
        return ["httpdirfs", "-f", "--cache", "--cache-location", place.cache, served.url,
                place.mountpoint]


class HttpFS2(System):
    """httpfs2 mounts one file and caches nothing."""

    def command(self, bench, served, place):
        return ["httpfs2", "-f", served.urls[0], place.mountpoint]


class Nbdkit(System):
    """nbdkit's curl plugin shown as a file by nbdfuse."""

    def command(self, bench, served, place):
        return ["nbdfuse", f"{place.mountpoint}/{served.names[0]}", "--command", "nbdkit", "-s",
                "--exit-with-parent", "curl", served.urls[0]]


@dataclass(frozen=True)
class PassthroughHP(System):
    """libfuse's example passthrough_hp on a local directory: what FUSE costs at least."""

    source: str = ""
    executable: str = ""

    def command(self, bench, served, place):
        return [self.executable, "--foreground", self.source, place.mountpoint]


# A separate mount namespace, where `/dev/fuse` has the mode that udev gives it.
NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
ENTER = ("nsenter", "--target", "{process}", "--mount", "--")


def in_namespace(source, target):
    """A launcher of a command that sees the file `source` in the place of `target`."""
    # Remove copies of httpfs's mounts: a copy keeps the daemon of an unmounted mount running.
    script = ('umount --all --lazy --types fuse.httpfs; '
              'mount --bind "$1" "$2" && shift 2 && exec "$@"')
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", source,
            target)


def own(name=OWN, **options):
    return HttpFS(name, "httpfs", is_own=True, **options)


def own_with(*options):
    return own(f"{OWN} {' '.join(options)}", options=options)


def own_listing():
    return HttpFSListing(f"{OWN}, listing", "httpfs", is_own=True)


@contextlib.contextmanager
def own_as_nobody(bench, name):
    """httpfs as the ordinary user `nobody`; only root can arrange that.

    All its mounts are made in one namespace, as those of one session of a user are: in a new one the
    cache's file system would count as mounted anew, and all that is cached would be verified again.
    """
    device = bench.path("fuse-device")
    if not os.path.exists(device):
        run("mknod", "-m", "666", device, "c", "10", "229")
    with child(*in_namespace(device, "/dev/fuse"), "sleep", "infinity") as holder:
        wait_until(lambda: is_mounted("/dev/fuse", holder.pid), 10, "a mount namespace")
        there = tuple(word.format(process=holder.pid) for word in ENTER)
        yield own(name, launcher=there + NOBODY, enter=ENTER + NOBODY, user="nobody:nogroup")


def own_trusting(bench, authority_path):
    """httpfs on a machine that trusts one more authority; only root can arrange that."""
    system_authorities = "/etc/ssl/certs/ca-certificates.crt"
    together = bench.path("authorities.pem")
    with open(together, "w") as output:
        for path in (system_authorities, authority_path):
            with open(path) as text:
                output.write(text.read())
    return own(launcher=in_namespace(together, system_authorities), enter=ENTER)


# The advice of rclone's documentation for fast servers and networks with latency. It slows down a
# reader of single places, which therefore has the defaults.
STREAMS = ("--vfs-read-chunk-streams", "16", "--vfs-read-chunk-size", "4M")


@functools.cache
def _rclone_says(*arguments):
    """What rclone answers to a question about itself; nothing where there is none."""
    program = shutil.which("rclone", path=SEARCH_PATH)
    if not program:
        return ""
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60,
                          check=False).stdout


def rclone_version():
    """Such as 1.75.2; empty where there is none."""
    return _rclone_says("version").partition("\n")[0].partition(" v")[2].strip()


def rclone(mode, *, is_parallel=False):
    """rclone with the defaults of its mode, or, where it can, with parallel streams."""
    name = f"rclone {rclone_version()}".strip()
    name += ", full cache" if mode == "full" else ", no cache"
    # The version of Debian 12 has no such option.
    if is_parallel and STREAMS[0] in _rclone_says("mount", "--help"):
        return Rclone(f"{name}, 16 streams of 4M", "rclone", mode=mode, options=STREAMS)
    return Rclone(name, "rclone", mode=mode)


def httpdirfs():
    return HttpDirFS("httpdirfs", "httpdirfs")


def httpfs2():
    return HttpFS2("httpfs2, no cache", "httpfs2")


def nbdkit():
    return Nbdkit("nbdkit, no cache", "nbdfuse")


@dataclass
class Mounted:
    """A mount that is there."""

    directory: str
    process: int
    enter: list[str]
    # The start time of the command and the duration of the mount, in seconds of time.monotonic().
    started: float
    mount_seconds: float

    def path(self, name):
        return os.path.join(self.directory, name)

    def usage(self) -> Usage:
        """What the daemon has cost; nbdfuse's child, nbdkit, belongs to it, httpfs's watchdog does
        not."""
        with open(f"/proc/{self.process}/comm") as text:
            has_server = text.read().strip() == "nbdfuse"
        return usage_of(self.process, *(children_of(self.process) if has_server else ()))

    def run(self, *command, **options):
        """Runs a command where the mount can be seen; gives what it wrote."""
        try:
            result = subprocess.run([*self.enter, *command], capture_output=True, text=True,
                                    timeout=TIME_LIMIT, **options)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{command[0]} not done within {TIME_LIMIT} s") from error
        if result.returncode:
            raise Failure(f"{os.path.basename(command[0])} ended with {result.returncode}: "
                          f"{last_line(result.stderr)}")
        return result.stdout

    def read(self, workload, name, **arguments):
        """Lets a process of its own read a file in this way (see workloads)."""
        return workloads.apart(self.run, workload, self.path(name), **arguments)


def _take_down(mountpoint):
    # A well-behaved daemon has unmounted before it ended.
    for attempt in range(20):
        if not is_mounted(mountpoint):
            return
        subprocess.run(["fusermount3", "-u", *(["-z"] if attempt > 10 else []), mountpoint],
                       stderr=subprocess.DEVNULL, timeout=10, check=False)
        time.sleep(0.1)


@contextlib.contextmanager
def mounted(bench, system: System, served: Served, *, cache=None):
    """A mount that ends with the block; its cache is fresh, or an earlier one.

    A daemon that takes longer than the time limit is killed, which frees whoever reads there.
    """
    directory = tempfile.mkdtemp(prefix="mount-", dir=bench.work)
    os.chmod(directory, 0o755)
    place = Place(f"{directory}/mnt", cache or f"{directory}/cache", directory)
    for path in (place.mountpoint, place.cache):
        os.makedirs(path, exist_ok=True)
    if system.user:
        # Exclude the files in them: their changed inodes would look like a modification of the
        # cache.
        run("chown", system.user, place.mountpoint, place.cache)
    command = system.command(bench, served, place)
    log = f"{directory}/output"
    try:
        with open(log, "w") as output:
            started = time.monotonic()
            with child(*system.launcher, *command, stdout=output, stderr=output, cwd=directory,
                       env=bench.environment()) as process:

                def ready():
                    if process.poll() is not None:
                        with open(log, errors="replace") as text:
                            raise Failure(f"{system.program} ended before it mounted: "
                                          f"{last_line(text.read())}")
                    return is_mounted(place.mountpoint, process.pid if system.enter else "self")

                wait_until(ready, TIME_LIMIT, "mount", interval=0.001)
                mount = Mounted(
                    place.mountpoint, process.pid,
                    [word.format(process=process.pid) for word in system.enter],
                    started, time.monotonic() - started)
                watchdog = threading.Timer(TIME_LIMIT, os.kill, (process.pid, signal.SIGKILL))
                watchdog.daemon = True
                watchdog.start()
                try:
                    yield mount
                except OSError as error:
                    raise Failure(f"a read failed: {error}") from error
                finally:
                    watchdog.cancel()
    finally:
        _take_down(place.mountpoint)
        if not is_mounted(place.mountpoint):
            shutil.rmtree(directory, ignore_errors=True)
