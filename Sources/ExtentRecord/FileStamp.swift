/// How a file's inode was at one moment, in what every change of the file changes.
///
/// Two equal stamps say that the file was not written, cut or exchanged between them, and that its
/// file system has been mounted all the time: a change sets the time of change to the kernel's clock,
/// which nobody can set back for one file. What happens below the file system shows in neither, and
/// a change within one tick of that clock (up to 10 ms; before Linux 6.13) may not.
package struct FileStamp: Hashable, Sendable {
  /// The mount that the file was opened through, as no other is called before the next start.
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

  /// The stamp as a record keeps it: XXH3-64 of it and of the boot, under the record's salt; never 0.
  package func digest(bootID: String, salt: UInt64) -> UInt64 {
    var bytes: [UInt8] = []
    for number in [mount, device, inode] { bytes.append(littleEndian: number) }
    bytes.append(littleEndian: byteCount)
    for time in [modified, changed] {
      bytes.append(littleEndian: time.components.seconds)
      bytes.append(littleEndian: time.components.attoseconds)
    }
    bytes.append(contentsOf: bootID.utf8)
    return max(1, bytes.withUnsafeBytes { ContentHash.hash($0, seed: salt) })
  }

  // MARK: When it counts

  /// Whether a change from now on is sure to give the file another stamp.
  package enum Settling: Equatable, Sendable {
    case settled
    /// Not yet: the last change may be of the same tick of the clock. After this time it is.
    case after(Duration)
    /// The last change lies in the future: the clock has been set back, and may come to that moment
    /// again.
    case never
  }

  /// See ``Settling``; `now` is the time of day since 1970.
  package func settling(at now: Duration) -> Settling {
    let age = now - changed
    // A file system that has no fractions of a second may round to even ones.
    let needed: Duration =
      changed.components.attoseconds == 0 ? Self.coarseSettlement : Self.settlement
    if age >= needed { return .settled }
    return age + Self.settlement < .zero ? .never : .after(needed - age)
  }

  /// Some ticks of the clock that files are stamped with: 1 to 10 ms each.
  private static let settlement = Duration.milliseconds(50)
  private static let coarseSettlement = Duration.seconds(3)
}
