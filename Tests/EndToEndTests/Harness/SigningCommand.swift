import Foundation

/// A shell script that makes signed URLs, like a user's script: it requests a link from the Origin.
final class SigningCommand {
  /// The value for `--url-command`.
  let command: String
  private let logPath: String

  /// Writes the script.
  ///
  /// - Parameters:
  ///   - sandbox: the place of the script.
  ///   - lifetime: how long a link is valid, in seconds.
  /// - Throws: if the script cannot be written.
  init(_ sandbox: Sandbox, lifetime: Int) throws {
    logPath = sandbox.path("runs-\(UInt32.random(in: 0 ... .max))")
    let path = try sandbox.write(
      """
      echo "$HTTPFS_NAME" >> \(quoted(logPath))
      test "$1" = "$HTTPFS_URL" || exit 9
      url=$(printf %s "$1" | sed 's,/data/,/signed/,')
      exec curl -sS --fail --noproxy '*' -o /dev/null -w '%{redirect_url}\\n' \
        "$url&lifetime=\(lifetime)"

      """, to: "sign-\(UInt32.random(in: 0 ... .max)).sh")
    command = ". \(quoted(path))"
  }

  /// The names of the files for which it ran, in order.
  var runs: [String] {
    ((try? String(contentsOfFile: logPath, encoding: .utf8)) ?? "").split(separator: "\n")
      .map(String.init)
  }
}

extension OriginServer {
  /// A link to a resource that is valid for `lifetime` seconds from now.
  func link(_ name: String, length: Int64, seed: UInt64, lifetime: Int) throws -> String {
    try output(of: [
      "curl", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{redirect_url}",
      signedURL(name, length: length, seed: seed, lifetime: lifetime),
    ])
  }
}
