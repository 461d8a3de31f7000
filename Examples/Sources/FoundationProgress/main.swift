// Shows a download as a `Foundation.Progress`, as part of a tree of progress objects.
//
//   swift run FoundationProgress https://example.org/a.iso a.iso
import Foundation
import HTTPTransfer
import HTTPTransferFoundation

guard CommandLine.arguments.count == 3 else {
  print("usage: FoundationProgress URL FILE")
  exit(64)
}
do {
  let url = try RemoteURL(CommandLine.arguments[1])
  let transfer = TransferClient().transfer(
    Request(url: url, destination: .file(CommandLine.arguments[2])))
  let download = transfer.makeProgress()
  // The download is nine tenths of the work, its inspection the rest.
  let whole = Progress(totalUnitCount: 10)
  whole.addChild(download, withPendingUnitCount: 9)
  let display = Task {
    while !Task.isCancelled {
      let speed = download.userInfo[.throughputKey] as? Int ?? 0
      let timeLeft = download.userInfo[.estimatedTimeRemainingKey] as? Double
      print(
        "\(Int(whole.fractionCompleted * 100)) %, \(download.completedUnitCount) bytes, "
          + "\(speed / 1_000_000) MB/s, \(timeLeft.map { "\(Int($0)) s left" } ?? "no end in sight")"
      )
      try? await Task.sleep(for: .milliseconds(500))
    }
  }
  defer { display.cancel() }
  _ = try await transfer.result()
  // The mirror is updated a moment later.
  while !download.isFinished { try await Task.sleep(for: .milliseconds(10)) }
  let size = try URL(fileURLWithPath: CommandLine.arguments[2])
    .resourceValues(forKeys: [.fileSizeKey]).fileSize
  whole.completedUnitCount += 1
  print("\(Int(whole.fractionCompleted * 100)) %: a file of \(size ?? 0) bytes")
} catch {
  print("FoundationProgress: \(error)")
  exit(1)
}
