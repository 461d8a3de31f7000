import LinuxSystem
import Testing

@Suite struct MountTableTests {
  private static let mountinfo = """
    22 28 0:21 / /proc rw,nosuid - proc proc rw
    28 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw
    99 28 0:52 / /mnt/with\\040space\\011tab\\134slash rw,nosuid,nodev - fuse.httpfs httpfs rw
    100 28 0:53 / /mnt/x rw - tmpfs a\\040b rw
    101 100 0:54 / /mnt/x rw shared:5 - fuse.httpfs urls.txt rw,user_id=0
    broken line
    1 2 3 4 5 6 7 8 9
    """

  private let table = MountTable(mountinfo: Array(mountinfo.utf8))

  @Test func everyWellFormedLineIsAnEntry() {
    #expect(
      table.entries.map(\.fileSystemType) == [
        "proc", "ext4", "fuse.httpfs", "tmpfs", "fuse.httpfs",
      ])
  }

  @Test func octalEscapesAreUndone() {
    let entry = table.mount(at: "/mnt/with space\ttab\\slash")
    #expect(entry?.fileSystemType == "fuse.httpfs")
    #expect(entry?.device == "0:52")
  }

  @Test func theTopmostOfTwoMountsCounts() {
    #expect(table.mount(at: "/mnt/x")?.source == "urls.txt")
    #expect(table.mount(at: "/mnt/x/") == nil)
    #expect(table.mount(at: "/mnt") == nil)
  }

  @Test(arguments: ["", "\n\n", "\\", "1 2 3 4 \\04 6 - a b c", "1 2 3 4 \\777 6 - a b c"])
  func oddTextNeverTraps(text: String) {
    _ = MountTable(mountinfo: Array(text.utf8))
  }
}
