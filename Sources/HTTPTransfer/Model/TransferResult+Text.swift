internal import HTTPTransferCore
internal import HTTPTypes

extension TransferResult {
  /// The ``body`` as text, in the charset of its `Content-Type`, else in ISO-8859-1.
  ///
  /// A byte order mark decides before the field does. Bytes that the charset does not have become
  /// U+FFFD; of a body that is still coded (`Content-Encoding`) the text means nothing.
  public var text: String {
    TextDecoding.text(of: body, contentType: response.headerFields[.contentType])
  }
}
