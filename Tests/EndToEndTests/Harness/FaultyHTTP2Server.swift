import Foundation
import Glibc

/// An HTTP/2 server on loopback that refuses its first requests.
///
/// It refuses with `RST_STREAM` (REFUSED_STREAM) or with `GOAWAY`, which both mean that the request
/// was not processed. It then serves one body to every client.
///
/// It understands frames (RFC 9113 §4), not fields: it answers every request with the whole body.
final class FaultyHTTP2Server {
  let port: UInt16
  private let process: ChildProcess

  /// The length of the body, which fits into the initial windows of a connection.
  private static let byteCount = 48_000
  private static let byte: UInt8 = 0x61

  /// Starts the server.
  ///
  /// - Parameters:
  ///   - certificate: its certificate.
  ///   - fault: `refuse` or `goaway`.
  ///   - count: how many requests have the fault.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(certificate: CertificateAuthority.Certificate, fault: String, count: Int) throws {
    let process = try ChildProcess(
      Python.command(Self.script)
        + [
          certificate.path, certificate.keyPath, fault, String(count), String(Self.byteCount),
        ])
    self.process = process
    var found: UInt16?
    _ = Deadline(after: .seconds(10)).wait {
      found = process.standardOutput.split(separator: "\n").first.flatMap { UInt16($0) }
      return found != nil || !process.isRunning
    }
    guard let found else {
      throw HarnessError("the HTTP/2 server did not start: \(process.standardError)")
    }
    port = found
  }

  deinit { process.kill() }

  /// The number of requests so far.
  var requestCount: Int { process.standardOutput.split(separator: "\n").count - 1 }

  /// The SHA-256 of the body.
  var digest: String {
    Digest.hex { update in
      [UInt8](repeating: Self.byte, count: Self.byteCount).withUnsafeBytes { update($0) }
    }
  }

  private static let script = """
    import socket, ssl, struct, sys, threading
    certificate, key, fault, count, length = sys.argv[1:]
    count, length = int(count), int(length)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    lock = threading.Lock()
    seen = 0

    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
            ">I", stream) + payload

    def literal(index, text):
        return bytes([0x0F, index - 15, len(text)]) + text

    def receive(connection, wanted):
        data = b""
        while len(data) < wanted:
            piece = connection.recv(wanted - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def answer(connection, stream):
        global seen
        with lock:
            seen += 1
            faulty = seen <= count
            print(seen, flush=True)
        if faulty and fault == "refuse":
            connection.sendall(frame(3, 0, stream, struct.pack(">I", 7)))
        elif faulty:
            connection.sendall(frame(7, 0, 0, struct.pack(">II", 0, 0)))
            raise EOFError
        else:
            # :status 200, content-length, etag.
            fields = b"\\x88" + literal(28, str(length).encode()) + literal(34, b'"v1"')
            reply = frame(1, 4, stream, fields)
            for start in range(0, length, 16384):
                piece = b"a" * min(16384, length - start)
                reply += frame(0, 1 if start + 16384 >= length else 0, stream, piece)
            connection.sendall(reply)

    def serve(plain):
        try:
            with context.wrap_socket(plain, server_side=True) as connection:
                receive(connection, 24)
                connection.sendall(frame(4, 0, 0))
                while True:
                    head = receive(connection, 9)
                    size = struct.unpack(">I", b"\\0" + head[:3])[0]
                    stream = struct.unpack(">I", head[5:])[0] & 0x7FFFFFFF
                    payload = receive(connection, size)
                    if head[3] == 4 and not head[4] & 1:
                        connection.sendall(frame(4, 1, 0))
                    elif head[3] == 6 and not head[4] & 1:
                        connection.sendall(frame(6, 1, 0, payload))
                    elif head[3] == 1:
                        answer(connection, stream)
        except (EOFError, OSError):
            pass

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        plain, _ = listener.accept()
        threading.Thread(target=serve, args=(plain,), daemon=True).start()
    """
}
