"""The permitted reads: bytes of one version per handle, none short, each by its deadline."""

import collections
import errno
import time

# A longer call has waited for a server or for other processes: it may have cost requests.
SLOW = 0.002
# The maximum number of violations of a kind that are described in words.
MOST_WORDS = 4


class Handle:
    """An open file: the versions that all its bytes so far could be of."""

    def __init__(self, name, contents, shown=None):
        self.name = name
        # For a file without a length, the size at the open: later bytes may arrive in pieces
        # (docs/SEMANTICS.md, "Servers without ranges, bodies without length").
        self.shown = shown
        self.contents = contents
        self.candidates = set(contents)
        # The time at which its open began.
        self.opened = None

    def is_short(self, piece, offset, wanted):
        """Whether a piece that was judged ends before what was wanted, and before the end of its version.

        Where it may be the end of one version, the handle is of that one.
        """
        if len(piece) >= wanted or not piece:
            return False
        ended = {version for version in self.candidates
                 if offset + len(piece) == len(self.contents[version])}
        if ended:
            self.candidates = ended
        is_stream = self.shown is not None and offset + len(piece) >= self.shown
        return not ended and not is_stream

    def fault_of(self, piece, offset, wanted):
        """What is wrong with a piece read at an offset, but for its length; None where nothing is."""
        before = self.candidates
        self.candidates = {
            version for version in before
            if (self.contents[version].startswith(piece, offset) if piece
                else offset >= len(self.contents[version]))}
        if self.candidates:
            return None
        what = f"{self.name} at {offset}: {len(piece)} of {wanted} bytes"
        if not piece:
            return f"{what}: the end of the file, which is {self.lengths(before)}"
        whole = [version for version, content in self.contents.items()
                 if content.startswith(piece, offset)]
        if whole:
            return f"{what} of version {whole}, in a handle of {sorted(before)}"
        best = max(self.contents, key=lambda version: agreeing(self.contents[version], piece, offset))
        start = agreeing(self.contents[best], piece, offset)
        right = self.contents[best][offset:offset + len(piece)]
        wrong = [index for index, (mine, its) in enumerate(zip(piece, right)) if mine != its]
        zeros = sum(piece[index] == 0 for index in wrong)
        last = wrong[-1] if wrong else len(piece) - 1
        return (f"{what}: from {offset + start} to {offset + last} {len(wrong)} bytes are not those of "
                f"version {best}, {zeros} of them zeros: {piece[start:start + 16].hex()}")

    def lengths(self, versions):
        return " or ".join(str(len(self.contents[version])) for version in sorted(versions))


def agreeing(content, piece, offset):
    """How many bytes of a piece agree with a content before the first that does not."""
    low, high = 0, len(piece)
    while low < high:
        middle = (low + high + 1) // 2
        if content.startswith(piece[:middle], offset):
            low = middle
        else:
            high = middle - 1
    return low


class Judge:
    """Counts of a reader and what broke a promise, as plain values."""

    def __init__(self, kind, deadline):
        self.kind, self.deadline = kind, deadline
        self.reads = self.byte_count = self.wrong = self.late = 0
        # The failures and their times: whether they were promised is known only at the end
        # (`promises`).
        self.events = []
        self.slowest = 0.0
        self.errors = collections.Counter()
        self.opens = collections.Counter()
        self.calls = collections.Counter()
        self.slow = collections.Counter()
        self.versions = set()
        # The time at which the open of the current handle began.
        self.opened = None
        self.words = collections.defaultdict(list)

    def timed(self, what, name, call, *arguments):
        """Makes a call, and notes how long it took and how it failed, which it raises again."""
        began = time.monotonic()
        if what == "open":
            self.opened = began
        try:
            return call(*arguments)
        except OSError as error:
            self.note_error(error.errno, what, name, began)
            raise
        finally:
            self.note_time(what, name, time.monotonic() - began)

    def note_time(self, what, name, seconds):
        self.slowest = max(self.slowest, seconds)
        if what == "open":
            self.opens[name] += 1
        else:
            self.calls[name] += 1
            if seconds > SLOW:
                self.slow[name] += 1
        if seconds > self.deadline:
            self.late += 1
            self.say("late", f"{what} of {name} took {seconds:.1f} s")

    def note_error(self, number, what, name, began):
        code = errno.errorcode.get(number, str(number))
        self.errors[code] += 1
        self.note_event(code, what, name, began, time.monotonic(), code)

    def note_event(self, code, what, name, began, ended, words, failed_next=False):
        self.events.append({"kind": self.kind, "code": code, "what": what, "name": name,
                            "opened": self.opened, "began": began, "ended": ended, "words": words,
                            "failed_next": failed_next})

    def read(self, handle, piece, offset, wanted, began, look_on):
        """Judges a piece that was asked for at `began`; false where it is wrong.

        Where it is short, `look_on` reads at a place behind it, or fails as that read does.
        """
        ended = time.monotonic()
        self.reads += 1
        self.byte_count += len(piece)
        fault = handle.fault_of(piece, offset, wanted)
        if fault is None:
            if len(handle.candidates) == 1:
                self.versions |= {(handle.name, version) for version in handle.candidates}
            if handle.is_short(piece, offset, wanted):
                failed_next = False
                try:
                    self.timed("read", handle.name, look_on, offset + len(piece))
                except OSError:
                    failed_next = True
                self.note_event("SHORT", "read", handle.name, began, ended,
                                f"at {offset} only {len(piece)} of {wanted} bytes", failed_next)
            return True
        self.wrong += 1
        self.say("wrong", fault)
        return False

    def say(self, kind, text):
        if len(self.words[kind]) < MOST_WORDS:
            self.words[kind].append(f"{self.kind}: {text} (at {time.monotonic():.2f})")

    def result(self):
        return {
            "kind": self.kind, "reads": self.reads, "bytes": self.byte_count, "wrong": self.wrong,
            "late": self.late, "events": self.events, "slowest": self.slowest,
            "errors": self.errors, "opens": self.opens, "calls": self.calls, "slow": self.slow,
            "versions": sorted(self.versions), "words": self.words,
        }
