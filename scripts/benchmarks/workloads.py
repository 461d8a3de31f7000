"""The actions of a reader on a file. Each workload returns its observations as a dictionary.

A workload usually runs in a separate process (`apart`), which can belong to another user or another
mount namespace, and can be ended when it hangs. It may be unable to see this file, so it gets this
text as its program. Therefore this module imports only the standard library.
"""

import hashlib
import json
import mmap
import os
import sys
import threading
import time

MIB = 1 << 20

# Another user may be unable to see the interpreter that runs this.
INTERPRETER = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def sequential(path):
    """Opens and reads the whole."""
    buffer = bytearray(MIB)
    start, own = time.monotonic(), time.process_time()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        length = 0
        while count := os.readv(descriptor, [buffer]):
            length += count
        return {"seconds": time.monotonic() - start, "length": length,
                "cpu_seconds": time.process_time() - own}
    finally:
        os.close(descriptor)


def hashed(path):
    """SHA-256 of the whole."""
    with open(path, "rb", buffering=0) as file:
        digest = hashlib.sha256()
        while piece := file.read(MIB):
            digest.update(piece)
    return {"digest": digest.hexdigest()}


def first_bytes(path, offset, count=4096):
    """Opens and reads once."""
    start = time.monotonic()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        piece = os.pread(descriptor, count, offset)
        seconds = time.monotonic() - start
    finally:
        os.close(descriptor)
    if len(piece) != count:
        raise OSError("a short read")
    return {"seconds": seconds, "digest": hashlib.sha256(piece).hexdigest()}


def mapped(path):
    """Touches every page of a mapping, in order."""
    start = time.monotonic()
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
            with memoryview(mapping) as view:
                touched = bytes(view[::mmap.PAGESIZE])
                return {"seconds": time.monotonic() - start,
                        "length": len(touched) * mmap.PAGESIZE}


def at_offsets(path, offsets, length, threads=1, is_random=True):
    """Reads `length` bytes at each offset, in this order, with so many threads; the file is opened
    before. Gives the seconds of each read, and SHA-256 of all pieces."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if is_random:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        left, lock = iter(offsets), threading.Lock()
        latencies, pieces = [], {}

        def work():
            while True:
                with lock:
                    offset = next(left, None)
                if offset is None:
                    return
                began = time.monotonic()
                pieces[offset] = os.pread(descriptor, length, offset)
                latencies.append(time.monotonic() - began)

        start = time.monotonic()
        _all_at_once(work for _ in range(threads))
        seconds = time.monotonic() - start
        wrong = sum(len(pieces.get(offset, b"")) != length for offset in offsets)
        if wrong:
            raise OSError(f"{wrong} short or failed reads")
        digest = hashlib.sha256(b"".join(pieces[offset] for offset in offsets)).hexdigest()
        return {"seconds": seconds, "latencies": latencies, "digest": digest}
    finally:
        os.close(descriptor)


def several(directory, parts, piece=128 << 10):
    """Readers at once, each with an open file of its own, each reading [name, offset, length] in
    order."""
    failed = []

    def reader(name, offset, length):
        def work():
            try:
                descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
                try:
                    buffer, end = bytearray(piece), offset + length
                    position = offset
                    while position < end:
                        view = memoryview(buffer)[:min(piece, end - position)]
                        count = os.preadv(descriptor, [view], position)
                        if not count:
                            raise OSError("a short file")
                        position += count
                finally:
                    os.close(descriptor)
            except OSError as error:
                failed.append(f"{name}: {error}")
        return work

    start = time.monotonic()
    _all_at_once(reader(*part) for part in parts)
    seconds = time.monotonic() - start
    if failed:
        raise OSError("; ".join(failed))
    return {"seconds": seconds}


def _all_at_once(works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def apart(run, workload, path, **arguments):
    """Lets a process of its own carry out a workload; `run` starts it and gives its output."""
    with open(__file__) as text:
        program = text.read()
    output = run(INTERPRETER, "-I", "-c", program, workload.__name__, path,
                 input=json.dumps(arguments))
    return json.loads(output)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2], **json.load(sys.stdin))))
