internal import HTTPTransferCore
internal import HTTPTypes

extension TransferResult {
  /// The ``body`` as text, in the charset of its `Content-Type`, otherwise in ISO-8859-1.
  ///
  /// A byte order mark takes precedence over the field. Bytes that are invalid in the charset
  /// become U+FFFD. The text of a body that is still encoded (`Content-Encoding`) is meaningless.
  public var text: String {
    TextDecoding.text(of: body, contentType: response.headerFields[.contentType])
  }
}
