internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import LinuxSystem

/// Reads a request's body while it is sent, and counts its bytes.
///
/// `@unchecked Sendable`: opened by the preparing thread, then used on the network thread only.
final class BodyReader: ExchangeBody, @unchecked Sendable {
  /// A run of bytes of the body.
  private enum Part {
    case bytes([UInt8])
    case file(Descriptor, path: String, Fingerprint)

    var byteCount: Int64 {
      switch self {
      case .bytes(let bytes): Int64(bytes.count)
      case .file(_, _, let fingerprint): fingerprint.byteCount
      }
    }
  }

  /// Identifies the state of a file, to detect changes since it was opened.
  private struct Fingerprint: Equatable {
    let byteCount: Int64
    let seconds: Int
    let nanoseconds: Int

    init(_ descriptor: Descriptor) throws(ErrorNumber) {
      let status = try SystemCalls.status(descriptor.rawValue)
      byteCount = status.byteCount
      (seconds, nanoseconds) = status.modified
    }
  }

  /// The media type of the body; nil if it has none.
  let contentType: String?

  /// Called with the number of bytes of each read, and with a negative number on a rewind.
  var onProgress: (Int64) -> Void = { _ in }

  /// Whether reading waits for ``ExchangeClient/unpause(_:)``.
  var isPaused = false

  /// Why reading failed.
  private(set) var failure: FileFailure?

  private var parts: [Part] = []
  private var partIndex = 0
  private var offset: Int64 = 0
  private var givenByteCount: Int64 = 0

  var byteCount: Int64? { parts.reduce(0) { $0.saturatingSum($1.byteCount) } }

  /// Opens the files that `body` names.
  ///
  /// - Throws: if a file cannot be read.
  init(_ body: RequestBody) throws(FileFailure) {
    switch body {
    case .bytes(let bytes, let type):
      contentType = type
      parts = [.bytes(bytes)]
    case .file(let path, let type):
      contentType = type
      parts = [try Self.open(path)]
    case .form(let fields):
      contentType = "application/x-www-form-urlencoded"
      let text = fields.map { "\(Self.formEncoded($0.name))=\(Self.formEncoded($0.value))" }
      parts = [.bytes(Array(text.joined(separator: "&").utf8))]
    case .multipart(let fields):
      // Occurs in a file that is sent with a chance of 1 in 2¹²⁸.
      let boundary =
        "httpfs-" + UInt64.random(in: .min ... .max).hex16
        + UInt64.random(in: .min ... .max).hex16
      contentType = "multipart/form-data; boundary=\(boundary)"
      for field in fields {
        let head = Self.head(of: field, boundary: boundary)
        switch field.content {
        case .text(let text): parts.append(.bytes(Array((head + text + "\r\n").utf8)))
        case .file(let path, _):
          parts += [.bytes(Array(head.utf8)), try Self.open(path), .bytes(Array("\r\n".utf8))]
        }
      }
      parts.append(.bytes(Array("--\(boundary)--\r\n".utf8)))
    }
  }

  private static func open(_ path: String) throws(FileFailure) -> Part {
    do throws(ErrorNumber) {
      let descriptor = try SystemCalls.openForReading(atPath: path)
      let status = try SystemCalls.status(descriptor.rawValue)
      guard !status.isDirectory else { throw ErrorNumber(rawValue: EISDIR) }
      guard status.isRegularFile else { throw ErrorNumber(rawValue: ESPIPE) }
      let fingerprint = try Fingerprint(descriptor)
      // Files in /proc contain bytes but report a length of 0; they must not arrive empty.
      if fingerprint.byteCount == 0, try holdsBytes(descriptor) {
        throw ErrorNumber(rawValue: ENODATA)
      }
      return .file(descriptor, path: path, fingerprint)
    } catch {
      let text =
        switch error.rawValue {
        case ESPIPE: "it is not a regular file"
        case ENODATA: "it does not tell its length; send a copy of it"
        default: error.description
        }
      throw FileFailure(
        code: .unreadableBody, reason: "cannot read '\(path)': \(text)", errno: error.rawValue)
    }
  }

  private static func holdsBytes(_ descriptor: Descriptor) throws(ErrorNumber) -> Bool {
    let byte = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
    defer { byte.deallocate() }
    return try SystemCalls.read(descriptor.rawValue, into: byte, at: 0) > 0
  }

  // MARK: Encoding

  private static func head(of part: FormPart, boundary: String) -> String {
    var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(quoted(part.name))\""
    var type = part.contentType
    if case .file(let path, let name) = part.content {
      let last = path.pathParts().last ?? path
      head += "; filename=\"\(quoted(name ?? last))\""
      type = type ?? "application/octet-stream"
    }
    if let type { head += "\r\nContent-Type: \(oneLine(type))" }
    return head + "\r\n\r\n"
  }

  /// Escapes a name for quotes as browsers do (RFC 7578 §2, WHATWG form submission).
  private static func quoted(_ text: String) -> String {
    var quoted = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "%22"
      case "\r": quoted += "%0D"
      case "\n": quoted += "%0A"
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted
  }

  /// Replaces the characters that would begin another field, as swift-http-types does.
  private static func oneLine(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { ["\r", "\n", "\0"].contains($0) ? " " : $0 }))
  }

  /// Encodes the text as `application/x-www-form-urlencoded`.
  private static func formEncoded(_ text: String) -> String {
    var encoded: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "*"):
        encoded.append(byte)
      case UInt8(ascii: " "): encoded.append(UInt8(ascii: "+"))
      default:
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  // MARK: Reading

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ExchangeBodyRead {
    if isPaused { return .pause }
    while partIndex < parts.count {
      let part = parts[partIndex]
      let rest = part.byteCount - offset
      guard rest > 0 else {
        if case .file(let descriptor, let path, let fingerprint) = part {
          // The body must be one version of the file, not a mixture of two.
          guard (try? Fingerprint(descriptor)) == fingerprint else { return changed(path) }
        }
        partIndex += 1
        offset = 0
        continue
      }
      let wanted = Int(min(Int64(buffer.count), rest))
      switch part {
      case .bytes(let bytes):
        bytes.withUnsafeBytes {
          buffer.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<(Int(offset) + wanted)]))
        }
      case .file(let descriptor, let path, let fingerprint):
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        do throws(ErrorNumber) {
          let count = try SystemCalls.read(descriptor.rawValue, into: target, at: offset)
          guard count == wanted else { return changed(path) }
        } catch {
          return fail(
            "cannot read '\(path)': \(error.description)", error.rawValue)
        }
        // Check before the last byte is sent: a server treats a body of the declared length as
        // complete.
        if Int64(wanted) == rest, (try? Fingerprint(descriptor)) != fingerprint {
          return changed(path)
        }
      }
      offset += Int64(wanted)
      givenByteCount += Int64(wanted)
      onProgress(Int64(wanted))
      return .bytes(wanted)
    }
    return .bytes(0)
  }

  private func changed(_ path: String) -> ExchangeBodyRead {
    fail("'\(path)' has changed while it was sent; send it again when it is complete", 0)
  }

  private func fail(_ reason: String, _ errno: CInt) -> ExchangeBodyRead {
    failure = FileFailure(code: .unreadableBody, reason: reason, errno: errno)
    return .failed
  }

  func rewind() -> Bool {
    if givenByteCount != 0 { onProgress(-givenByteCount) }
    givenByteCount = 0
    partIndex = 0
    offset = 0
    return true
  }
}
