internal import CCurl
internal import HTTPTransferCore

/// Resolves references against a base URL (RFC 3986 §5) with libcurl's URL parser.
package enum URLResolver {
  /// Resolves `reference`, the value of a `Location` field, against `base`.
  ///
  /// - Parameters:
  ///   - reference: its bytes, which need not be UTF-8.
  ///   - base: the requested URL.
  /// - Returns: the absolute URL; nil if the result is not a URL.
  static func resolve(_ reference: [UInt8], against base: RemoteURL) -> String? {
    guard let handle = curl_url() else { return nil }
    defer { curl_url_cleanup(handle) }
    // Non-ASCII bytes and spaces, which some servers send raw, are encoded.
    let flags = UInt32(CURLU_URLENCODE) | UInt32(CURLU_NON_SUPPORT_SCHEME)
    guard curl_url_set(handle, CURLUPART_URL, base.text, 0) == CURLUE_OK,
      setURL(handle, reference, flags) == CURLUE_OK
    else { return nil }
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(handle, CURLUPART_URL, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  private static func setURL(
    _ handle: OpaquePointer, _ bytes: [UInt8], _ flags: UInt32
  ) -> CURLUcode {
    (bytes + [0]).withUnsafeBytes { bytes in
      curl_url_set(
        handle, CURLUPART_URL, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), flags)
    }
  }

  /// Decodes the percent-encodings of credentials in a URL.
  package static func decoded(_ text: Substring) -> String {
    var length: Int32 = 0
    let source = String(text)
    guard let bytes = curl_easy_unescape(nil, source, Int32(source.utf8.count), &length) else {
      return source
    }
    defer { curl_free(bytes) }
    return String(cString: bytes)
  }
}
