// Uploads a file with PUT and shows the number of bytes sent, from the sums of the events.
//
//   swift run Upload report.pdf https://user:password@example.org/inbox/report.pdf
import Glibc
import HTTPTransfer
import HTTPTypes

guard CommandLine.arguments.count == 3 else {
  print("usage: Upload FILE URL")
  exit(64)
}
do {
  var request = Request(url: try RemoteURL(CommandLine.arguments[2]), method: .put)
  request.body = .file(CommandLine.arguments[1], contentType: "application/octet-stream")
  // An upload that a redirect turned into a GET would look successful.
  request.redirects.keepsMethod = true
  let transfer = TransferClient().transfer(request)
  let events = transfer.events
  transfer.start()
  var sent: Int64 = 0
  for await event in events {
    switch event.kind {
    case .sent(let byteCount):
      // Negative if the server wants the bytes again, for example after a refused authentication.
      sent += byteCount
      print("\r\(sent) of \(transfer.progress.bodyByteCount ?? 0) bytes sent", terminator: "")
      fflush(nil)
    case .retrying(let error, let attempt, let delay):
      print("\n\(error); attempt \(attempt + 1) in \(delay)")
    case .redirected(let url, let status): print("\n\(status): on to \(url)")
    default: break
    }
  }
  print()
  let result = try await transfer.result()
  print("HTTP \(result.response.status.code), \(sent) bytes: \(result.text)")
} catch {
  print("Upload: \(error)")
  exit(1)
}
