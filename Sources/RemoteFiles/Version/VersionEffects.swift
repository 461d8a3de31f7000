/// The effects of a decision after the lock of a version is released, with the objects involved.
struct VersionEffects {
  let actions: VersionActions
  /// Reads whose bytes are available.
  var woken: [WokenRead] = []
  /// Reads whose bytes have arrived, and must be verified first or are lost again.
  var unready: [UnansweredRead] = []
  var failed: [(reply: any ReadReply, error: FileError)] = []
  /// Each makes a writer hand over bytes that a read waits for.
  var flushes: [VersionHoldings.Flush] = []
}
