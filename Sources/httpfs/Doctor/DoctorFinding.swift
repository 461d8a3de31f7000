import MountStatus

/// What one check of `httpfs doctor` has found.
struct DoctorFinding: CustomStringConvertible {
  enum Level: String {
    case ok
    case warning
    case error
  }

  let level: Level
  /// One line.
  let message: String
  /// What mends it; nil where nothing must be done.
  let advice: String?

  static func ok(_ message: String) -> DoctorFinding {
    .init(level: .ok, message: message, advice: nil)
  }

  /// Something works less well.
  static func warning(_ message: String, _ advice: String) -> DoctorFinding {
    .init(level: .warning, message: message, advice: advice)
  }

  /// Nothing can be mounted.
  static func failed(_ message: String, _ advice: String) -> DoctorFinding {
    .init(level: .error, message: message, advice: advice)
  }

  var description: String {
    let mark =
      switch level {
      case .ok: "ok   "
      case .warning: "warn "
      case .error: "FAIL "
      }
    return mark + escapingControls(message + (advice.map { "; \($0)" } ?? ""))
  }
}
