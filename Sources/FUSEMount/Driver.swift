internal import CFuse
internal import RemoteFileSystem
internal import Synchronization

/// The context of libfuse's callbacks: the file system that they call.
final class Driver: Sendable {
  let fileSystem: FileSystem
  let interrupts = InterruptTable()
  private let whenReady = Mutex<(@Sendable () -> Void)?>(nil)

  init(_ fileSystem: FileSystem) { self.fileSystem = fileSystem }

  /// The driver of a request's session.
  static func of(_ request: fuse_req_t) -> Driver? {
    fuse_req_userdata(request).map { Unmanaged<Driver>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Sets what to do when the kernel has established the connection.
  func onReady(_ action: @escaping @Sendable () -> Void) { whenReady.withLock { $0 = action } }

  /// Runs the action of ``onReady(_:)``; called on a libfuse thread when the connection is
  /// established.
  func kernelIsReady() {
    whenReady.withLock { $0 }?()
  }
}
