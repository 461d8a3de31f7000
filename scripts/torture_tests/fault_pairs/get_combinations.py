"""The pairs of conditions of a download, and the reasons for impossible ones."""

from .combinations import Combinations
from .get_conditions import (Compressed, DiskFailing, DiskFull, DiskSyncFailing, DownloadKilled, ExpiredURL,
                             Frozen, Hedging, LateLength, LimitedRate, LyingMirror, NewVersion, NoLength,
                             Restarting, Stalled, WrongPieces)

LIST_NAMES_LENGTH = "a list with hashes of pieces names the length, too"
ONE_STREAM = "one stream has one connection, and nothing to hedge"

IMPOSSIBLE = {
    frozenset({"length unknown", "length learned late"}): "a file without a length cannot learn it",
    frozenset({"length unknown", "hedging"}): ONE_STREAM,
    frozenset({"compressed", "hedging"}): ONE_STREAM,
    frozenset({"length unknown", "wrong pieces"}): LIST_NAMES_LENGTH,
    frozenset({"length learned late", "wrong pieces"}): LIST_NAMES_LENGTH,
    frozenset({"length learned late", "compressed"}): "a coded body never tells the length of the file",
    frozenset({"wrong pieces", "compressed"}): "what is stored decoded is not compared with pieces",
    frozenset({"version changed", "wrong pieces"}): "the hashes of a list are of one version",
}

GET = Combinations(
    [DiskFull, DiskFailing, DiskSyncFailing, Frozen, NoLength, LateLength, NewVersion, LyingMirror,
     ExpiredURL, Stalled, Restarting, DownloadKilled, LimitedRate, Hedging, WrongPieces, Compressed],
    IMPOSSIBLE,
    # Each condition at least once.
    [("disk full", "download killed"), ("disk failing", "server stalled"), ("mirror lying", "download killed"),
     ("fsync failing", "version changed"), ("disk frozen", "server restarting"),
     ("length unknown", "rate limit"), ("length learned late", "signed URL expired"),
     ("mirror lying", "wrong pieces"), ("hedging", "download killed"), ("server restarting", "compressed")],
    what="downloads", told="exit codes besides 0", deadline="the deadline", dead="processes dead by a signal")
