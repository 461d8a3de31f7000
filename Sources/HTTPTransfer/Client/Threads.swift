internal import Glibc
internal import LinuxSystem

/// Starts a detached thread that runs `body` and then ends.
///
/// Signals stay blocked in it, because they belong to the thread that waits for them.
///
/// - Parameters:
///   - name: the thread's name.
///   - attempts: the number of attempts, 10 ms apart: a lack of threads is usually temporary.
///   - body: runs in the thread.
/// - Returns: whether the thread was started; otherwise `body` does not run.
@discardableResult
func spawnThread(name: String, attempts: Int = 1, _ body: @escaping @Sendable () -> Void) -> Bool {
  let box = Unmanaged.passRetained(ThreadBody(name: name, run: body))
  var thread = pthread_t()
  var all = sigset_t()
  var previous = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, &previous)
  var code = pthread_create(&thread, nil, threadMain, box.toOpaque())
  for _ in 1..<max(2, attempts) where code == EAGAIN {
    usleep(10_000)
    code = pthread_create(&thread, nil, threadMain, box.toOpaque())
  }
  pthread_sigmask(SIG_SETMASK, &previous, nil)
  guard code == 0 else {
    box.release()
    return false
  }
  pthread_detach(thread)
  return true
}

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
/// It uses the kernel's file, because Swift does not import `pthread_setname_np` and `prctl`.
private func nameCurrentThread(_ name: String) {
  try? StreamCalls.write(name, toFile: "/proc/thread-self/comm")
}
