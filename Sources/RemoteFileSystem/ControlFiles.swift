internal import Glibc
internal import Logging
internal import MountControl
internal import MountStatus
internal import RemoteFiles
internal import Synchronization
internal import TextFormat

/// Opens, reads and writes `.status`, `.status.json`, `.metrics` and `.control`, from memory only.
struct ControlFiles: Sendable {
  let state: MountState
  let commands: ControlCommands
  let attributes: MountAttributes
  let logger: Logger

  private static let help = Array(ControlHelp.text.utf8)

  func open(
    _ control: ControlFile, _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    let content: OpenHandle.Content
    switch control {
    case .control:
      // The kernel checks the mode, but exempts root and processes with root's privileges.
      guard attributes.mayControl(reply.userID) else { return reply.error(EACCES) }
      content = .control(OpenHandle.ControlHandle())
    case .status: content = .status(state.stream(.text))
    case .statusJSON: content = .status(state.stream(.json))
    case .metrics: content = .status(state.stream(.metrics))
    }
    _ = reply.open(OpenHandle(content), .direct)
  }

  func read(
    _ stream: StatusStream, offset: Int64, byteCount: Int,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    guard let bytes = stream.read(at: Int(clamping: offset), byteCount: byteCount) else {
      return reply.error(ESPIPE)
    }
    reply.bytes(bytes[...])
  }

  /// Reads the help of `.control`.
  func readHelp(
    offset: Int64, byteCount: Int, _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    let start = min(max(0, Int(clamping: offset)), Self.help.count)
    reply.bytes(Self.help[start..<min(start + byteCount, Self.help.count)])
  }

  /// Allows a shell to truncate `.control` before writing; everything else is read-only.
  func setAttributes(
    _ number: UInt64, changesAccess: Bool, _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    guard number == ControlFile.control.inode.rawValue, !changesAccess else {
      return reply.error(EROFS)
    }
    guard attributes.mayControl(reply.userID) else { return reply.error(EACCES) }
    reply.attributes(attributes.of(.control, timeout: 0))
  }

  func write(
    _ handle: OpenHandle, _ bytes: UnsafeRawBufferPointer,
    _ reply: consuming some FileSystemReply & ~Copyable
  ) {
    guard case .control(let control) = handle.content else { return reply.error(EROFS) }
    do throws(ControlRefusal) {
      let batch = try control.writer.withLock { (writer) throws(ControlRefusal) in
        try writer.take(bytes)
      }
      try commands.carryOut(batch)
    } catch {
      logger.warning(
        "command refused", metadata: ["reason": "\(escapingControls(error.description))"])
      return reply.error(error.errno)
    }
    reply.written(bytes.count)
  }
}
