import Testing

/// All tests of transfers, each within a limit: a transfer that never ends is a failure.
@Suite(.timeLimit(.minutes(3)))
enum TransferTests {}
