/// Detects whether anything except a file's only writer has changed the file since the writer
/// opened it.
///
/// The writer checks the file before and after each of its own changes.
package struct ChangeWatch: Sendable {
  /// The stamp of the file after the opening or the writer's last change; nil once something else
  /// has changed the file, or if the file system cannot show changes.
  package private(set) var last: FileFingerprint?

  /// Starts with the file as it was opened.
  package init(_ stamp: FileFingerprint?) { last = stamp }

  /// Checks the file when the writer is about to change it, or wants to know.
  package mutating func look(_ stamp: FileFingerprint?) { if stamp != last { last = nil } }

  /// Records the stamp of the file right after a change by the writer.
  package mutating func changed(_ stamp: FileFingerprint?) { if last != nil { last = stamp } }
}
