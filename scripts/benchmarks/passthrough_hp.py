"""libfuse's example passthrough_hp, the fastest file system that goes through user space.

Debian's libfuse3-dev contains the examples in C, but not this one, which is C++: it is compiled
from the source package. Debian 12's libfuse does not support the kernel's passthrough: it splices.
"""

import glob
import os
import re
import shlex
import subprocess

from benchmarks.support import is_installed, last_line, note
from programs import Failure

_SOURCE_LISTS = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list",
                 "/etc/apt/sources.list.d/*.sources")


def _with_sources(directory):
    """Options of apt-get for lists of its own, where each archive of this machine is one of
    sources; the machine's lists stay as they are."""
    parts = f"{directory}/parts"
    for path in (f"{parts}", f"{directory}/lists/partial"):
        os.makedirs(path, exist_ok=True)
    for index, path in enumerate(sorted(sum(map(glob.glob, _SOURCE_LISTS), []))):
        with open(path) as text:
            content = re.sub(r"^deb(?=\s)", "deb-src", text.read(), flags=re.MULTILINE)
        content = re.sub(r"^(Types:).*$", r"\1 deb-src", content, flags=re.MULTILINE)
        with open(f"{parts}/{index}{os.path.splitext(path)[1]}", "w") as output:
            output.write(content)
    options = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts,
               "Dir::State::lists": f"{directory}/lists", "APT::Sandbox::User": "root"}
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _fetch(directory):
    """Fetches libfuse's source package into a directory; gives the example's path."""
    options = _with_sources(directory)
    for command in (["update"], ["source", "--download-only", "fuse3"]):
        subprocess.run(["apt-get", "--quiet", *options, *command], cwd=directory, check=True,
                       capture_output=True, text=True, timeout=180)
    archive, = glob.glob(f"{directory}/fuse3_*.orig.tar.?z")
    subprocess.run(["tar", "--extract", "--file", archive, "--strip-components=2", "--wildcards",
                    "*/example/*.cc", "*/example/*.h", "*/example/*.hpp"], cwd=directory,
                   check=True, capture_output=True, text=True)
    return f"{directory}/passthrough_hp.cc"


def build(bench):
    """Builds the example, once a run; gives the program's path.

    Raises Failure where the sources or a compiler cannot be had.
    """
    directory = bench.directory("passthrough_hp")
    program = f"{directory}/passthrough_hp"
    if os.path.exists(program):
        return program
    compiler = next((name for name in ("g++", "clang++") if is_installed(name)), None)
    if not compiler or not is_installed("apt-get"):
        raise Failure("needs apt-get and a C++ compiler")
    note("building passthrough_hp from libfuse's source package ...")
    try:
        flags = shlex.split(subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True,
            text=True).stdout)
        source = _fetch(directory)
        with open(f"{directory}/config.h", "w") as text:
            text.write("#define HAVE_UTIMENSAT 1\n")
        subprocess.run([compiler, "-O2", "-std=c++17", f"-I{directory}", source, "-o", program,
                        *flags, "-pthread"], check=True, capture_output=True, text=True,
                       cwd=directory)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        said = last_line(str(getattr(error, "stderr", "")))
        raise Failure(f"libfuse's example could not be built: {error} {said}") from error
    return program
