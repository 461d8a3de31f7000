import Glibc
import Synchronization

/// Prints the input under test to standard error when the process traps in it.
///
/// A trap ends the process before a test framework can report the seed. A signal handler can report
/// it if it allocates no memory: it writes prepared lines.
struct CrashNote {
  private static let slotCount = 32
  private static let slotByteCount = 128

  /// The lines, with one slot for each running campaign; a slot that begins with 0 is free.
  ///
  /// It is unsafe because a signal handler reads it at any time. Each slot has one writer.
  private nonisolated(unsafe) static let slots = UnsafeMutablePointer<UInt8>.allocate(
    capacity: slotCount * slotByteCount)

  private static let usedSlots = Mutex<Set<Int>>([])

  /// Installs the handler once.
  private static let isInstalled: Bool = {
    slots.initialize(repeating: 0, count: slotCount * slotByteCount)
    for number in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE] {
      signal(number) { number in
        for slot in 0..<CrashNote.slotCount {
          let line = CrashNote.slots + slot * CrashNote.slotByteCount
          if line.pointee != 0 { _ = write(STDERR_FILENO, line, strnlen(line, 127)) }
        }
        // The second time, the signal has its default effect.
        signal(number, SIG_DFL)
        raise(number)
      }
    }
    return true
  }()

  private let slot: Int?
  private let name: String

  /// Takes a slot for the campaign `name`.
  init(_ name: String) {
    _ = Self.isInstalled
    self.name = String(name.prefix(60))
    slot = Self.usedSlots.withLock { used in
      let free = (0..<Self.slotCount).first { !used.contains($0) }
      if let free { used.insert(free) }
      return free
    }
  }

  /// Sets the seed that is tried now.
  func set(seed: UInt64) {
    guard let slot else { return }
    var text = "trapped in \(name), HTTPFS_FUZZ_SEED=\(seed)\n"
    let line = Self.slots + slot * Self.slotByteCount
    text.withUTF8 { text in
      let count = min(text.count, Self.slotByteCount - 1)
      for index in 0..<count { line[index] = text[index] }
      line[count] = 0
    }
  }

  /// Frees the slot.
  func clear() {
    guard let slot else { return }
    Self.slots[slot * Self.slotByteCount] = 0
    Self.usedSlots.withLock { _ = $0.remove(slot) }
  }
}

private func strnlen(_ text: UnsafeMutablePointer<UInt8>, _ limit: Int) -> Int {
  var count = 0
  while count < limit, text[count] != 0 { count += 1 }
  return count
}
