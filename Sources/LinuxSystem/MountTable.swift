/// The mounts that this process sees, from `/proc/self/mountinfo` (proc(5)).
package struct MountTable: Sendable {
  /// One mount.
  package struct Entry: Sendable, Hashable {
    /// The absolute path of the mount point, unescaped.
    ///
    /// Bytes that are not UTF-8 are replaced.
    package let mountpoint: String

    /// The type with its subtype: `ext4`, `fuse.httpfs`.
    package let fileSystemType: String

    /// The mounted source, as the file system reports it.
    package let source: String

    /// Major and minor device number, as in `st_dev`: `0:52`.
    package let device: String
  }

  /// The mounts in the kernel's order: later ones hide earlier ones.
  package let entries: [Entry]

  /// Parses the content of `mountinfo`; malformed lines are skipped.
  package init(mountinfo: [UInt8]) {
    entries = mountinfo.split(separator: UInt8(ascii: "\n")).compactMap(Self.entry(line:))
  }

  /// The mounts that this process sees now; an error without `/proc`.
  package static func current() throws(ErrorNumber) -> MountTable {
    MountTable(mountinfo: try StreamCalls.contents(ofFile: "/proc/self/mountinfo"))
  }

  /// The mounts that another process sees now: it may be in a mount namespace of its own.
  package static func seen(by process: Int32) throws(ErrorNumber) -> MountTable {
    MountTable(mountinfo: try StreamCalls.contents(ofFile: "/proc/\(process)/mountinfo"))
  }

  /// The topmost mount that this process sees now on `path`; nil if none, or without `/proc`.
  package static func currentMount(at path: String) -> Entry? {
    (try? current())?.mount(at: path)
  }

  /// The topmost mount on `path`, an absolute path without symbolic links; nil if none.
  package func mount(at path: String) -> Entry? {
    entries.last { $0.mountpoint == path }
  }

  /// `36 35 98:0 /root /mount rw,noatime shared:1 … - ext3 /dev/root rw`: the optional fields
  /// before the dash vary in number.
  private static func entry(line: ArraySlice<UInt8>) -> Entry? {
    let fields = line.split(separator: UInt8(ascii: " "))
    guard fields.count >= 9,
      let dash = fields[6...].firstIndex(where: { $0.elementsEqual([UInt8(ascii: "-")]) }),
      dash + 2 < fields.count
    else { return nil }
    return Entry(
      mountpoint: unescaped(fields[4]), fileSystemType: unescaped(fields[dash + 1]),
      source: unescaped(fields[dash + 2]), device: unescaped(fields[2]))
  }

  /// Replaces `\040` and the like by the byte that the three octal digits name.
  private static func unescaped(_ field: ArraySlice<UInt8>) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(field.count)
    var rest = field
    while let byte = rest.popFirst() {
      let digits = rest.prefix(3)
      if byte == UInt8(ascii: "\\"), digits.count == 3,
        digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
      {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
