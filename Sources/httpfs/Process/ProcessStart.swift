import Glibc

/// Opens the standard descriptors that are closed at the start, so that no other file gets their
/// numbers.
///
/// They are opened in the wrong direction, so that using them fails.
func keepStandardDescriptorsTaken() {
  for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
    _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
  }
}

/// Makes standard descriptors those of `/dev/null`.
func replaceWithNull(_ descriptors: [Int32]) {
  let null = open("/dev/null", O_RDWR | O_CLOEXEC)
  guard null >= 0 else { return }
  for descriptor in descriptors { dup2(null, descriptor) }
  if null > STDERR_FILENO { close(null) }
}

/// Converts `-x16` to `-x 16`, for commands whose users know that form from curl and aria2.
///
/// ArgumentParser takes the characters after a short option for further short options.
func separatingShortOptions(_ arguments: [String]) -> [String] {
  let letters: Set<Character>
  switch arguments.first {
  case "get", "put": letters = ["o", "i", "x", "j", "H"]
  case "mount": letters = ["H", "o"]
  default: return arguments
  }
  var separated: [String] = []
  var isValue = false
  var areOptionsOver = false
  for argument in arguments {
    if argument == "--" { areOptionsOver = true }
    let second = argument.dropFirst().first
    let isShortOption =
      !isValue && !areOptionsOver && argument.hasPrefix("-") && second.map(letters.contains) == true
    if isShortOption, argument.count > 2 {
      separated += [String(argument.prefix(2)), String(argument.dropFirst(2))]
      isValue = false
    } else {
      separated.append(argument)
      isValue = isShortOption
    }
  }
  return separated
}
