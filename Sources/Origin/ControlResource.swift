/// The resources that control and observe the origin itself; they are not logged.
enum ControlResource: String {
  case control = "/control"
  case log = "/log"
  case clearLog = "/log/clear"
  case statistics = "/stats"

  init?(path: String) { self.init(rawValue: path) }

  /// The only method that it accepts.
  var method: String {
    switch self {
    case .control, .clearLog: "POST"
    case .log, .statistics: "GET"
    }
  }
}
