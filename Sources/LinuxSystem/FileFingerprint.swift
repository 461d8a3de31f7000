/// The fields of a file's inode that every change of the file changes, at one moment.
///
/// If two stamps are equal, the file was not written, truncated or exchanged between them, and its
/// file system stayed mounted: each change sets the change time to the kernel's clock, and no
/// program can set the change time of one file back. Two kinds of changes do not show: those below
/// the file system and, before Linux 6.13, those within one tick of that clock (up to 10 ms).
package struct FileFingerprint: Hashable, Sendable {
  /// The mount through which the file was opened.
  ///
  /// Linux does not reuse the number before the next start.
  package var mount: UInt64
  package var device: UInt64
  package var inode: UInt64
  package var byteCount: Int64
  /// The times of the last write and of the last change of any kind, since 1970.
  package var modified: Duration
  package var changed: Duration

  package init(
    mount: UInt64, device: UInt64, inode: UInt64, byteCount: Int64, modified: Duration,
    changed: Duration
  ) {
    self.mount = mount
    self.device = device
    self.inode = inode
    self.byteCount = byteCount
    self.modified = modified
    self.changed = changed
  }

  // MARK: Applicability

  /// Whether every later change is certain to give the file a different stamp.
  package enum Settling: Equatable, Sendable {
    case settled
    /// Not yet, but after this time: the last change may be in the current tick of the clock.
    case after(Duration)
    /// The last change lies in the future: the clock was set back and may reach that moment again.
    case never
  }

  /// See ``Settling``; `now` is the time of day since 1970.
  package func settling(at now: Duration) -> Settling {
    let age = now - changed
    // A file system without fractions of a second may round times to even seconds.
    let needed: Duration =
      changed.components.attoseconds == 0 ? Self.coarseSettlement : Self.settlement
    if age >= needed { return .settled }
    return age + Self.settlement < .zero ? .never : .after(needed - age)
  }

  /// Several ticks of the clock that stamps files; a tick takes 1 to 10 ms.
  private static let settlement = Duration.milliseconds(50)
  private static let coarseSettlement = Duration.seconds(3)
}
