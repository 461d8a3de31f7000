import Glibc

/// The user's home directory, from `HOME` or the system's user database; nil if unknown.
func homeDirectory() -> String? {
  if let home = environmentVariable("HOME"), home.hasPrefix("/") { return home }
  guard let account = getpwuid(geteuid()), let home = account.pointee.pw_dir else { return nil }
  return String(cString: home)
}

/// The value of an environment variable; nil if it is unset or empty.
func environmentVariable(_ name: String) -> String? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return String(cString: value)
}
