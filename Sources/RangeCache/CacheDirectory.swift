package import ExtentRecord
package import HTTPTransferCore
internal import LinuxSystem

/// A directory of cache entries.
///
/// One process at a time holds it.
///
/// Layout: `lock`; `v1/files/AB/REST/` for each entry, where `ABREST` is its key in hexadecimal;
/// and `v1/pins/ABREST` for each pinned key. Everything that depends on the format is under `v1`.
/// The entries of a later version are beside it and are never touched.
///
/// Every method may be called from any thread. Calls about one key must not overlap, except for
/// ``evict(downTo:decide:)``. At most one entry object of a key records: opening, creating,
/// removing or evicting an entry ends the recording of the earlier object.
package final class CacheDirectory: Sendable {
  /// The path as given, without trailing slashes.
  package var path: String { context.root.path }

  let context: CacheContext
  private let pins: PinnedKeys
  private let notes: CacheNotes
  private let opener: EntryOpener
  private let remover: EntryRemover
  private let checker: EntryChecker

  /// Opens the directory for this process alone; creates it (mode 0700) and its parents if needed.
  ///
  /// A process that becomes a daemon must fork before this call, because the lock names the
  /// process.
  ///
  /// - Parameters:
  ///   - path: the directory.
  ///   - mountpoint: the mount point that it serves, for the errors of other processes.
  /// - Throws: ``CacheError/Code/inUse(pid:mountpoint:)`` if another process, or another object of
  ///   this one, holds it; ``CacheError/Code/unsafeDirectory(_:)`` if it is a symbolic link,
  ///   belongs to another user, or is accessible to others and holds files that are not a cache's.
  package convenience init(path: String, mountpoint: String? = nil) throws(CacheError) {
    try self.init(path: path, mountpoint: mountpoint, bootID: ProcessCalls.bootID())
  }

  /// Like ``init(path:mountpoint:)``, with the given boot identifier.
  init(path: String, mountpoint: String? = nil, bootID: String?) throws(CacheError) {
    let root = try CacheRoot(path: path, mountpoint: mountpoint)
    context = CacheContext(root, bootID: bootID)
    pins = PinnedKeys(root)
    notes = CacheNotes(root)
    opener = EntryOpener(context: context)
    remover = EntryRemover(context: context, pins: pins)
    checker = EntryChecker(context: context, remover: remover)
  }

  /// Removes the directory if nothing was stored in it, as after a mount that failed; nothing else
  /// may be done with it then.
  package func removeIfEmpty() { context.root.removeIfEmpty() }

  // MARK: Entries

  /// Opens the entry of `key` and checks what it holds.
  ///
  /// It writes nothing if the record is sound, so it can read a disk that refuses writes.
  /// ``touch(_:)`` marks the entry as used.
  ///
  /// Extents that a COMMIT covers are trusted. The others are read and hashed first, which may take
  /// time after a crash. Claims that proved false are removed from the record. If a stamp shows
  /// that all bytes were as recorded and that the data file was not changed since, nothing needs
  /// verification.
  ///
  /// - Parameters:
  ///   - key: the key of the entry.
  ///   - uncommitted: how to treat extents that no COMMIT covers.
  /// - Returns: nil if there is no entry, or no usable one: garbage, another key's record, a record
  ///   without its data file. ``createEntry(_:version:source:reference:)`` replaces it.
  /// - Throws: if the file system fails, or if no descriptor is free. The state of the entry is
  ///   then unknown.
  package func openEntry(
    _ key: CacheKey, uncommitted: UncommittedExtents = .verify
  ) throws(CacheError) -> CacheEntry? {
    try opener.open(key, uncommitted: uncommitted)
  }

  /// What the record of an entry says.
  ///
  /// It reads the record only, and writes nothing. But if a crash may have left something to repair
  /// or to confirm, it opens the entry.
  ///
  /// - Returns: nil if there is no usable entry.
  /// - Throws: as ``openEntry(_:uncommitted:)``.
  package func recordedEntry(_ key: CacheKey) throws(CacheError) -> RecordedEntry? {
    if case .found(let files) = try? StoredFiles.open(key, in: context.root.files),
      let recorded = try? RecordedEntry(files),
      !recorded.isWorthConfirming
    {
      return recorded
    }
    return try openEntry(key).map { RecordedEntry($0) }
  }

  /// Whether `key` certainly has no entry; never waits for the disk.
  ///
  /// False if that is not known; see ``lookForEntries(near:)``.
  package func lacksEntry(_ key: CacheKey) -> Bool { context.keys.lacks(key) }

  /// Finds out which keys have entries, for `key` and those in the same group.
  ///
  /// The first call for a group reads its directory.
  package func lookForEntries(near key: CacheKey) { context.keys.readGroup(of: key) }

  /// Creates an empty entry of `key` and replaces an existing one in one step.
  ///
  /// Descriptors of the old data file stay readable; its blocks are freed when they are closed.
  /// This call does not wait for the disk: the names become durable with the first
  /// ``CacheEntry/syncRecord()``. Until then, a loss of power may remove the whole entry.
  ///
  /// - Parameters:
  ///   - key: the key of the entry.
  ///   - version: the version whose bytes it will hold.
  ///   - source: the URL without credentials, for people; cut at 2,048 bytes.
  ///   - reference: the server that described the version, if there are several; see
  ///     ``CacheEntry/reference``.
  /// - Returns: the entry, without any extent.
  /// - Throws: ``CacheError/Code/invalidArgument`` for a version whose fields are longer than a
  ///   header may be (512 KiB); otherwise the error of the file system.
  package func createEntry(
    _ key: CacheKey, version: ContentVersion, source: String, reference: String? = nil
  ) throws(CacheError) -> CacheEntry {
    try opener.create(key, version: version, source: source, reference: reference)
  }

  /// Removes the entry of `key`, if it exists.
  ///
  /// Its open descriptors stay readable.
  ///
  /// - Throws: if the entry cannot be opened, for example because no descriptor is left.
  package func removeEntry(_ key: CacheKey) throws(CacheError) { try remover.remove(key) }

  /// Marks the entry of `key` as used now, for the order of eviction.
  package func touch(_ key: CacheKey) { context.folder(of: key).touch() }

  // MARK: Space

  /// The bytes that all entries occupy on the disk.
  ///
  /// The first call counts them, which takes time with many entries. Later calls return that count,
  /// updated by what is stored and removed. ``evict(downTo:decide:)`` counts again.
  package var allocatedByteCount: Int64 { context.allocated.byteCount }

  /// How many bytes are missing from the space that must stay free for other programs: 1 GiB, or a
  /// twentieth of a small disk; nil if unknown (`fstatvfs(3)`).
  package var shortageByteCount: Int64? {
    FileSystemCalls.space(files).map { space in
      min(Self.reservedByteCount, space.total / 20) - space.available
    }
  }

  private static let reservedByteCount: Int64 = 1 << 30

  private var files: CInt { context.root.files.rawValue }

  /// Removes whole entries, the least recently used ones first, until all entries together occupy
  /// at most `limit` bytes.
  ///
  /// - Parameters:
  ///   - limit: the number of bytes that may stay.
  ///   - decide: called for each entry that is not pinned when its turn comes, because counting all
  ///     entries first takes time. It either leaves the entry, or removes it with the given
  ///     function under a lock that keeps others from opening it. It should leave open entries:
  ///     their blocks would be freed only when they are closed.
  /// - Returns: the number of bytes freed.
  @discardableResult
  package func evict(
    downTo limit: Int64, decide: (CacheKey, _ remove: () -> Void) -> Void
  ) -> Int64 {
    remover.evict(downTo: limit, decide: decide)
  }

  // MARK: Descriptors

  /// How many descriptors the process may have open.
  package var descriptorLimit: Int { ProcessCalls.descriptorLimit }

  /// Whether there are enough free descriptors to keep files open that no program reads: false once
  /// somewhat less than half of them are in use.
  ///
  /// It is cheap and approximate: the lowest free descriptor tells about how many are in use.
  package var hasSpareDescriptors: Bool {
    guard let used = ProcessCalls.lowestFreeDescriptor(files) else { return false }
    return used < ProcessCalls.descriptorLimit / 2 - 8
  }

  /// Whether there are enough free descriptors to open an entry, write to it and close it.
  package var hasBorrowableDescriptors: Bool {
    guard let used = ProcessCalls.lowestFreeDescriptor(files) else { return false }
    return used < ProcessCalls.descriptorLimit - 16
  }

  // MARK: Pins

  /// The keys that eviction leaves, whatever the size limit and however full the disk; from memory.
  package var pinnedKeys: Set<CacheKey> { pins.all }

  package func isPinned(_ key: CacheKey) -> Bool { pins.contains(key) }

  /// Pins or unpins a key in this process; ``storePin(_:of:)`` makes that durable.
  package func setPinned(_ isPinned: Bool, _ key: CacheKey) { pins.set(isPinned, key) }

  /// Stores on the disk whether `key` is pinned, for later mounts; waits for the disk.
  ///
  /// Calls about one key must not overlap.
  ///
  /// - Throws: the error of the file system; only this process then knows of the change.
  package func storePin(_ isPinned: Bool, of key: CacheKey) throws(CacheError) {
    try pins.store(isPinned, key)
  }

  // MARK: Notes

  /// The note with the origins and what this mount learned about them.
  package static let hostsName = "hosts"

  /// The text of the note `name`, a small file beside the entries that makes the next mount faster;
  /// nil if there is none, or if it cannot be read.
  package func note(_ name: String) -> String? { notes.text(of: name) }

  /// Replaces the note `name`.
  ///
  /// - Throws: the error of the file system; the note is then unchanged.
  package func storeNote(_ text: String, _ name: String) throws(CacheError) {
    try notes.store(text, name)
  }

  /// Deletes the note `name`.
  package func removeNote(_ name: String) { notes.remove(name) }

  // MARK: Checks

  /// Compares all bytes of an entry with their recorded hashes.
  ///
  /// Changes nothing, and works beside an entry object that records.
  ///
  /// It reads all cached bytes of the file, whatever its stamp says, and waits for the disk. If it
  /// finds damage, it invalidates the stamp.
  ///
  /// - Returns: the version of the entry, and which of its claimed bytes are damaged; nil if there
  ///   is no usable entry.
  /// - Throws: if a file cannot be opened or read.
  package func audit(
    _ key: CacheKey
  ) throws(CacheError) -> (version: ContentVersion, damaged: ExtentSet)? {
    try checker.audit(key)
  }

  /// Compares all bytes of an entry with their recorded hashes, even those that a COMMIT or a stamp
  /// covers.
  ///
  /// It reads all cached bytes of the file. Without `repairing` it changes nothing, not even the
  /// time of last use, except that it invalidates the stamp of a damaged entry.
  ///
  /// - Parameters:
  ///   - entry: the entry to check.
  ///   - repairing: whether to replace the record by one without the false claims, so that the next
  ///     mount fetches only those bytes. An entry without a valid header or data file is removed. A
  ///     repaired entry counts as used now.
  /// - Returns: the result; nil if there is no record, or one of a later version of httpfs.
  /// - Throws: if a file cannot be opened, read or replaced.
  package func check(_ entry: StoredEntry, repairing: Bool) throws(CacheError) -> EntryCheck? {
    try checker.check(entry.key, repairing: repairing)
  }

  /// Removes an entry, and throws if that fails.
  ///
  /// It also removes the entry's pin. Files that the cache did not write stay. Do not call it while
  /// entries are being created, because it removes the directory that groups entries with the last
  /// of them.
  ///
  /// - Parameter entry: the entry to remove.
  /// - Returns: the number of bytes that its files occupied.
  /// - Throws: if its record cannot be removed; the entry is then unchanged.
  @discardableResult
  package func remove(_ entry: StoredEntry) throws(CacheError) -> Int64 {
    try remover.removeWithPin(entry.key)
  }
}
