"""The disk under the cache: an ext4 image that can be full, thin or frozen, and calls that fail."""

import collections
import contextlib
import errno
import fcntl
import os
import subprocess
import time

MIB = 1 << 20
# One block group of ext4, so all of its metadata lies at its beginning.
IMAGE_SIZE = 120 * MIB
# The part of the image with reserved space below, even if the disk below is full: tables and
# journal.
METADATA_SIZE = 10 * MIB
SYNCS = frozenset({"fdatasync", "fsync"})
# FIFREEZE and FITHAW of the kernel's fs.h.
FREEZE, THAW = 0xC0045877, 0xC0045878


def sh(*words):
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if result.returncode:
        raise SystemExit(f"{' '.join(words)}: {result.stderr.strip()}")


def allocate_all(path, step=8 * MIB):
    """Makes a file that takes all the room of its file system."""
    offset = 0
    with open(path, "ab") as file:
        while step >= 4096:
            try:
                os.posix_fallocate(file.fileno(), offset, step)
                offset += step
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                step //= 2
    return offset


class CacheDisk:
    """An ext4 file system on an image, sparse, on a tmpfs: both may be full, each in its own way.

    When the ext4 is full, write(2) says so. When the tmpfs under it is full, as a thin volume may be,
    write(2) succeeds and the pages are lost at the next sync.
    """

    def __init__(self, work):
        self.below, self.path = f"{work}/below", f"{work}/disk"
        self.image = f"{self.below}/image"
        self.is_frozen = self.is_thin = False
        for directory in (self.below, self.path):
            os.mkdir(directory)
        sh("mount", "-t", "tmpfs", "-o", f"size={IMAGE_SIZE + MIB}", "none", self.below)
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_SIZE)
        # Metadata goes to the journal, whose space is reserved: a full disk below costs data, but
        # not the file system itself.
        sh("/usr/sbin/mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", "2048", "-J", "size=4",
           "-E", "nodiscard,packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0", self.image)
        with open(self.image, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, METADATA_SIZE)
        self._mount()
        self.cache = f"{self.path}/cache"

    def _mount(self):
        """Mounts the image by a loop device that takes a page at a time.

        Since Linux 6.15 the device calls a write of several pages a success when the file system
        under it had room for the first of them only: then fdatasync(2) succeeds and data is lost,
        which no program can notice.
        """
        sh("mount", "-o", "loop,noatime,commit=60", self.image, self.path)
        device = os.path.basename(self.loop_devices()[0])
        with open(f"/sys/block/{device}/queue/max_sectors_kb", "w") as limit:
            limit.write("4")

    def remount(self):
        """Mounts the image anew, after a check: what comes next sees what is on the disk.

        A file system whose disk had no room for its metadata has given up its journal and takes nothing
        more, as ext4 does when a thin volume is full; an administrator who has made room does this.
        """
        sh("umount", self.path)
        result = subprocess.run(["/usr/sbin/e2fsck", "-fy", self.image], capture_output=True, text=True,
                                timeout=60)
        # 1 and 2: e2fsck has repaired something.
        if result.returncode not in (0, 1, 2):
            raise SystemExit(f"e2fsck {self.image}: {result.stdout.strip()}")
        self._mount()

    def free(self):
        space = os.statvfs(self.path)
        return space.f_bavail * space.f_frsize

    def fill(self):
        allocate_all(f"{self.path}/ballast")

    def empty(self):
        os.unlink(f"{self.path}/ballast")

    def fill_below(self):
        allocate_all(f"{self.below}/ballast")

    def empty_below(self):
        os.unlink(f"{self.below}/ballast")

    def freeze(self):
        self._control(FREEZE)
        self.is_frozen = True

    def thaw(self):
        self.is_frozen = False
        self._control(THAW)

    def _control(self, request):
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, request, 0)
        finally:
            os.close(descriptor)

    def data_files(self):
        for directory, _, names in os.walk(self.cache):
            for name in names:
                yield os.path.join(directory, name)

    def forget_pages(self, paths=None):
        """Lets the kernel forget what it can of these or all cache files: what is read again is on the disk."""
        for path in paths or self.data_files():
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)

    def tear_down(self):
        """Takes the disk away; gives what would not go."""
        if self.is_frozen:
            self.thaw()
        left = []
        for path in (self.path, self.below):
            for _ in range(50):
                result = subprocess.run(["umount", path], capture_output=True, text=True, timeout=60)
                if result.returncode == 0 or "not mounted" in result.stderr:
                    break
                time.sleep(0.1)
            else:
                left.append(f"{path} is in use: {result.stderr.strip()}")
                subprocess.run(["umount", "-l", path], capture_output=True, timeout=60)
        return left

    def loop_devices(self):
        """The loop devices that still hold the image."""
        result = subprocess.run(["/usr/sbin/losetup", "--noheadings", "--output", "NAME",
                                 "--associated", self.image],
                                capture_output=True, text=True, timeout=60)
        return result.stdout.split()


class SyncLog:
    """Which syncs of the cache's files have failed, and what that means for their entries."""

    def __init__(self):
        # The failed syncs: the time and the file of each.
        self.failed = []
        # The directories of entries whose record a failed sync may have lost, and that no copy has
        # replaced yet: httpfs may have to fetch the whole entry again.
        self.lost_records = set()

    def note(self, path, has_failed):
        """Notes a sync of a file, which has the name under which it was opened.

        A sync that succeeds after one that failed says nothing: the kernel reports a lost page once. So
        only a copy of the record makes good for it, and each copy is opened under a name of its own.
        """
        entry, name = os.path.split(path)
        if has_failed:
            self.failed.append((time.monotonic(), path))
            if name.startswith("record"):
                self.lost_records.add(entry)
        elif name.startswith("record-") and path not in {failed for _, failed in self.failed}:
            self.lost_records.discard(entry)


class FailingCalls:
    """The calls of the daemon on its cache: a log of them all, and which of them fail (Tests/FailingCalls)."""

    def __init__(self, binaries, work, directory):
        self.plan, self.log = f"{work}/plan", f"{work}/calls.log"
        self.faults = {}
        self.counts = collections.Counter()
        self.syncs = SyncLog()
        self.directory = directory
        self.offset = 0
        self.turns = 0
        self.written = None
        self.environment = {
            "LD_PRELOAD": f"{os.path.abspath(binaries)}/libFailingCalls.so",
            "FAILING_CALLS_DIRECTORY": directory,
            "FAILING_CALLS_PLAN": self.plan,
            "FAILING_CALLS_LOG": self.log,
        }
        self.write()

    def fail(self, owner, calls, number, effect="fail"):
        """Has these calls fail until the owner takes that back."""
        self.faults[owner] = (calls, number, effect)
        self.write()

    def mend(self, owner):
        self.faults.pop(owner, None)
        self.write()

    def write(self):
        """Writes the plan: one line, which has one errno and effect."""
        text = ""
        faults = list(self.faults.values())
        if faults:
            calls = faults[0][0].union(*(calls for calls, _, _ in faults))
            if len(calls) < sum(len(calls) for calls, _, _ in faults) \
                    or len({(number, effect) for _, number, effect in faults}) > 1:
                # They affect the same calls, or need other results: they take turns.
                faults = [faults[self.turns % len(faults)]]
                calls = faults[0][0]
            _, number, effect = faults[-1]
            text = f"{','.join(sorted(calls))} * 1 0 {number} {effect}\n"
        if text == self.written:
            return
        self.written = text
        with open(self.plan + ".new", "w") as file:
            file.write(text)
        os.replace(self.plan + ".new", self.plan)

    def take_turns(self):
        """Lets the next of those that cannot share a plan have it; called some ten times a second."""
        self.turns += 1
        self.write()

    def seen(self):
        """How often each call had each result so far: `counts[call, result]`."""
        with contextlib.suppress(FileNotFoundError), open(self.log, "rb") as file:
            file.seek(self.offset)
            text = file.read()
            text = text[:text.rfind(b"\n") + 1]
            self.offset += len(text)
            for line in text.decode(errors="replace").splitlines():
                words = line.split(" ", 5)
                if len(words) == 6:
                    self.counts[words[1], words[2]] += 1
                    if words[1] in SYNCS:
                        self.syncs.note(f"{self.directory}/{words[5]}", has_failed=words[2].isdigit())
        return collections.Counter(self.counts)

    def failures(self, calls, number=None):
        """How many of these calls have failed so far, with one errno or with any."""
        return sum(count for (call, result), count in self.seen().items()
                   if call in calls and (result.isdigit() if number is None else result == str(number)))

    def without_room(self):
        """How many calls the disk itself had no room for; no condition injects ENOSPC."""
        return sum(count for (call, result), count in self.seen().items()
                   if call not in SYNCS and result == str(errno.ENOSPC))
