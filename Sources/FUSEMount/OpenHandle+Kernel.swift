internal import CFuse
internal import RemoteFileSystem

/// A handle as the kernel stores it, in its 64 bits.
extension OpenHandle {
  /// The handle for the kernel; one `release` balances it.
  func retainedForKernel() -> UInt64 {
    UInt64(UInt(bitPattern: Unmanaged.passRetained(self).toOpaque()))
  }

  private static func unmanaged(_ info: UnsafeMutablePointer<fuse_file_info>?)
    -> Unmanaged<OpenHandle>?
  {
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh)) else {
      return nil
    }
    return .fromOpaque(pointer)
  }

  /// The handle of a request that uses it.
  static func of(_ info: UnsafeMutablePointer<fuse_file_info>?) -> OpenHandle? {
    unmanaged(info)?.takeUnretainedValue()
  }

  /// The handle of a request that ends it.
  static func released(_ info: UnsafeMutablePointer<fuse_file_info>?) -> OpenHandle? {
    unmanaged(info)?.takeRetainedValue()
  }
}
