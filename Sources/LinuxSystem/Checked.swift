internal import Glibc

/// Runs a call that returns −1 and sets `errno` on failure; repeats it after a signal.
@inline(__always)
func checked<Value: BinaryInteger>(
  _ call: () -> Value
) throws(ErrorNumber) -> Value {
  while true {
    let value = call()
    if value != -1 { return value }
    let number = errno
    if number != EINTR { throw ErrorNumber(rawValue: number) }
  }
}
