import Foundation
import Glibc

/// One line of `/proc/self/mountinfo` (proc(5)).
struct MountTableEntry {
  let mountpoint: String
  let fileSystemType: String
  /// The minor number of the mount's device, which names its directory in `fusectl`.
  let deviceMinor: String
  /// The source that `findmnt` shows.
  let source: String
  /// The options of this mount point, such as `ro` and `nosuid`.
  let options: [String]
}

/// The mounts that a process sees.
enum MountTable {
  static func entries(ofProcess process: String = "self") -> [MountTableEntry] {
    guard let data = FileManager.default.contents(atPath: "/proc/\(process)/mountinfo") else {
      return []
    }
    return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap { line in
      let fields = line.split(separator: " ").map(String.init)
      guard fields.count > 6, let dash = fields.firstIndex(of: "-"), dash + 2 < fields.count else {
        return nil
      }
      let device = fields[2].split(separator: ":").map(String.init)
      return MountTableEntry(
        mountpoint: unescaped(fields[4]), fileSystemType: fields[dash + 1],
        deviceMinor: device.last ?? "", source: unescaped(fields[dash + 2]),
        options: fields[5].split(separator: ",").map(String.init))
    }
  }

  /// The httpfs mount at `mountpoint`, if there is one.
  static func httpfs(at mountpoint: String, process: String = "self") -> MountTableEntry? {
    entries(ofProcess: process).last {
      $0.mountpoint == mountpoint && $0.fileSystemType == "fuse.httpfs"
    }
  }

  /// Undoes the kernel's `\040` escapes.
  private static func unescaped(_ field: String) -> String {
    var bytes: [UInt8] = []
    var rest = Array(field.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(3), as: UTF8.self)
      if byte == UInt8(ascii: "\\"), let value = UInt8(digits, radix: 8) {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
