public import HTTPTransferCore

/// Makes the URL that a file's bytes are asked for at, where the file's own URL does not lead to them:
/// signed URLs, which live for a while.
public protocol URLSigner: Sendable {
  /// Makes a URL for a file; returns at once.
  ///
  /// Called again when the last URL refuses (401, 403, 404, 410), or is about to expire by what it says
  /// itself.
  ///
  /// - Parameters:
  ///   - url: the file's own URL, which names it.
  ///   - name: what the user calls the file.
  ///   - done: to be called once, on any thread.
  func sign(
    _ url: RemoteURL, name: String,
    _ done: @escaping @Sendable (Result<RemoteURL, URLSigningError>) -> Void)
}

/// Why there is no URL.
public struct URLSigningError: Error, Sendable, CustomStringConvertible {
  /// For people; holds no secrets.
  public let description: String

  public init(_ description: String) { self.description = description }
}
