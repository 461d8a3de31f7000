"""The pairs of the table, and why some cannot be."""

import itertools

from .conditions import (CacheFailing, CacheFull, DaemonKilled, DiskFrozen, Eviction, ListReloaded,
                         PassthroughOpen, PauseResume, RateLimit, SpillInUse, SyncFailing)
from .promises import Promise
from .server_conditions import (LengthLearnedLate, LengthUnknown, MirrorLying, ServerRestarting,
                                ServerStalled, SignedURLExpired, VersionChanged)

TABLE = {condition.name: condition for condition in (
    CacheFull, CacheFailing, SyncFailing, SpillInUse, Eviction, PassthroughOpen, LengthUnknown,
    LengthLearnedLate, VersionChanged, MirrorLying, SignedURLExpired, ServerStalled,
    ServerRestarting, DaemonKilled, DiskFrozen, ListReloaded, RateLimit, PauseResume)}

# Pairs that cannot hold at once, with the reason.
IMPOSSIBLE = {}

# What a pair promises readers beyond its conditions, with the reason in docs/SEMANTICS.md.
FURTHER = {
    # "Where the kernel reads the cache file itself, a read gets the disk's EIO".
    frozenset({"passthrough open", "fsync failing"}): {"EIO"},
}

PAIRS = list(itertools.combinations(TABLE, 2))

# What scripts/test runs: each condition at least once, those first that have found most.
SAMPLE = [
    ("spill in use", "passthrough open"), ("fsync failing", "passthrough open"),
    ("cache full", "server stalled"), ("length learned late", "signed URL expired"),
    ("eviction under way", "version changed"), ("mirror lying", "server restarting"),
    ("daemon killed", "list reloaded"), ("disk frozen", "cache failing"),
    ("length unknown", "pause/resume"), ("rate limit", "version changed"),
]


def further_promises(pair, conditions):
    """What a pair promises beyond its conditions, from the moment when both have begun."""
    begun = [condition.began for condition in conditions if condition.began is not None]
    return [Promise(codes, begin=max(begun)) for some, codes in FURTHER.items()
            if some <= set(pair) and len(begun) == len(conditions)]


def pair_named(text):
    """The pair that a text such as "cache full,disk frozen" or "cache-full,disk-frozen" names."""
    plain = {name.replace(" ", "-").replace("/", "-").lower(): name for name in TABLE}
    words = [word.strip().replace(" ", "-").replace("/", "-").lower() for word in text.split(",")]
    if len(words) != 2 or words[0] == words[1] or not set(words) <= set(plain):
        raise ValueError(f"no pair of conditions: '{text}'; the conditions are {', '.join(plain)}")
    order = list(TABLE)
    return tuple(sorted((plain[word] for word in words), key=order.index))
