// Downloads a URL to a file, with a line of progress.
//
//   swift run Download https://example.org/big.iso big.iso [sha-256=HEX]
//
// After an interruption, the same command resumes the download.
import Glibc
import HTTPTransfer

/// Rewrites one line until the transfer has ended.
func show(_ transfer: Transfer) async {
  var isOver = false
  while !isOver {
    let progress = transfer.progress
    isOver = progress.state.isFinal
    let percent = progress.fractionCompleted.map { "\(Int($0 * 100)) %" } ?? "? %"
    let speed = Int((isOver ? progress.averageBytesPerSecond : progress.bytesPerSecond) / 1e6)
    let timeLeft = progress.estimatedTimeLeft.map { ", \($0.components.seconds) s left" } ?? ""
    print(
      "\r\(percent), \(progress.receivedByteCount) bytes, \(speed) MB/s, "
        + "\(progress.connections) connections\(timeLeft)        ", terminator: "")
    fflush(nil)
    if !isOver { try? await Task.sleep(for: .milliseconds(100)) }
  }
  print()
}

guard (3...4).contains(CommandLine.arguments.count) else {
  print("usage: Download URL FILE [ALGORITHM=HEX]")
  exit(64)
}
do {
  let url = try RemoteURL(CommandLine.arguments[1])
  var request = Request(url: url, destination: .file(CommandLine.arguments[2]))
  if CommandLine.arguments.count == 4 { request.checksum = try Checksum(CommandLine.arguments[3]) }
  let transfer = TransferClient().transfer(request)
  async let display: Void = show(transfer)
  do {
    let result = try await transfer.result()
    await display
    print("\(result.byteCount) bytes, \(result.resumedByteCount) of an earlier run")
  } catch {
    await display
    throw error
  }
} catch {
  print("Download: \(error)")
  exit(1)
}
