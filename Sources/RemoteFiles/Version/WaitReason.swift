internal import HTTPTransfer
internal import TextFormat

/// Why a read, or an open, has not been answered yet.
enum WaitReason: Equatable {
  /// A request has failed, and the next one follows after a pause.
  case retrying(after: String, delay: Duration)
  /// Its bytes have arrived, and their piece is being hashed.
  case hashing
  /// The file has no URL to request.
  case locating
  /// Its bytes have arrived, and the disk has not stored them.
  case storing
  /// The file may send no more requests, and those in progress bring other bytes.
  case requestLimit(count: Int, silence: Duration)
  /// Its request waits for a slot at the server.
  case slot(SlotUse)
  /// Its request waits for a connection.
  case connecting(Duration)
  /// The server has asked for a pause.
  case held(Duration)
  /// A rate limit delays its response.
  case throttled(byteCountBefore: Int64)
  /// The server has its request and has not answered.
  case unanswered(Duration, isHedged: Bool)
  /// Its response has stalled.
  case silent(Duration, isHedged: Bool)
  /// Its response is arriving.
  case arriving(byteCountBefore: Int64)

  /// What has the slots of a server.
  struct SlotUse: Equatable {
    /// How many requests have a slot.
    let count: Int
    /// How many of them are the file's own.
    let ownCount: Int
    /// How long the server has sent nothing to any of them.
    let silence: Duration

    init(count: Int, ownCount: Int, silence: Duration) {
      self.count = count
      self.ownCount = min(ownCount, count)
      self.silence = silence
    }

    /// The use of a server's slots by all exchanges; nil if none has one.
    init(_ use: OriginUse?, ownCount: Int, now: ContinuousClock.Instant) {
      self.init(
        count: use?.exchangeCount ?? 0, ownCount: ownCount,
        silence: use?.silence(now: now) ?? .zero)
    }
  }

  /// How long a server may be silent before a read counts as waiting for it.
  static let silence = Duration.seconds(1)

  /// The reason in a few words, for people.
  var text: String {
    switch self {
    case .retrying(let failure, let delay):
      "retrying in \(Int((delay / .milliseconds(1)).rounded())) ms after: \(failure)"
    case .hashing: "its piece is being hashed"
    case .locating: "asking where the file is now"
    case .storing: "waiting for the disk of the cache"
    case .requestLimit(count: 0, _): "its request follows"
    case .requestLimit(let count, let silence):
      Self.isSilent(silence)
        ? "\(Self.nothing(for: silence)); \(Self.fileRequests(count, "wait")) for it"
        : "\(Self.fileRequests(count, "bring")) other bytes first"
    case .slot(let use): Self.text(of: use)
    case .connecting(let time):
      Self.isSilent(time)
        ? "connecting to the server for \(Self.seconds(time)) s" : "connecting to the server"
    case .held(let time):
      "the server has asked for no request for"
        + " \(max(0, Int((time / .seconds(1)).rounded(.up)))) s"
    case .throttled(let before): "held back by the rate limit" + Self.ahead(before)
    case .unanswered(let time, let isHedged):
      Self.isSilent(time)
        ? "request sent, no response for \(Self.seconds(time)) s" + Self.hedge(isHedged)
        : "request sent"
    case .silent(let time, let isHedged): Self.nothing(for: time) + Self.hedge(isHedged)
    case .arriving(let before): "downloading" + Self.ahead(before)
    }
  }

  private static func text(of use: SlotUse) -> String {
    if use.count > 0, isSilent(use.silence) {
      let wait = use.count == 1 ? "waits" : "wait"
      return "\(nothing(for: use.silence)); \(counted(use.count, "request")) \(wait) for it"
    }
    let others = use.count - use.ownCount
    if others > 0 {
      return "waiting for a free connection; other files use \(others) of \(use.count)"
    }
    return use.count > 0
      ? "waiting for a free connection; the file itself uses \(use.count)"
      : "waiting for a free connection; files of other servers use them"
  }

  private static func isSilent(_ time: Duration) -> Bool { time >= silence }

  private static func seconds(_ time: Duration) -> Int { Int(time / .seconds(1)) }

  private static func nothing(for time: Duration) -> String {
    "the server has sent nothing for \(seconds(time)) s"
  }

  /// `all 32 requests of the file wait`; `the request of the file waits`.
  private static func fileRequests(_ count: Int, _ verb: String) -> String {
    count == 1
      ? "the request of the file \(verb)s" : "all \(count) requests of the file \(verb)"
  }

  private static func hedge(_ isHedged: Bool) -> String {
    isHedged ? "; asked again over another connection" : ""
  }

  private static func ahead(_ byteCount: Int64) -> String {
    byteCount > 0 ? ", \(humanBytes(byteCount)) come before it" : ""
  }
}
