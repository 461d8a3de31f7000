import OriginContent

/// Decides whether the model allows an answer.
///
/// The rules are those of docs/SEMANTICS.md. An answer has bytes of the pinned version or is an
/// error. The error is `ESTALE` only if the version has changed, another one only if the server has
/// failed or the daemon was killed.
struct ModelJudge {
  /// An open file of the mount.
  struct Handle {
    let number: Int
    let agent: Int
    let file: Int
    let version: UInt64
  }

  /// The time limit of one system call: the deadline of reads plus 5 s.
  let callLimit: Double

  /// The seconds for which a name may still be found after its removal from the list, or not yet
  /// after its addition.
  private static let nameMemory = 1.5

  private static let deadDaemonErrors: Set<String> = ["ENOTCONN", "ECONNABORTED", "EIO", "SIGBUS"]

  /// Judges an answer to an open.
  ///
  /// - Parameters:
  ///   - answer: the answer that the reader got.
  ///   - file: the file.
  ///   - period: from before the open to after its answer.
  ///   - newest: the epoch of the file that an earlier open has shown.
  ///   - isOriginSilent: whether opens trust what they know without asking the server.
  ///   - isKilled: whether the daemon was killed in the period.
  /// - Returns: the epoch that was opened, or the rule that was broken.
  func judgeOpen(
    _ answer: ReaderAgent.Answer, of file: ModelFile, in period: ClosedRange<Double>,
    newest: Int, isOriginSilent: Bool, isKilled: Bool
  ) -> Result<Int?, ModelViolation> {
    let faults = file.faults(felt: period) { $0.openMemory }
    let namePeriod = max(0, period.lowerBound - Self.nameMemory)...period.upperBound
    switch answer {
    case .opened(let length):
      guard let version = file.version(ofLength: length) else {
        return .failure(ModelViolation("a length of \(length), which no version has"))
      }
      guard file.isListed(ever: namePeriod) else {
        return .failure(ModelViolation("opened, though it is not in the list"))
      }
      let visible = file.visibleEpochs(in: period)
      let isCurrent = visible.last { file.epochs[$0].version == version }
      if let isCurrent { return .success(isCurrent) }
      guard !faults.isEmpty || isOriginSilent else {
        return .failure(
          ModelViolation(
            "opened version \(version), current are \(visible.map { file.epochs[$0] })"))
      }
      let known = file.epochs.indices.last { file.epochs[$0].version == version } ?? 0
      return known >= newest
        ? .success(known)
        : .failure(ModelViolation("opened version \(version), which is known to be replaced"))
    case .failed(let symbol):
      var allowed = faults.reduce(into: Set<String>()) { $0.formUnion($1.openErrors) }
      if !file.isListed(always: namePeriod) { allowed.insert("ENOENT") }
      if file.visibleEpochs(in: namePeriod).count > 1 { allowed.insert("ESTALE") }
      // Without its mount, the name is in an empty directory.
      if isKilled { allowed.formUnion(Self.deadDaemonErrors.union(["ENOENT"])) }
      return allowed.contains(symbol)
        ? .success(nil)
        : .failure(ModelViolation("open failed with \(symbol), felt are \(faults)"))
    default: return .failure(ModelViolation("no answer to an open: \(answer)"))
    }
  }

  /// Judges a read of `count` bytes at `offset`, or of the whole file if `count` is nil.
  func judgeRead(
    _ answer: ReaderAgent.Answer, of handle: Handle, at offset: Int64, _ count: Int?,
    file: ModelFile, in period: ClosedRange<Double>, isKilled: Bool
  ) -> ModelViolation? {
    let length = file.length(of: handle.version)
    let expectedCount = max(0, min(Int64(count ?? .max), length - offset))
    switch answer {
    case .bytes(let got, let digest, let failure):
      if got > expectedCount {
        return ModelViolation("\(got) bytes, where there are \(expectedCount)")
      }
      let expected = Digest.ofContent(
        seed: file.seed, version: handle.version, offset: offset, byteCount: got)
      if digest != expected {
        return ModelViolation(explanation(of: digest, handle, file, at: offset, got))
      }
      if let failure {
        return rule(brokenBy: failure, handle, file, in: period, isKilled: isKilled)
      }
      guard got < expectedCount else { return nil }
      if count == nil || got == 0 {
        return ModelViolation("the end of the file at \(offset + got) of \(length)")
      }
      // A short read means an error that the next read would have returned.
      return allowedErrors(handle, file, in: period, isKilled: isKilled).isEmpty
        ? ModelViolation("only \(got) of \(expectedCount) bytes") : nil
    case .failed(let symbol):
      return rule(brokenBy: symbol, handle, file, in: period, isKilled: isKilled)
    default: return ModelViolation("no answer to a read: \(answer)")
    }
  }

  private func rule(
    brokenBy symbol: String, _ handle: Handle, _ file: ModelFile, in period: ClosedRange<Double>,
    isKilled: Bool
  ) -> ModelViolation? {
    let allowed = allowedErrors(handle, file, in: period, isKilled: isKilled)
    return allowed.contains(symbol)
      ? nil : ModelViolation("\(symbol), where only \(allowed.sorted()) can be")
  }

  /// The errors that the circumstances excuse.
  private func allowedErrors(
    _ handle: Handle, _ file: ModelFile, in period: ClosedRange<Double>, isKilled: Bool
  ) -> Set<String> {
    let faults = file.faults(felt: period) { $0.readMemory }
    var allowed = faults.reduce(into: Set<String>()) { $0.formUnion($1.readErrors) }
    if file.hasChanged(from: handle.version, by: period.upperBound) {
      allowed.formUnion(["ESTALE", "SIGBUS"])
    }
    // A mapping fails with EINVAL if the file's length cannot be read.
    if isKilled { allowed.formUnion(Self.deadDaemonErrors.union(["EINVAL"])) }
    return allowed
  }

  /// The origin of the wrong bytes, as far as it can be determined.
  private func explanation(
    of digest: String, _ handle: Handle, _ file: ModelFile, at offset: Int64, _ count: Int64
  ) -> String {
    for version in Set(file.epochs.map(\.version)) {
      let other = Digest.ofContent(
        seed: file.seed, version: version, offset: offset, byteCount: count)
      if other == digest { return "bytes of version \(version), not of \(handle.version)" }
    }
    return "\(count) wrong bytes at \(offset): of no version, or mixed"
  }
}

/// A broken rule of the model.
struct ModelViolation: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
