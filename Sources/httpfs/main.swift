import ArgumentParser
import Glibc
import HTTPTransfer

keepStandardDescriptorsTaken()
NetworkLibrary.keepCryptoAtExit()
Redaction.leaveMemoryOutOfCoreDumps()
let arguments = Redaction.hideSecretsOfCommandLine()
// Swift would repair text that is not UTF-8, and it would become the name of another file.
for argument in Redaction.originalArguments {
  guard let argument, String(validatingCString: argument) == nil else { continue }
  // Do not print a possible secret: words are hidden by their bytes.
  printToStandardError("httpfs: an argument is not UTF-8: such names cannot be used")
  exit(ExitCode.validationFailure.rawValue)
}
if var helper = MountHelper(program: CommandLine.arguments.first ?? "") {
  exit(helper.run(arguments))
}
var running: (any ParsableCommand.Type)?
do {
  let words = try ConfiguredArguments(
    MountOption.expanded(separatingShortOptions(try FamiliarOptions.replaced(arguments)))
  ).words
  var command = try HTTPFS.parseAsRoot(words)
  running = type(of: command)
  try command.run()
} catch let failure as CommandFailure {
  printToStandardError(Redaction.hidingArguments(in: "httpfs: \(failure)"))
  exit(ExitCode.validationFailure.rawValue)
} catch {
  let code = HTTPFS.exitCode(for: error)
  // The parser repeats unknown words, which may be URLs.
  guard code == .validationFailure else { HTTPFS.exit(withError: error) }
  let text = UsageMessage.text(of: error, from: running)
  if !text.isEmpty {
    let commands = HTTPFS.configuration.subcommands.compactMap { $0.configuration.commandName }
    let message = UsageMessage(text, commands: commands)
    printToStandardError(Redaction.hidingArguments(in: "\(message)"))
  }
  exit(code.rawValue)
}
