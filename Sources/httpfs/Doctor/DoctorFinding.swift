import TextFormat

/// The result of one check of `httpfs doctor`.
struct DoctorFinding: CustomStringConvertible {
  enum Level: String {
    case ok
    case warning
    case error
  }

  let level: Level
  /// One line.
  let message: String
  /// How to fix it; nil if there is nothing to do.
  let advice: String?

  static func ok(_ message: String) -> DoctorFinding {
    .init(level: .ok, message: message, advice: nil)
  }

  /// Something works less well.
  static func warning(_ message: String, _ advice: String) -> DoctorFinding {
    .init(level: .warning, message: message, advice: advice)
  }

  /// No mount is possible.
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
