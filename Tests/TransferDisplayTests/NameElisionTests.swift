import Testing
import TextFormat
import TransferDisplay

@Suite struct NameElisionTests {
  private let parts = (1...40).map { "many/part-\($0 < 10 ? "0" : "")\($0).parquet" }

  @Test func namesAreCutWhereTheyAreEqual() {
    let elision = NameElision(parts, ellipsis: "…")
    #expect(parts.map { elision.shortened($0, to: 22) } == parts)
    #expect(elision.shortened(parts[6], to: 16) == "…part-07.parquet")
    #expect(elision.shortened(parts[6], to: 12) == "…-07.parquet")
    #expect(elision.shortened(parts[6], to: 11) == "…07.parquet")
    #expect(elision.shortened(parts[6], to: 8) == "…07.par…")
    #expect(Set(parts.map { elision.shortened($0, to: 4) }).count == parts.count)
  }

  @Test(arguments: 1...30)
  func noNameIsWiderThanItsColumn(width: Int) {
    let names = parts + ["many/映画の長い名前.parquet"]
    for elision in [NameElision(names, ellipsis: "…"), NameElision(names, ellipsis: "...")] {
      for name in names { #expect(displayWidth(elision.shortened(name, to: width)) <= width) }
    }
  }

  @Test func oneNameAndEqualNamesAreCutInTheMiddle() {
    let name = "debian-12.5.0-amd64-netinst.iso"
    #expect(NameElision([name], ellipsis: "…").shortened(name, to: 16) == "debian-1…nst.iso")
    #expect(displayWidth(NameElision([name, name], ellipsis: "…").shortened(name, to: 16)) <= 16)
  }
}
