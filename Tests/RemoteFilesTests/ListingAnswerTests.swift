import HTTPTransferCore
import HTTPTypes
import Testing

@testable import RemoteFiles

/// The meaning of a listing's head.
@Suite struct ListingAnswerTests {
  private func answer(
    from path: String, type: String = "text/html"
  ) throws -> ListingAnswer {
    let source = ListingSource(path: "d", url: try RemoteURL("http://user@h/d/"), fields: [:])
    let fields: HTTPFields = [.contentType: type]
    return try ListingAnswer(
      fields, ContentVersion(fields, completeLength: 10), from: try RemoteURL("http://h" + path),
      to: source)
  }

  @Test("Names have the URL that the listing came from, with the credentials of its source")
  func url() throws {
    #expect(try answer(from: "/other/").url.text == "http://user@h/other/")
    #expect(throws: FileError.self) { try answer(from: "/file") }
  }

  @Test("A listing's URL, which each of its names holds, has 4 KiB at most")
  func longURL() throws {
    let room = (4 << 10) - "http://user@h//".utf8.count
    let path = "/" + String(repeating: "p", count: room) + "/"
    #expect(try answer(from: path).url.text.utf8.count == 4 << 10)
    #expect(throws: FileError.self) { try answer(from: "/p" + path.dropFirst()) }
  }

  @Test("A type of more than 1 KiB is none")
  func longType() {
    let type = "text/html; charset=" + String(repeating: "x", count: 2000)
    #expect(throws: FileError.self) { try answer(from: "/d/", type: type) }
  }
}
