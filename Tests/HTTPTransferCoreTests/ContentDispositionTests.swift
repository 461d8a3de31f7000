import HTTPTransferCore
import HTTPTypes
import Testing

/// The names that servers suggest.
@Suite struct ContentDispositionTests {
  private func name(_ value: String) -> String? {
    var fields = HTTPFields()
    fields[.contentDisposition] = value
    return ContentDisposition.fileName(fields)
  }

  @Test(
    "Names as servers write them",
    arguments: [
      (#"attachment; filename="report.pdf""#, "report.pdf"),
      ("attachment; filename=report.pdf", "report.pdf"),
      ("attachment;filename = report.pdf ; size=3", "report.pdf"),
      (#"inline; FILENAME="a \"b\" c.txt""#, #"a "b" c.txt"#),
      (#"attachment; filename="a;b=c.txt"; x=y"#, "a;b=c.txt"),
      ("attachment; filename*=UTF-8''%e2%82%ac%20rates.csv", "€ rates.csv"),
      ("attachment; filename*=iso-8859-1'en'%A3%20rates.csv", "£ rates.csv"),
      (#"attachment; filename="EURO.csv"; filename*=UTF-8''%e2%82%ac.csv"#, "€.csv"),
      (#"attachment; filename*=UTF-8''%e2%82; filename="EURO.csv""#, "EURO.csv"),
      (#"attachment; filename*=unknown''x; filename="EURO.csv""#, "EURO.csv"),
      (#"attachment; filename="C:\\dir\\a.txt""#, "a.txt"),
      (#"attachment; filename="/etc/passwd""#, "passwd"),
      ("attachment; filename*=UTF-8''..%2f..%2fx.bin", "x.bin"),
    ])
  func names(value: String, expected: String) {
    #expect(name(value) == expected)
  }

  @Test(
    "What cannot be the name of a file is none",
    arguments: [
      "", "attachment", "attachment; filename", "attachment; filename=", #"x; filename="""#,
      #"attachment; filename="..""#, #"attachment; filename=".profile""#,
      #"attachment; filename="a/.ssh""#, "attachment; filename*=UTF-8''a%00b",
      "attachment; filename*=UTF-8''a%0Ab", "attachment; filename*=UTF-8''%zz",
      "attachment; filename*=UTF-8''%", "attachment; filename*=a", #"attachment; filename="a"#
        + String(repeating: "b", count: 255) + #"""#,
    ])
  func none(value: String) {
    #expect(name(value) == nil)
  }

  @Test("A very long field is not parsed")
  func long() {
    #expect(name("attachment; filename=a; x=" + String(repeating: "y", count: 2000)) == nil)
  }
}
