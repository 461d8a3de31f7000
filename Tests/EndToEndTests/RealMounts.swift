import Testing

/// All tests that mount.
///
/// They run one at a time in a process, because they count requests and share the kernel's mount
/// table. Each has a time limit, although every wait of the harness is bounded.
///
/// `scripts/run_tests` runs several processes side by side, each in its own mount namespace.
@Suite(.serialized, .timeLimit(.minutes(DurabilityScale.minutes)))
enum RealMounts {}
