internal import CCurl

/// A libcurl easy handle, with the memory that libcurl reads while it uses the handle.
///
/// Confined to the network thread. It must be in no multi handle when it is released.
final class EasyHandle {
  let pointer: UnsafeMutableRawPointer
  private let errorText: UnsafeMutablePointer<CChar>
  private var headerList: UnsafeMutablePointer<curl_slist>?

  /// A new handle; nil if there is none.
  init?() {
    guard let pointer = curl_easy_init() else { return nil }
    self.pointer = pointer
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    set(CURLOPT_ERRORBUFFER, pointer: errorText)
  }

  deinit {
    curl_easy_cleanup(pointer)
    curl_slist_free_all(headerList)
    errorText.deallocate()
  }

  // MARK: Options

  func set(_ option: CURLoption, _ value: Int) {
    _ = httpfs_easy_set_long(pointer, option, value)
  }

  func set(_ option: CURLoption, _ value: String) {
    _ = httpfs_easy_set_string(pointer, option, value)
  }

  func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) {
    _ = httpfs_easy_set_pointer(pointer, option, value)
  }

  func set(_ option: CURLoption, offset: Int64) {
    _ = httpfs_easy_set_offset(pointer, option, curl_off_t(offset))
  }

  /// Sets the lines of the request's head, as bytes.
  func setHeaderLines(_ lines: [[UInt8]]) {
    curl_slist_free_all(headerList)
    headerList = nil
    for line in lines {
      let longer = (line + [0]).withUnsafeBytes { bytes in
        curl_slist_append(headerList, bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
      }
      if let longer { headerList = longer }
    }
    set(CURLOPT_HTTPHEADER, pointer: headerList)
  }

  /// Bytes per second: a slower exchange is useless, but would never time out.
  private static let minimumSpeed = 64

  /// Sets how long almost no bytes may move; nil for no limit.
  func setStallTimeout(_ timeout: Duration?) {
    set(CURLOPT_LOW_SPEED_LIMIT, timeout == nil ? 0 : Self.minimumSpeed)
    set(CURLOPT_LOW_SPEED_TIME, timeout.map { Self.number($0 / .seconds(1)) } ?? 0)
  }

  /// Converts a time for libcurl: rounded up, at least 1, and small enough for any platform's long.
  static func number(_ value: Double) -> Int { Int(min(1e9, max(1, value.rounded(.up)))) }

  // MARK: Results

  /// A number that libcurl reports for the last request; 0 if it does not.
  func number(of info: CURLINFO) -> Int {
    var number = 0
    _ = httpfs_easy_get_long(pointer, info, &number)
    return number
  }

  /// A number of bytes or microseconds that libcurl reports for the last request; 0 if the request
  /// has not got that far.
  func offset(of info: CURLINFO) -> Int64 {
    var offset: curl_off_t = 0
    _ = httpfs_easy_get_offset(pointer, info, &offset)
    return Int64(offset)
  }

  /// libcurl's description of the last failure, which was `code`.
  func description(of code: CURLcode) -> String {
    let text = String(cString: errorText)
    return text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
  }
}
