import ArgumentParser

/// `httpfs unmount`: unmounts, as root or through fusermount3.
struct UnmountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unmount", abstract: "Unmount a mount point.", aliases: ["umount"])

  @Argument(help: "The mount point (default: the only mount).", completion: .directory)
  var mountpoint: String?

  @Flag(help: "Detach now, even if files are open; open files stay readable until they are closed.")
  var lazy = false

  func run() throws {
    try reportingFailure {
      let mount = try httpfsMount(at: mountPointOrOnlyOne(mountpoint))
      try Unmounting(mount: mount, lazy: lazy).perform()
    }
  }
}
