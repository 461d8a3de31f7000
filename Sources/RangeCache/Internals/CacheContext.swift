import ExtentRecord

/// The objects that all entries of a directory share.
struct CacheContext: Sendable {
  let root: CacheRoot
  let recordings = RecordLeases()
  let blocks = BlockTable()
  let allocated: AllocatedBytes
  let stamps: DataStamps
  let keys: KnownKeys

  init(_ root: CacheRoot, bootID: String?) {
    self.root = root
    allocated = AllocatedBytes(root)
    keys = KnownKeys(root)
    stamps = DataStamps(bootID: bootID, in: root)
  }

  func folder(of key: CacheKey) -> EntryFolder { EntryFolder(key, in: root) }
}
