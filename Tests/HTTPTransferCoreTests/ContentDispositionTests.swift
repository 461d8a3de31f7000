import HTTPTransferCore
import Testing

@Suite struct ContentDispositionTests {
  private func fileName(_ field: String) -> String? {
    ContentDisposition(field: Array(field.utf8)).fileName
  }

  @Test(arguments: [
    ("attachment; filename=a.bin", "a.bin"),
    ("attachment; filename=\"a b.bin\"", "a b.bin"),
    ("inline;filename=a.bin;size=3", "a.bin"),
    ("ATTACHMENT; FileName = \"a.bin\"", "a.bin"),
    ("attachment; filename=\"a;b=c.bin\"; x=y", "a;b=c.bin"),
    ("attachment; filename=\"a\\\"b\\\\c\"", "a\"b\\c"),
    ("attachment; x=\"; filename=b\"; filename=a", "a"),
    ("attachment; filename=\"été.pdf\"", "été.pdf"),
    // The extended form is preferred, wherever it stands.
    ("attachment; filename*=UTF-8''%e2%82%ac.pdf; filename=euro.pdf", "€.pdf"),
    ("attachment; filename=euro.pdf; filename*=utf-8'en'%E2%82%AC%20x.pdf", "€ x.pdf"),
    ("attachment; filename*=ISO-8859-1''%e9t%e9.pdf", "été.pdf"),
    // It is left out if it is malformed, or in another charset.
    ("attachment; filename=a; filename*=UTF-8''%e9.pdf", "a"),
    ("attachment; filename=a; filename*=KOI8-R''%c1", "a"),
    ("attachment; filename=a; filename*=UTF-8''%4", "a"),
    ("attachment; filename=a; filename*=UTF-8''%zz", "a"),
    ("attachment; filename=a; filename*=UTF-8'b", "a"),
    ("attachment; filename=a; filename*=UTF-8''", "a"),
    // What servers send beside the grammar.
    ("filename=a.bin", "a.bin"),
    ("attachment; filename=my report.pdf ; x=y", "my report.pdf"),
    ("attachment; filename=\"a.bin", "a.bin"),
    ("attachment; filename=\"a\"junk; filename=b", "a"),
    ("attachment; filename=; filename=b", "b"),
    ("attachment;;; ;filename=b;", "b"),
    // A percent sign in the plain form is a character.
    ("attachment; filename=\"100%25.bin\"", "100%25.bin"),
  ])
  func `the name is read from either form`(field: String, name: String) {
    #expect(fileName(field) == name)
  }

  @Test(arguments: [
    "", "attachment", "attachment; filename", "attachment; filename=", "attachment; filename=\"\"",
    "attachment; name=a", "attachment; filename*=a.bin", ";;;;", "=", "==;=", "attachment; =a",
    "attachment; filename*0=a",
  ])
  func `a field without a name has none`(field: String) {
    #expect(fileName(field) == nil)
  }

  @Test func `bytes that are not UTF-8 are ISO-8859-1`() {
    let field = Array("attachment; filename=\"caf".utf8) + [0xE9] + Array(".pdf\"".utf8)
    #expect(ContentDisposition(field: field).fileName == "café.pdf")
  }

  @Test(arguments: [";", "=", "\"", "\\", "a=\";", "filename=;", "filename*=UTF-8''%41;", "'", "%"])
  func `the longest field costs little, whatever it repeats`(part: String) {
    let count = ContentDisposition.maximumByteCount / part.utf8.count
    let field = String(repeating: part, count: count)
    let time = ContinuousClock().measure { for _ in 0..<20 { _ = fileName(field) } }
    // The bound leaves room for a busy machine; work that grows with the square needs longer.
    #expect(time < .seconds(5))
    let long = field + String(repeating: " ", count: 8) + "; filename=a"
    #expect(fileName(long) == nil)
  }
}
