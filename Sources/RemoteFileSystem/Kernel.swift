package import RemoteFiles

/// The calls of the file system to the kernel, besides the replies.
package protocol Kernel: Sendable {
  /// Prepares the kernel for the open of a file of a server.
  func prepareForOpen()

  /// Registers a file that the kernel then reads directly.
  ///
  /// - Returns: its id; nil if the kernel cannot read it.
  func openBacking(_ file: BackingFile) -> CInt?

  /// Removes a registration. Handles that use it keep the file open themselves.
  func closeBacking(_ id: CInt)

  /// Drops the cached pages of an inode.
  func dropPages(of inode: InodeNumber)
}
