"""Self-check of the promises: they reject forbidden events and accept permitted ones."""

from .combinations import MOUNT
from .disk import SyncLog
from .promises import (AFTERWARDS, EXPLAINED, LUCKY, MOMENT, MOST_AT_A_MOMENT, MOST_EXPLAINED,
                       promises_of, violations)


def event(code, what, name, at, took=0.0, opened=0.0, failed_next=False):
    return {"kind": "made up", "code": code, "what": what, "name": name, "opened": opened,
            "began": at - took, "ended": at, "words": code, "failed_next": failed_next}


def promises(name):
    """The promises of a condition that held from 10 to 15 s, with `p.bin` complete before it."""
    condition = MOUNT.conditions[name]({"pause/resume"})
    condition.began, condition.ended = 10.0, 15.0
    if condition.spares_complete:
        condition.complete = frozenset({"p.bin"})
    if name == "daemon killed":
        condition.killed, condition.mounted = 10.4, 11.5
    return promises_of([condition])


def short(count, took, gap=0.0):
    return [event("SHORT", "read", "big.bin", 13 + gap * index, took) for index in range(count)]


# A condition, events while it holds, and whether the judge must report them.
CASES = [
    *((name, [event(code, what, file, 13, 3)], is_wrong)
      for name, code in (("server stalled", "ETIMEDOUT"), ("server restarting", "EIO"), ("rate limit", "ETIMEDOUT"))
      for what, file, is_wrong in (("read", "big.bin", False), ("read", "p.bin", True), ("open", "p.bin", True))),
    ("server stalled", [event("SIGBUS", "access", "p.bin", 13)], True),
    ("server stalled", [event("EIO", "read", "big.bin", 15 + AFTERWARDS + 1)], True),
    ("daemon killed", [event("ENOTCONN", "read", "p.bin", 70, opened=10)], False),
    ("daemon killed", [event("ENOTCONN", "read", "p.bin", 70, opened=20)], True),
    ("daemon killed", [event("SIGBUS", "access", "p.bin", 70, opened=20)], True),
    ("daemon killed", [event("ENOTCONN", "open", "p.bin", 70, opened=70)], True),
    ("server stalled", short(LUCKY, 0.6, 2 * MOMENT), False),
    ("server stalled", short(LUCKY + 1, 0.6, 2 * MOMENT), True),
    ("server stalled", short(MOST_AT_A_MOMENT, 0.6), False),
    ("server stalled", short(MOST_AT_A_MOMENT + 1, 0.6), True),
    ("server stalled", short(MOST_EXPLAINED, EXPLAINED), False),
    ("server stalled", short(MOST_EXPLAINED + 1, EXPLAINED), True),
]

# Syncs of an entry's files, each with whether it failed, and whether its record is lost after them.
SYNC_CASES = [
    ([("record", True)], True),
    ([("record-1", True)], True),
    ([("data-1", True)], False),
    # The kernel has already reported the lost page once.
    ([("record-1", True), ("record-1", False)], True),
    ([("record-1", True), ("record-2", True)], True),
    ([("record-1", True), ("record-2", False)], False),
    ([("record", True), ("data-1", False)], True),
]


def sync_faults():
    """The cases of which `SyncLog` says the wrong thing, in words."""
    for syncs, is_lost in SYNC_CASES:
        log = SyncLog()
        for name, has_failed in syncs:
            log.note(f"entry/{name}", has_failed)
        if (log.lost_records == {"entry"}) != is_lost:
            yield f"{syncs}: the record must {'' if is_lost else 'not '}count as lost"


def faults():
    """The cases of which the judge says the wrong thing, in words."""
    for name, events, is_wrong in CASES:
        if bool(violations(events, promises(name))) != is_wrong:
            first = events[0]
            yield (f"{name}: {len(events)} x {first['code']} of {first['what']} of {first['name']}, opened at "
                   f"{first['opened']:.0f}, at {first['ended']:.0f}: must {'not ' if is_wrong else ''}be allowed")
