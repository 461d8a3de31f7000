public import HTTPTransferCore

/// Makes the URL to request for a file's bytes if the file's own URL does not lead to them, for
/// example a signed URL that expires.
public protocol URLSigner: Sendable {
  /// Makes a URL for a file; returns at once.
  ///
  /// The library calls it again when the server refuses the last URL (401, 403, 404, 410), or when
  /// that URL's own expiry is near.
  ///
  /// - Parameters:
  ///   - url: the file's own URL, which identifies it.
  ///   - name: the user's name for the file.
  ///   - done: call it once, on any thread.
  func sign(
    _ url: RemoteURL, name: String,
    _ done: @escaping @Sendable (Result<RemoteURL, URLSigningError>) -> Void)
}

/// Why no URL could be made.
public struct URLSigningError: Error, Sendable, CustomStringConvertible {
  /// A message for people; contains no secrets.
  public let description: String

  public init(_ description: String) { self.description = description }
}
