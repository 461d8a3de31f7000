/// The files that httpfs itself provides in the mount's root.
///
/// `readdir` does not list them, so that copying or hashing a whole mount works as for a local
/// directory.
enum ControlFile: UInt64, CaseIterable, Sendable {
  case status
  case statusJSON
  /// The only writable one.
  case control
  case metrics

  var name: String {
    switch self {
    case .status: ".status"
    case .statusJSON: ".status.json"
    case .control: ".control"
    case .metrics: ".metrics"
    }
  }

  var inode: InodeNumber { InodeNumber(rawValue: InodeNumber.firstControl + rawValue) }

  init?(name: String) {
    guard name.utf8.first == UInt8(ascii: "."),
      let file = Self.allCases.first(where: { $0.name == name })
    else { return nil }
    self = file
  }

  init?(inode: InodeNumber) {
    guard inode.rawValue >= InodeNumber.firstControl else { return nil }
    self.init(rawValue: inode.rawValue - InodeNumber.firstControl)
  }
}
