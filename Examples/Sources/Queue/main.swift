// Downloads several URLs into a directory, four at a time, and prints the events.
//
//   swift run Queue downloads https://example.org/a.iso https://example.org/b.iso
import Glibc
import HTTPTransfer

guard CommandLine.arguments.count > 2 else {
  print("usage: Queue DIRECTORY URL...")
  exit(64)
}
let directory = CommandLine.arguments[1]
var configuration = TransferQueue.Configuration()
configuration.maximumConcurrent = 4
configuration.learnsLengths = true
let queue = TransferQueue(configuration: configuration)
let events = queue.events
var names: [TransferID: String] = [:]
do {
  for text in CommandLine.arguments.dropFirst(2) {
    let url = try RemoteURL(text)
    let name = url.path.split(separator: "/").last.map(String.init) ?? "index.html"
    let transfer = queue.add(Request(url: url, destination: .file("\(directory)/\(name)")))
    names[transfer.id] = name
  }
} catch {
  print("Queue: \(error)")
  exit(1)
}

let display = Task {
  while !Task.isCancelled {
    let progress = queue.progress
    let accurate = progress.accurateFraction.map { "\(Int($0 * 100)) %" } ?? "? %"
    print(
      "\(Int(progress.simpleFraction * 100)) % of the files, \(accurate) of the bytes, "
        + "\(progress.runningCount) running, \(Int(progress.bytesPerSecond / 1e6)) MB/s")
    try? await Task.sleep(for: .seconds(1))
  }
}
queue.start()
listening: for await event in events {
  switch event.kind {
  case .added: break
  case .started(let id): print("\(names[id] ?? "?"): started")
  case .finished(let id, let result): print("\(names[id] ?? "?"): \(result.byteCount) bytes")
  case .failed(let id, let error): print("\(names[id] ?? "?"): \(error)")
  case .queueFinished: break listening
  }
}
display.cancel()
exit(queue.progress.finishedCount == queue.progress.transferCount ? 0 : 1)
