internal import TextFormat

/// The objects of a mount that the kernel holds.
package struct KernelStatus: Sendable, Hashable, Decodable {
  /// How many file versions the kernel knows by inode number: open ones, and those that it keeps in
  /// memory.
  package var inodes: Int

  /// How many file handles are open, without those of control files and directories.
  package var openHandles: Int

  package init(inodes: Int = 0, openHandles: Int = 0) {
    self.inodes = inodes
    self.openHandles = openHandles
  }

  enum CodingKeys: String, CodingKey {
    case inodes
    case openHandles = "open_handles"
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.inodes, inodes)
      writer.member(CodingKeys.openHandles, openHandles)
    }
  }
}
