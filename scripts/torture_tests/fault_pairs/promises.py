"""The errors that readers may get, by file and time, and those that may shorten a read."""

import math

from .world import READ_TIMEOUT

# The seconds after the end of a condition in which a read from before may still fail.
AFTERWARDS = READ_TIMEOUT + 2
# Errors of names, which no read of an open file gets: they neither shorten reads nor kill mappings.
OF_NAMES = frozenset({"ENOENT"})
# A short read of this duration has met the deadline, which the next read does not meet.
EXPLAINED = 0.8 * READ_TIMEOUT
# The maximum numbers of such short reads in a run: one per reader for the deadline, and some for
# errors that were over at once. One such error, such as that of a version that is superseded while
# its last bytes wait to be stored, meets all who wait for the file at that moment.
MOST_EXPLAINED, LUCKY = 8, 2
MOMENT, MOST_AT_A_MOMENT = 0.5, 8


class Promise:
    """Some errors, of some files (None: of all) but for others, of some calls, for a time, to handles
    whose open began by a moment."""

    def __init__(self, codes, names=None, begin=-math.inf, end=math.inf, calls=None, but=frozenset(),
                 opened_by=math.inf):
        self.codes, self.names, self.calls, self.but = frozenset(codes), names, calls, but
        self.begin, self.end, self.opened_by = begin, end, opened_by

    def fits(self, event):
        """Whether a call that failed may be told so."""
        codes = self.codes - OF_NAMES
        is_named = (event["code"] in self.codes if event["code"] not in ("SIGBUS", "SHORT")
                    else bool(codes))
        return (is_named and (self.names is None or event["name"] in self.names)
                and event["name"] not in self.but
                and (self.calls is None or event["what"] in self.calls)
                and event["opened"] <= self.opened_by
                and event["ended"] >= self.begin and event["began"] <= self.end)


def promises_of(conditions):
    """What each condition promises: what it has begun itself, for its time and a read's deadline."""
    found = []
    for condition in conditions:
        found += condition.promises()
    return found


def is_lucky(event, moments):
    """Whether a short read may be due to an error that was over at once; adds it to the moments."""
    for moment in moments:
        if moment[0]["name"] == event["name"] and event["ended"] - moment[0]["ended"] <= MOMENT:
            moment.append(event)
            return len(moment) <= MOST_AT_A_MOMENT
    moments.append([event])
    return len(moments) <= LUCKY


def violations(events, promises):
    """The events that nothing promises, as pairs of a kind and words."""
    told, explained, moments = [], 0, []
    for event in sorted(events, key=lambda event: event["ended"]):
        seconds = event["ended"] - event["began"]
        if not any(promise.fits(event) for promise in promises):
            kind = "short" if event["code"] == "SHORT" else "unpromised"
        elif event["code"] == "SHORT" and not event["failed_next"]:
            if seconds >= EXPLAINED:
                explained += 1
                is_explained = explained <= MOST_EXPLAINED
            else:
                is_explained = is_lucky(event, moments)
            if is_explained:
                continue
            kind = "short"
        else:
            continue
        told.append((kind, f"{event['kind']}: {event['what']} of {event['name']}: {event['words']} "
                           f"after {seconds:.1f} s (at {event['ended']:.2f})"))
    return told
