internal import Glibc

/// Starts a detached thread that runs `body` and ends with it.
///
/// Signals stay blocked in it: they belong to the thread that waits for them.
func spawnThread(name: String, _ body: @escaping @Sendable () -> Void) {
  let box = Unmanaged.passRetained(ThreadBody(name: name, run: body))
  var thread = pthread_t()
  var all = sigset_t()
  var previous = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, &previous)
  var code = pthread_create(&thread, nil, threadMain, box.toOpaque())
  for _ in 0..<spawnAttempts where code == EAGAIN {
    usleep(10_000)
    code = pthread_create(&thread, nil, threadMain, box.toOpaque())
  }
  pthread_sigmask(SIG_SETMASK, &previous, nil)
  guard code == 0 else {
    box.release()
    // Our own process is out of threads: nothing that was asked for could ever be answered.
    preconditionFailure("cannot start thread \(name): errno \(code)")
  }
  pthread_detach(thread)
}

/// A lack of threads passes, as a rule: it is waited for up to 2 s.
private let spawnAttempts = 200

private final class ThreadBody: Sendable {
  let name: String
  let run: @Sendable () -> Void

  init(name: String, run: @escaping @Sendable () -> Void) {
    self.name = name
    self.run = run
  }
}

private func threadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let context else { return nil }
  let body = Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue()
  nameCurrentThread(body.name)
  body.run()
  return nil
}

/// Names the thread for `ps -L` and debuggers.
///
/// The kernel's file, because `pthread_setname_np` and
/// `prctl` are not visible to Swift.
private func nameCurrentThread(_ name: String) {
  let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return }
  _ = name.withCString { write(descriptor, $0, strlen($0)) }
  close(descriptor)
}
