import Testing

/// All tests that mount: one at a time, since they count requests and share the kernel's mount
/// table, and each within a limit, though no single wait of the harness is unbounded.
@Suite(.serialized, .timeLimit(.minutes(DurabilityScale.minutes)))
enum RealMounts {}
