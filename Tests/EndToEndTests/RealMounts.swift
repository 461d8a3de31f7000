import Testing

/// All tests that mount: one at a time in a process, since they count requests and share the kernel's
/// mount table, and each within a limit, though no single wait of the harness is unbounded.
///
/// `scripts/run_tests` runs several processes side by side, each in its own mount namespace.
@Suite(.serialized, .timeLimit(.minutes(DurabilityScale.minutes)))
enum RealMounts {}
