import Foundation
import Glibc

/// Mounts in separate mount namespaces, which replace some of the host's files.
enum MountNamespace {
  /// The words that start a command by a shell script in its own mount namespace.
  ///
  /// The command's words are the script's arguments. The namespace has no copies of httpfs's
  /// mounts: a copy keeps the mount's daemon running when the mount itself is unmounted.
  static func launcher(script: String) -> [String] {
    [
      "unshare", "--mount", "--propagation", "private", "bash", "-c",
      "umount --all --lazy --types fuse.httpfs; " + script, "bash",
    ]
  }

  /// The words that start a command that sees other files: `files` maps paths to their
  /// replacements.
  static func launcher(_ files: [String: String]) -> [String] {
    let binds = files.sorted { $0.key < $1.key }.map {
      "mount --bind \(quoted($0.value)) \(quoted($0.key)) && "
    }
    return launcher(script: binds.joined() + "exec \"$@\"")
  }

  /// The words that start a command that trusts only the authority, without an option.
  static func launcher(trusting authority: CertificateAuthority) throws -> [String] {
    let bundle = "/etc/ssl/certs/ca-certificates.crt"
    guard Host.isRoot, access(bundle, F_OK) == 0 else {
      throw HarnessError("needs root, and Debian's package ca-certificates")
    }
    return launcher([bundle: authority.certificatePath])
  }

  /// Mounts `urls`, which option lines may follow, by a launcher of this type.
  static func mount(
    _ sandbox: Sandbox, urls: [String], options: [String] = [], cache: String = "cache",
    launcher: [String]
  ) throws -> Mount {
    let name = "isolated-\(UInt32.random(in: 0 ... .max))"
    let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "\(name).txt")
    return sandbox.adopt(
      try Mount(
        source: list, mountpoint: try sandbox.makeDirectory(name),
        cacheDirectory: sandbox.path(cache), options: options, launcher: launcher,
        enter: { ["nsenter", "--target", String($0), "--mount", "--"] }))
  }
}
