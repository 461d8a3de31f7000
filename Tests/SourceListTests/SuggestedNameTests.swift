import SourceList
import Testing

@Suite struct SuggestedNameTests {
  @Test(arguments: [
    ("a b.bin", "a b.bin"),
    ("été €.pdf", "été €.pdf"),
    (" a.bin\t", "a.bin"),
    // Only the last part of a path counts, whichever slash it has.
    ("../../etc/passwd", "passwd"),
    ("/etc/cron.d/job", "job"),
    ("C:\\Users\\x\\a.txt", "a.txt"),
    ("..\\a", "a"),
    ("a/\u{301}b", "\u{301}b"),
    // No settings, and no options of commands.
    (".bashrc", "_bashrc"),
    ("..a", "_.a"),
    ("-rf", "_rf"),
    ("--output=x", "_-output=x"),
    (" .profile", "_profile"),
    ("/ -x", "_x"),
    // Nothing that moves a cursor or turns text around.
    ("a\u{1B}[2Jb\nc\u{0}d", "a_[2Jb_c_d"),
    ("a\u{9B}b\u{7F}c", "a_b_c"),
    ("evil\u{202E}txt.exe", "evil_txt.exe"),
    ("a\u{2066}b\u{200F}c\u{61C}d\u{FEFF}e\u{2028}f", "a_b_c_d_e_f"),
    // Nothing that looks like no character.
    ("a\u{3164}b\u{115F}c\u{2800}d\u{180B}e\u{E0100}", "a_b_c_d_e_"),
    // Some scripts need joiners, and emoji a selector of their form.
    ("\u{200D}a", "_a"),
    ("\u{200C}.bashrc", "_.bashrc"),
    ("نامه\u{200C}ها.pdf", "نامه\u{200C}ها.pdf"),
    ("\u{2764}\u{FE0F}.txt", "\u{2764}\u{FE0F}.txt"),
    // After other characters, the selector changes nothing that is seen.
    ("\u{FE0F}a\u{FE0F}é\u{FE0F}\u{FE0F} \u{FE00}.\u{FE0E}", "_a_é\u{FE0F}_ _._"),
  ])
  func `a name is made safe`(text: String, name: String) {
    let safe = SuggestedName.safe(text)
    #expect(safe.map { Array($0.utf8) } == Array(name.utf8))
  }

  @Test(arguments: [
    "", " ", ".", "..", "...", " .. ", "a/", "a\\", "/", "a/..", "\u{2003}", "a.httpfs-part",
    "a.httpfs-part.record", "a.httpfs-origin", "s.httpfs-next", "\u{3164}", "\u{2800}", "\u{200D}",
    "\u{301}\u{301}", ".\u{301}", "\u{202E}", "\u{1B}",
  ])
  func `no name is made of what names no file, or a file of httpfs`(text: String) {
    #expect(SuggestedName.safe(text) == nil)
  }

  @Test func `a long name is cut before its extension, and between characters`() {
    let ascii = SuggestedName.safe(String(repeating: "n", count: 5000) + ".tar.gz")
    #expect(ascii == String(repeating: "n", count: 252) + ".gz")
    let wide = SuggestedName.safe(String(repeating: "€", count: 100) + ".pdf")
    #expect(wide == String(repeating: "€", count: 83) + ".pdf")
    let whole = String(repeating: "n", count: 251) + ".bin"
    #expect(SuggestedName.safe(whole) == whole)
    // What follows the dot is no extension.
    let ending = "." + String(repeating: "e", count: 300)
    #expect(SuggestedName.safe("a" + ending)?.utf8.count == 255)
  }
}
