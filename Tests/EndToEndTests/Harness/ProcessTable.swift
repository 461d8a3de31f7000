import Foundation
import Glibc

/// Facts about other processes in `/proc`.
enum ProcessTable {
  /// The words of a process's command line, as every user of the machine sees them.
  static func commandLine(of process: pid_t) -> [String] {
    (FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data())
      .split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The processes whose command line satisfies `condition`.
  static func processes(where condition: ([String]) -> Bool) -> [pid_t] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { pid_t($0) }.filter { condition(commandLine(of: $0)) }
  }

  /// The watchdogs of the mount at `mountpoint`: normally one.
  static func watchdogs(of mountpoint: String) -> [pid_t] {
    processes { $0.first == "httpfs-watchdog" && $0.last == mountpoint }
  }

  /// The targets of a process's open descriptors.
  static func descriptors(of process: pid_t) -> [String] {
    let directory = "/proc/\(process)/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\($0)")
    }
  }

  /// The resident memory of a process in bytes (`VmRSS` of proc(5)).
  static func residentByteCount(of process: pid_t) throws -> Int64 {
    let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    for line in text.split(separator: "\n") where line.hasPrefix("VmRSS:") {
      let digits = line.filter(\.isNumber)
      if let kibibytes = Int64(digits) { return kibibytes << 10 }
    }
    throw HarnessError("no VmRSS of \(process)")
  }
}
