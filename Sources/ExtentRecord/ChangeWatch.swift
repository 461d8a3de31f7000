/// Whether a file has been changed by nobody but its only writer since that opened it.
///
/// The writer looks at the file before and after each of its own changes.
package struct ChangeWatch: Sendable {
  /// How the opening, or the writer's last change, has left the file; nil once somebody else has
  /// changed it, or where nothing tells.
  package private(set) var last: FileStamp?

  /// Begins with the file as the opening found it.
  package init(_ stamp: FileStamp?) { last = stamp }

  /// Takes a look at the file when the writer is about to change it, or wants to know.
  package mutating func look(_ stamp: FileStamp?) { if stamp != last { last = nil } }

  /// Takes a look at the file right after a change by the writer.
  package mutating func changed(_ stamp: FileStamp?) { if last != nil { last = stamp } }
}
