/// A command that reads a file from its first to its last byte, in pieces of 128 KiB, and prints its
/// SHA-256.
///
/// As `sha256sum` does; but that of Debian 12 takes seven times as long, because it does not know the
/// processor's instructions, which was a fourth of the time of all tests.
enum DigestCommand {
  static func words(_ path: String) -> [String] {
    ["bash", "-o", "pipefail", "-c", "cat -- \"$1\" | openssl dgst -sha256 -r", "bash", path]
  }
}
