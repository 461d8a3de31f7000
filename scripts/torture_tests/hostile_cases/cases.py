"""Which case a number is, and how a hostile server answers in it."""

import random

from . import bodies, heads, listings, redirects
from .answers import Answer, draw_when, is_hostile_now
from .chance import generator, once_in

# The kinds, in proportion to their frequency.
TABLE = ["head"] * 7 + ["body"] * 7 + ["redirect"] * 4 + ["listing"] * 5 + ["get"] * 5 + ["put"] * 2 \
    + ["list"] * 2 + ["metalink"] * 2 + ["reload"] * 2 + ["cache"] * 3 + ["partial"] * 2 \
    + ["session", "trace", "config", "netrc", "proxy"]
random.Random(14).shuffle(TABLE)
# One case in this many has thousands of names, which takes as long as a hundred other cases.
NAMES_INTERVAL = 1000
KINDS = sorted({*TABLE, "names"})

# The kinds that share a mount, and the number of cases per mount.
SHARED = {"head": 24, "body": 24, "redirect": 24, "listing": 24, "reload": 8, "cache": 16}


def kind_of(number):
    if number % NAMES_INTERVAL == NAMES_INTERVAL - 1:
        return "names"
    return TABLE[number % len(TABLE)]


def host_of(number):
    """Each case has an address of its own, so that none rests because of another."""
    index = number + 1
    return f"127.{16 + (index >> 16) % 100}.{index >> 8 & 255}.{index & 255}"


class Case:
    """A case: the same for the same seed and number."""

    def __init__(self, seed, number):
        self.seed, self.number, self.kind = seed, number, kind_of(number)
        self.host = host_of(number)
        self.chance = chance = generator(seed, number)
        self.what = self.kind
        self.family = self.kind
        self.page = None
        # For a list: the number of its URLs.
        self.url_count = 0
        # For a download from an innocent server: whether there is no obstacle.
        self.must_succeed = False
        if self.kind in ("get", "put"):
            self.family = chance.choice(("head", "head", "body", "body", "redirect"))
        if self.family in ("head", "body", "redirect", "listing"):
            self.length = chance.choice((0, 1, 10, 4096, 5000, 100_000, 3_000_000))
            self.when = draw_when(chance)
            self._draw(chance)

    @property
    def is_served(self):
        """Whether a hostile server belongs to it."""
        return self.family in ("head", "body", "redirect", "listing")

    def _draw(self, chance):
        self.changes = []
        if self.family == "listing":
            self.page, self.what = listings.listing(chance)
            if not once_in(chance, 4):
                self.when = "always"
                return
        else:
            self.what = ""
        table = {"head": heads.HEADS, "body": bodies.BODIES, "redirect": redirects.REDIRECTS,
                 "listing": heads.HEADS + bodies.BODIES}[self.family]
        self.changes = [chance.choice(table)]
        if once_in(chance, 3):
            self.changes.append(chance.choice(heads.HEADS + bodies.BODIES + redirects.REDIRECTS))
        if once_in(chance, 8):
            self.changes.append(heads.damaged_head)
        names = [change.__doc__ for change in self.changes]
        self.what = "; ".join([self.what, *names] if self.what else names) + f" ({self.when})"

    def answer(self, request, count):
        """The answer to the request of that number, from 0."""
        if self.page is None:
            answer = Answer(request, self.number, self.length)
        else:
            answer = Answer(request, self.number, len(self.page), b"text/html; charset=utf-8")
            if request.target.split("?")[0].endswith("/"):
                answer.status = b"HTTP/1.1 200 OK"
                answer.drop(b"content-range")
                answer.set_body(self.page)
        if request.method in ("PUT", "POST"):
            answer.status = b"HTTP/1.1 201 Created"
            answer.drop(b"content-range")
            answer.set_body(b"stored\n")
        if is_hostile_now(self.when, count):
            # A change may differ from request to request, but not from run to run.
            chance = random.Random(f"{self.seed} {self.number} {count % 16}")
            for change in self.changes:
                if change in redirects.REDIRECTS:
                    change(chance, answer, self.number, self.host.encode())
                else:
                    change(chance, answer)
        return answer
