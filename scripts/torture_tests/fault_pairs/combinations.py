"""The pairs of the table, and the reasons for impossible ones."""

import itertools

from .conditions import (CacheFailing, CacheFull, DaemonKilled, DiskFrozen, Eviction, ListReloaded,
                         PassthroughOpen, PauseResume, RateLimit, SpillInUse, SyncFailing)
from .promises import Promise
from .server_conditions import (LengthLearnedLate, LengthUnknown, MirrorLying, ServerRestarting,
                                ServerStalled, SignedURLExpired, VersionChanged)


class Combinations:
    """Conditions, the pairs of them that cannot hold at once, each with its reason, and a sample of the others.

    The words are those of the report: what is compared, what else may come of it, and by when.
    """

    def __init__(self, conditions, impossible, sample, *, what, told, deadline, dead):
        self.conditions = {condition.name: condition for condition in conditions}
        self.impossible, self.sample = impossible, sample
        self.what, self.told, self.deadline, self.dead = what, told, deadline, dead

    @property
    def pairs(self):
        return [pair for pair in itertools.combinations(self.conditions, 2)
                if frozenset(pair) not in self.impossible]

    def pair_named(self, text):
        """The pair that a text such as "cache full,disk frozen" or "cache-full,disk-frozen" names."""
        plain = {name.replace(" ", "-").replace("/", "-").lower(): name for name in self.conditions}
        words = [word.strip().replace(" ", "-").replace("/", "-").lower() for word in text.split(",")]
        if len(words) != 2 or words[0] == words[1] or not set(words) <= set(plain):
            raise ValueError(f"no pair of conditions: '{text}'; the conditions are {', '.join(plain)}")
        order = list(self.conditions)
        pair = tuple(sorted((plain[word] for word in words), key=order.index))
        if frozenset(pair) in self.impossible:
            raise ValueError(f"'{text}' cannot hold at once: {self.impossible[frozenset(pair)]}")
        return pair


MOUNT = Combinations([
    CacheFull, CacheFailing, SyncFailing, SpillInUse, Eviction, PassthroughOpen, LengthUnknown,
    LengthLearnedLate, VersionChanged, MirrorLying, SignedURLExpired, ServerStalled,
    ServerRestarting, DaemonKilled, DiskFrozen, ListReloaded, RateLimit, PauseResume], {}, [
    # Each condition at least once, beginning with those that have found the most.
    ("spill in use", "passthrough open"), ("fsync failing", "passthrough open"),
    ("cache full", "server stalled"), ("length learned late", "signed URL expired"),
    ("eviction under way", "version changed"), ("mirror lying", "server restarting"),
    ("daemon killed", "list reloaded"), ("disk frozen", "cache failing"),
    ("length unknown", "pause/resume"), ("rate limit", "version changed"),
], what="reads", told="readers were told", deadline="the deadline + 5 s", dead="daemons dead")

# The errors that a pair promises readers beyond its conditions, from docs/SEMANTICS.md.
FURTHER = {
    # "Where the kernel reads the cache file itself, a read gets the disk's EIO".
    frozenset({"passthrough open", "fsync failing"}): {"EIO"},
}


def further_promises(pair, conditions):
    """What a pair promises beyond its conditions, from the moment when both have begun."""
    begun = [condition.began for condition in conditions if condition.began is not None]
    return [Promise(codes, begin=max(begun)) for some, codes in FURTHER.items()
            if some <= set(pair) and len(begun) == len(conditions)]
