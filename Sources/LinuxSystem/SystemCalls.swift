/// Calls about files and their names: one thin function per call.
///
/// Calls are repeated if a signal interrupts them. Transfers are repeated until they are complete.
/// With a directory, a relative `name` must be a single component, because `O_NOFOLLOW` guards only
/// the last component.
package enum SystemCalls {}
