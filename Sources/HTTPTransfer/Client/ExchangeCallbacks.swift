internal import CCurl

/// `CURL_WRITEFUNC_PAUSE` and `CURL_READFUNC_PAUSE`.
let pauseSign = 0x1000_0001
/// `CURL_READFUNC_ABORT`.
let abortSign = 0x1000_0000
/// `CURL_SEEKFUNC_FAIL`.
let seekFailed: CInt = 1
/// `CURLAUTH_BASIC`, a macro with a cast that Swift cannot import.
let basicAuthentication = 1

// libcurl calls these on the network thread. They are file-scope functions, so that they inherit no
// actor.

func receiveHeaderLine(
  bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let context else { return 0 }
  let exchange = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
  let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return exchange.takeHeaderLine(line) ? size * count : 0
}

func receiveBodyPiece(
  bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let context else { return 0 }
  let exchange = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
  let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return exchange.takeBody(piece)
}

func openConnection(
  context: UnsafeMutableRawPointer?, purpose: curlsocktype,
  address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let context, let address else { return -1 }
  return Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue().openSocket(address)
}

func beginRequest(
  context: UnsafeMutableRawPointer?, address: UnsafeMutablePointer<CChar>?,
  localAddress: UnsafeMutablePointer<CChar>?, port: CInt, localPort: CInt
) -> CInt {
  // CURL_PREREQFUNC_OK and CURL_PREREQFUNC_ABORT.
  guard let context, let address else { return 0 }
  let exchange = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
  let isReady = exchange.requestIsReady(
    address: String(cString: address), localPort: UInt16(truncatingIfNeeded: localPort))
  return isReady ? 0 : 1
}

func sendBodyPiece(
  bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let context else { return abortSign }
  let exchange = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
  return exchange.readBody(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}

func rewindBody(context: UnsafeMutableRawPointer?, offset: curl_off_t, origin: CInt) -> CInt {
  guard let context, offset == 0, origin == SEEK_SET else { return seekFailed }
  let exchange = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
  return exchange.rewindRequestBody() ? 0 : seekFailed
}
