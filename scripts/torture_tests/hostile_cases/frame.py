"""The environment of cases: a copy of the machine's files, which shows writes elsewhere."""

import contextlib
import ctypes
import os
import stat

RDONLY, REMOUNT, BIND, DETACH = 1, 32, 4096, 2
# The directories that processes need unchanged.
WRITABLE = ("/proc", "/sys", "/dev")
# The exception, to which all users can write: a frame has its own, which is empty.
SHARED_MEMORY = "/dev/shm"

_libc = ctypes.CDLL(None, use_errno=True)
# The place of the copy's changes while a frame is entered.
_upper = None


def _mount(source, target, kind=None, flags=0, data=None):
    words = [os.fsencode(word) if word is not None else None for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), target)


def _mount_points():
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4].encode().decode("unicode_escape") for line in table]
    return [point for point in dict.fromkeys(points) if point != "/"]


@contextlib.contextmanager
def entered(work):
    """Has this process and its children see all files, and change only those below a directory.

    The root is an overlay: a change is made in a directory beside it, which changes() looks at. Other
    file systems can be read only. Needs a mount namespace of its own.
    """
    global _upper
    stage = f"{work}/frame"
    points = _mount_points()
    os.makedirs(stage)
    _mount("none", stage, "tmpfs")
    for name in ("upper", "work", "root"):
        os.mkdir(f"{stage}/{name}")
    # The mode of the root of an overlay is that of its upper directory.
    os.chmod(f"{stage}/upper", stat.S_IMODE(os.stat("/").st_mode))
    root = f"{stage}/root"
    try:
        _mount("overlay", root, "overlay", 0,
               f"lowerdir=/,upperdir={stage}/upper,workdir={stage}/work")
    except OSError as error:
        _libc.umount2(os.fsencode(stage), DETACH)
        raise SystemExit(f"hostile: no overlay of / is possible here: {error.strerror}") from error
    for point in points:
        if not os.path.exists(root + point):
            # A mount point inside a file system that is not included.
            continue
        _mount(point, root + point, None, BIND)
        if not f"{point}/".startswith(tuple(f"{name}/" for name in WRITABLE)):
            _mount(None, root + point, None, REMOUNT | BIND | RDONLY)
    if os.path.isdir(root + SHARED_MEMORY):
        _mount("none", root + SHARED_MEMORY, "tmpfs", 0, "mode=1777")
    os.makedirs(root + work, exist_ok=True)
    _mount(work, root + work, None, BIND)
    outside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    _upper = os.open(f"{stage}/upper", os.O_RDONLY | os.O_DIRECTORY)
    os.chroot(root)
    os.chdir("/")
    try:
        yield
    finally:
        os.fchdir(outside)
        os.chroot(".")
        os.close(_upper)
        os.close(outside)
        _upper = None
        _libc.umount2(os.fsencode(stage), DETACH)


def changes():
    """What was written elsewhere, so far: paths, and what shows that they were written again."""
    found = {}
    for root, directories, names, descriptor in os.fwalk(".", dir_fd=_upper):
        for name in names + directories:
            with contextlib.suppress(OSError):
                facts = os.lstat(name, dir_fd=descriptor)
                path = os.path.normpath(f"/{root}/{name}")
                found[path] = (facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    # A directory is copied before a file in it is written.
    parents = {os.path.dirname(path) for path in found}
    return {path: facts for path, facts in found.items() if path not in parents}
