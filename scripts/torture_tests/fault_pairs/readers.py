"""Programs that read in different ways while a pair of conditions holds.

Each is a separate process, so one that hangs in a page fault delays no other.
"""

import errno
import json
import mmap
import os
import random
import select
import signal
import time
import traceback

from .judge import Handle, Judge

KIB = 1 << 10
# The pause between two reads, so several readers leave the processor to the daemon.
PAUSE = 0.004
# The pause after an error: a failed read fails again at once.
REST = 0.05


class Reader:
    """What the kinds have in common: choosing a file, opening it, reading and judging a piece."""

    # The function that reads, which the self-check replaces.
    pread = staticmethod(os.pread)

    def __init__(self, world, number, kind, deadline):
        self.mountpoint = world.daemon.mountpoint
        self.contents = world.contents
        self.weights = world.weights
        self.random = random.Random(world.seed * 100 + number)
        self.judge = Judge(kind, deadline)
        self.without_length = world.without_length
        self.end = f"{world.work}/over"
        self.signal = world.rereads
        self.descriptor = None

    @property
    def is_over(self):
        return os.path.exists(self.end)

    def choose(self):
        names = list(self.weights)
        return self.random.choices(names, [self.weights[name] for name in names])[0]

    def run(self):
        """Reads until it is over; what fails as promised is met with a short rest."""
        while not self.is_over:
            try:
                self.read_a_file(self.choose())
            except OSError:
                time.sleep(REST)
            finally:
                self.close()

    def open(self, name, flags=os.O_RDONLY):
        self.descriptor = self.judge.timed("open", name, os.open, f"{self.mountpoint}/{name}", flags)
        shown = None
        if name in self.without_length:
            shown = self.judge.timed("look", name, os.fstat, self.descriptor).st_size
        handle = Handle(name, self.contents[name], shown)
        handle.opened = self.judge.opened
        return handle

    def close(self):
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def piece(self, handle, offset, count):
        """Reads a piece; false where it is wrong or the reader is to end."""
        began = time.monotonic()
        piece = self.judge.timed("read", handle.name, self.pread, self.descriptor, count, offset)
        is_right = self.judge.read(handle, piece, offset, count, began,
                                   lambda place: os.pread(self.descriptor, 1, place))
        time.sleep(PAUSE)
        return piece if is_right and not self.is_over else None

    def direct_piece(self, handle, buffer, offset):
        """Reads a piece by O_DIRECT; its length, or None where it is wrong."""

        def look_on(place):
            os.preadv(self.descriptor, [memoryview(buffer)[:4096]], place // 4096 * 4096)

        began = time.monotonic()
        count = self.judge.timed("read", handle.name, os.preadv, self.descriptor, [buffer], offset)
        piece = buffer[:count]
        return count if self.judge.read(handle, piece, offset, len(buffer), began, look_on) else None

    def forget(self):
        """Lets the kernel forget the pages of the open file."""
        os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def length(self, name):
        return max(len(content) for content in self.contents[name].values())


class Buffered(Reader):
    """Random places, some in order, through the page cache, which it lets forget them."""

    def read_a_file(self, name):
        handle = self.open(name)
        self.forget()
        offset = self.random.randrange(self.length(name))
        is_sequential = self.random.random() < 0.5
        for _ in range(self.random.randrange(4, 24)):
            piece = self.piece(handle, offset, self.random.choice((1, 4096, 65_536, 131_072)))
            if piece is None:
                return
            offset = (offset + len(piece)) if is_sequential else self.random.randrange(self.length(name))
            if not piece:
                offset = 0


class Direct(Reader):
    """O_DIRECT: every read is the daemon's, or the disk's."""

    def read_a_file(self, name):
        handle = self.open(name, os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, 256 * KIB)
        offset = self.random.randrange(self.length(name)) // 4096 * 4096
        for _ in range(self.random.randrange(4, 24)):
            count = self.direct_piece(handle, buffer, offset)
            time.sleep(PAUSE)
            if count is None or self.is_over:
                return
            offset = offset + count if count % 4096 == 0 and count else 0


class TailFirst(Reader):
    """The last bytes, then the whole from its start, as programs read archives."""

    def read_a_file(self, name):
        handle = self.open(name)
        self.forget()
        if self.piece(handle, max(self.length(name) - 64 * KIB, 0), 64 * KIB) is None:
            return
        offset = 0
        while piece := self.piece(handle, offset, 128 * KIB):
            offset += len(piece)


class Backward(Reader):
    """From the end to the start."""

    def read_a_file(self, name):
        handle = self.open(name)
        self.forget()
        offset = self.length(name)
        while offset > 0:
            offset = max(offset - 64 * KIB, 0)
            if self.piece(handle, offset, 64 * KIB) is None:
                return


class Whole(Reader):
    """In order to the end, which must be that of the file."""

    def read_a_file(self, name):
        handle = self.open(name)
        offset = 0
        while piece := self.piece(handle, offset, 128 * KIB):
            offset += len(piece)


class Holder(Reader):
    """Handles that stay open to the end: a file from before, and some that have just been fetched."""

    def run(self):
        held = []
        try:
            while not self.is_over:
                if len(held) < 4:
                    self.hold(held)
                for descriptor, handle in held:
                    self.read_again(descriptor, handle)
                time.sleep(REST)
        finally:
            for descriptor, _ in held:
                os.close(descriptor)

    def hold(self, held):
        name = "p.bin" if not held else self.choose()
        try:
            handle = self.open(name)
            offset = 0
            while piece := self.piece(handle, offset, 128 * KIB):
                offset += len(piece)
            if not handle.candidates:
                return
            # The second open finds a complete file, whether or not it is already on the disk.
            self.close()
            handle = self.open(name)
            held.append((self.descriptor, handle))
            self.descriptor = None
        except OSError:
            time.sleep(REST)
        finally:
            self.close()

    def read_again(self, descriptor, handle):
        self.descriptor, self.judge.opened = descriptor, handle.opened
        try:
            self.forget()
            for _ in range(4):
                offset = self.random.randrange(self.length(handle.name)) // 4096 * 4096
                if self.piece(handle, offset, 64 * KIB) is None:
                    # The error was reported: it is not counted again for each read.
                    handle.candidates = set(handle.contents)
                    return
        except OSError:
            pass
        finally:
            self.descriptor = None


class Mapped(Reader):
    """Maps files in a process of its own each, which a failing page ends with SIGBUS."""

    def run(self):
        while not self.is_over:
            name = self.choose()
            output, input = os.pipe()
            self.judge.opened = time.monotonic()
            child = os.fork()
            if child == 0:
                os.close(output)
                self.map(name, input)
                os._exit(0)
            os.close(input)
            self.follow(name, output, child)

    def map(self, name, pipe):
        """Says each access before it and after it, since one that fails ends the process."""

        def say(**words):
            os.write(pipe, json.dumps(words).encode() + b"\n")

        try:
            began = time.monotonic()
            descriptor = os.open(f"{self.mountpoint}/{name}", os.O_RDONLY)
            say(opened=time.monotonic() - began)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            length = os.fstat(descriptor).st_size
            say(length=length)
            if length == 0:
                return
            area = mmap.mmap(descriptor, length, mmap.MAP_SHARED, mmap.PROT_READ)
            handle = Handle(name, self.contents[name])
            for _ in range(12):
                offset = self.random.randrange(length) // 4096 * 4096
                count = min(self.random.choice((4096, 65_536)), length - offset)
                say(begin=time.monotonic())
                piece = area[offset:offset + count]
                say(took=time.monotonic(), fault=handle.fault_of(piece, offset, count), count=count)
                time.sleep(PAUSE)
        except OSError as error:
            say(errno=error.errno)

    def follow(self, name, pipe, child):
        began = time.monotonic()
        last = "open"
        with os.fdopen(pipe) as lines:
            for line in lines:
                words = json.loads(line)
                if "opened" in words:
                    self.judge.note_time("open", name, words["opened"])
                elif "begin" in words:
                    began, last = words["begin"], "access"
                elif "took" in words:
                    self.judge.note_time("access", name, words["took"] - began)
                    self.judge.reads += 1
                    self.judge.byte_count += words["count"]
                    if words["fault"]:
                        self.judge.wrong += 1
                        self.judge.say("wrong", words["fault"])
                elif "length" in words:
                    self.judge_length(name, words["length"])
                elif "errno" in words and words["errno"] != errno.ENODEV:
                    # Files with direct I/O cannot be mapped.
                    self.judge.note_error(words["errno"], last, name, began)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            seconds = time.monotonic() - began
            self.judge.note_time("access", name, seconds)
            if os.WTERMSIG(status) == signal.SIGBUS:
                self.judge.errors["SIGBUS"] += 1
                self.judge.note_event("SIGBUS", "access", name, began, began + seconds, "SIGBUS")
            else:
                self.judge.say("unpromised", f"a reader ended with signal {os.WTERMSIG(status)}")
        time.sleep(REST)

    def judge_length(self, name, length):
        """fstat is the handle's version; of one without length it is whole pages of its start."""
        lengths = {len(content) for content in self.contents[name].values()}
        is_start = (name in self.without_length and length % 4096 == 0 and length < max(lengths))
        if length not in lengths and not is_start:
            self.judge.wrong += 1
            self.judge.say("wrong", f"{name} has the length {length}, not one of {sorted(lengths)}")


class Rereader(Reader):
    """The head of a file that nobody else has open, again and again, by O_DIRECT."""

    def run(self):
        # The bytes that it reads must not be in the cache before.
        while not os.path.exists(self.signal) and not self.is_over:
            time.sleep(REST)
        buffer = mmap.mmap(-1, 80 * KIB)
        while not self.is_over:
            try:
                handle = self.open("r.bin", os.O_RDONLY | os.O_DIRECT)
                for place in range(5):
                    offset = place * len(buffer)
                    if self.direct_piece(handle, buffer, offset) is None:
                        break
            except OSError:
                time.sleep(REST)
            finally:
                self.close()


KINDS = {
    "buffered": Buffered, "direct": Direct, "mmap": Mapped, "tail first": TailFirst,
    "backward": Backward, "whole": Whole, "holder": Holder,
}


class Crowd:
    """The processes of all readers of a pair."""

    def __init__(self, world, deadline):
        self.world, self.deadline = world, deadline
        kinds = list(KINDS.items()) + ([("rereader", Rereader)] if world.rereads else [])
        self.processes = {}
        for number, (kind, reader) in enumerate(kinds):
            output = f"{world.work}/reader.{number}"
            process = os.fork()
            if process == 0:
                world.forget_held()
                self.read(reader, number, kind, output)
            self.processes[process] = (kind, output)

    def read(self, reader, number, kind, output):
        """The life of a reader's process."""
        status = 0
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            reader = reader(self.world, number, kind, self.deadline)
            reader.run()
            with open(output, "w") as file:
                json.dump(reader.judge.result(), file)
        except BaseException:
            traceback.print_exc()
            status = 1
        os._exit(status)

    def finish(self):
        """Waits for the readers to end; gives their results and who has not ended."""
        with open(f"{self.world.work}/over", "w"):
            pass
        stop = time.monotonic() + self.deadline + 3
        results, hanging = [], []
        waiting = dict(self.processes)
        while waiting and time.monotonic() < stop:
            for process in list(waiting):
                if os.waitpid(process, os.WNOHANG)[0]:
                    kind, output = waiting.pop(process)
                    del self.processes[process]
                    try:
                        with open(output) as file:
                            results.append(json.load(file))
                    except (OSError, ValueError):
                        hanging.append(f"the reader {kind} ended without a result")
            select.select([], [], [], 0.01)
        hanging += [f"the reader {kind} hangs" for kind, _ in waiting.values()]
        self.tear_down()
        return results, hanging

    def tear_down(self):
        for process in self.processes:
            for kill in (os.killpg, os.kill):
                try:
                    kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        deadline = time.monotonic() + 2
        while self.processes and time.monotonic() < deadline:
            for process in list(self.processes):
                if os.waitpid(process, os.WNOHANG)[0]:
                    del self.processes[process]
            time.sleep(0.01)
