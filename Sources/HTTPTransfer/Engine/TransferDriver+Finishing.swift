internal import HTTPTransferCore
internal import HTTPTypes

/// The end of a transfer: with success, as a failure, by a cancellation.
extension TransferDriver {
  func finish() {
    guard phase == .running, let response else { return }
    if let wanted = body?.byteCount, monitor.progress.sentByteCount < wanted {
      return fail(
        TransferError(
          .invalidResponse, response.url,
          "the server answered HTTP \(response.head.status.code) before it had the whole body",
          response: response.head))
    }
    endExchanges()
    table.removeAll()
    guard arePiecesVerified() else { return }
    let length = table.target.byteCount
    let checksum = request.checksum
    complete { [self] sink throws(FileFailure) in
      let bytes = try sink.finish(length: length, checksum: checksum)
      return { [self] in
        TransferResult(
          response: response.head, url: response.url, body: bytes, byteCount: length,
          resumedByteCount: monitor.progress.resumedByteCount, isUnchanged: false,
          rawByteCount: rawByteCount, duration: ContinuousClock.now - startedAt)
      }
    } otherwise: { [self] error in
      guard !beginAnew(afterMismatch: error) else { return }
      fail(naming(transferError(error), besides: nil))
    }
  }

  /// Ends with success, and with the file as it is.
  func leaveEarlier(_ head: HTTPResponse, from url: RemoteURL) {
    endExchanges()
    table.removeAll()
    complete { [self] sink throws(FileFailure) in
      let length = try sink.keepEarlier()
      return { [self] in
        response = (head, url)
        monitor.emit(.responded(head, from: url))
        if length != reportedTotal {
          monitor.emit(.totalChanged(by: length - (reportedTotal ?? 0)))
          reportedTotal = length
        }
        monitor.emit(.resumed(byteCount: length))
        return TransferResult(
          response: head, url: url, body: [], byteCount: length, resumedByteCount: length,
          isUnchanged: true, rawByteCount: rawByteCount,
          duration: ContinuousClock.now - startedAt)
      }
    } otherwise: { [self] error in
      fail(transferError(error))
    }
  }

  /// Completes the destination by `work`, which may wait for the disk, and ends with the result that its
  /// function makes; `otherwise` gets its failure, unless the transfer was cancelled meanwhile.
  private func complete(
    by work:
      @escaping @Sendable (any BodySink) throws(FileFailure) -> @Sendable () -> TransferResult,
    otherwise: @escaping @Sendable (FileFailure) -> Void
  ) {
    phase = .finishing
    monitor.update {
      $0.state = .finishing
      $0.connections = 0
    }
    store.run(work) { [self] result in
      // What was asked of the destination before may have failed meanwhile, and has ended it all.
      guard phase == .finishing else { return }
      switch result {
      case .success(let makeResult):
        hasFinished = true
        end(.success(makeResult()))
      case .failure(let failure):
        if !takePendingCancel() { otherwise(failure) }
      }
    }
  }

  func fail(_ error: TransferError) {
    guard phase != .ended else { return }
    if let response = error.response, self.response == nil {
      monitor.emit(.responded(response, from: error.url))
    }
    end(.failure(error))
  }

  func end(
    _ outcome: Result<TransferResult, TransferError>, isSilent: Bool = false, removes: Bool = false
  ) {
    if phase != .idle { client.transferEnded() }
    client.noteConnections(of: table, at: request.url.normalizedOrigin)
    phase = .ended
    endExchanges()
    table.removeAll()
    body = nil
    guard case .failure(let error) = outcome else {
      return monitor.end(outcome, isSilent: isSilent)
    }
    // Whoever hears of the end may look at what is left.
    store.run { sink in
      sink.release(error)
      if removes { sink.remove() }
    } then: { [monitor] _ in
      monitor.end(outcome, isSilent: isSilent)
    }
  }

  /// Carries out a cancellation that came while the disk was busy.
  func takePendingCancel() -> Bool {
    guard let pending = pendingCancel else { return false }
    phase = .running
    cancel(isSilent: pending.isSilent, removes: pending.removes)
    return true
  }

  func transferError(_ failure: FileFailure) -> TransferError {
    TransferError(failure.code, request.url, failure.reason, errno: failure.errno)
  }
}
