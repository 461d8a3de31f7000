import Glibc

/// The clocks, ports and threads of the server.
enum OriginSystem {
  /// The monotonic clock in nanoseconds; clock_gettime(2).
  static func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Sleeps until a time of the monotonic clock in nanoseconds; clock_nanosleep(2).
  static func sleep(until deadline: Int64) {
    var time = timespec(
      tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
    while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
  }

  /// Seconds since 1970; time(2).
  static func wallClockSeconds() -> Int64 { Int64(time(nil)) }

  /// The local port of a socket with getsockname(2), or its peer's port with getpeername(2); 0 if
  /// there is none.
  static func port(
    of descriptor: Int32,
    named name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> UInt16 {
    var storage = sockaddr_storage()
    var byteCount = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard name(descriptor, address, &byteCount) == 0 else { return 0 }
        // The port is at the same place in an IPv4 and an IPv6 address.
        return UnsafeRawPointer(address).loadUnaligned(fromByteOffset: 2, as: UInt16.self)
          .bigEndian
      }
    }
  }

  /// Runs `body` on a new detached thread; pthread_create(3).
  ///
  /// Only the used part of the reserved stack consumes memory. Returns false, and drops `body`, if
  /// no thread could be started.
  static func startThread(
    stackByteCount: Int = 256 << 10, _ body: sending @escaping () -> Void
  ) -> Bool {
    final class Start {
      let body: () -> Void
      init(_ body: @escaping () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, stackByteCount)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let start = Unmanaged.passRetained(Start(body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, &attributes,
      { argument in
        if let argument { Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
      }, start.toOpaque())
    if code != 0 { start.release() }
    return code == 0
  }
}
