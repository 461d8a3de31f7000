internal import CLinux

/// A pipe from or to a child process (`pipe2(2)`).
///
/// Its ends have the close-on-exec flag from their creation on, so no other child keeps one open.
package struct ChildPipe: ~Copyable {
  package let readEnd: CInt
  /// −1 once it was closed or taken.
  package private(set) var writeEnd: CInt

  package init() throws(ErrorNumber) {
    var ends: [CInt] = [-1, -1]
    _ = try checked { httpfs_pipe(&ends) }
    (readEnd, writeEnd) = (ends[0], ends[1])
  }

  deinit {
    Descriptor.close(readEnd)
    if writeEnd >= 0 { Descriptor.close(writeEnd) }
  }

  /// Closes the write end, so that the pipe ends when the child has closed its copy.
  package mutating func closeWriteEnd() { Descriptor.close(takeWriteEnd()) }

  /// Hands the write end over to the caller, who closes it.
  package mutating func takeWriteEnd() -> CInt {
    defer { writeEnd = -1 }
    return writeEnd
  }
}
