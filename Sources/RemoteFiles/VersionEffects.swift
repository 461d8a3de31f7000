/// What a version does once its lock is released: a decision, with the objects that it names.
struct VersionEffects {
  let actions: VersionActions
  /// Reads whose bytes are at hand.
  var woken: [WokenRead] = []
  /// Reads whose bytes have come, and must be verified first or are gone again.
  var unready: [UnansweredRead] = []
  var failed: [(reply: any ReadReply, error: FileError)] = []
  /// Each has a writer hand over what a read waits for.
  var flushes: [VersionHoldings.Flush] = []
}
