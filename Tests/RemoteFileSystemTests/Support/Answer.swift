import Glibc
import RemoteFileSystem

/// The reply of the file system to a request.
enum Answer: Sendable {
  case error(CInt)
  case entry(FileAttributes)
  case attributes(FileAttributes)
  case opened(OpenHandle, HandleMode)
  case items([String])
  case bytes([UInt8])
  case extendedAttribute([UInt8], room: Int)
  case written(Int)
  case statistics(statvfs)
  /// The reply was dropped.
  case dropped

  var errno: CInt? { if case .error(let errno) = self { errno } else { nil } }

  var entry: FileAttributes? { if case .entry(let attributes) = self { attributes } else { nil } }

  var attributes: FileAttributes? {
    if case .attributes(let attributes) = self { attributes } else { nil }
  }

  var handle: OpenHandle? { if case .opened(let handle, _) = self { handle } else { nil } }

  var items: [String]? { if case .items(let names) = self { names } else { nil } }

  var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

  var text: String? {
    switch self {
    case .bytes(let bytes), .extendedAttribute(let bytes, _): String(decoding: bytes, as: UTF8.self)
    default: nil
    }
  }

  var written: Int? { if case .written(let count) = self { count } else { nil } }
}
