// Reads a body as it arrives and hashes it with FNV-1a (64 bits), without storing it.
//
//   swift run Stream https://example.org/big.iso
//
// If hashing is slower than the network, the network waits: memory holds no more than the buffer of
// the destination.
import Glibc
import HTTPTransfer

guard CommandLine.arguments.count == 2 else {
  print("usage: Stream URL")
  exit(64)
}
do {
  let url = try RemoteURL(CommandLine.arguments[1])
  let request = Request(url: url, destination: .stream(bufferByteCount: 256 << 10))
  let transfer = TransferClient().transfer(request)
  var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  var byteCount = 0
  var chunkCount = 0
  for try await chunk in transfer.body {
    for byte in chunk { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    byteCount += chunk.count
    chunkCount += 1
  }
  let result = try await transfer.result()
  let type = result.response.headerFields.first { $0.name.canonicalName == "content-type" }?.value
  print("\(byteCount) bytes of \(type ?? "unknown type") in \(chunkCount) chunks")
  print("fnv-1a \(String(hash, radix: 16)), \(result.duration)")
} catch {
  print("Stream: \(error)")
  exit(1)
}
