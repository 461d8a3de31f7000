import Foundation
import Glibc

/// The capabilities of this machine and this user.
enum Host {
  static var isRoot: Bool { geteuid() == 0 }

  /// The assignment for env(1) that makes a program load `library` before libc.
  ///
  /// Libraries that this process preloads, such as a sanitizer's, come first.
  static func preloading(_ library: String) -> String {
    let before = ProcessInfo.processInfo.environment["LD_PRELOAD"].flatMap { $0.isEmpty ? nil : $0 }
    return "LD_PRELOAD=" + [before, library].compactMap(\.self).joined(separator: ":")
  }

  /// The search path of this process plus the directories of servers, which a user's path often
  /// lacks.
  static var administratorPath: String {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return "/usr/sbin:/sbin:/usr/local/sbin:" + path
  }

  /// Whether the kernel is 6.9 or later.
  static var kernelHasPassthrough: Bool {
    var name = utsname()
    guard uname(&name) == 0 else { return false }
    let release = withUnsafeBytes(of: &name.release) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
    return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 9)
  }

  /// Whether the directory's file system may back a passthrough file; a stacked one may not.
  static func isOrdinaryFileSystem(_ directory: String) -> Bool {
    let type = try? output(of: ["stat", "--file-system", "--format=%T", directory])
    return type != nil && type?.contains("overlay") == false
  }
}
