import ArgumentParser
import Glibc

keepStandardDescriptorsTaken()
Secrecy.leaveMemoryOutOfCoreDumps()
let arguments = Secrecy.hideSecretsOfCommandLine()
if var helper = MountHelper(program: CommandLine.arguments.first ?? "") {
  exit(helper.run(arguments))
}
do throws(CommandFailure) {
  HTTPFS.main(try ConfiguredArguments(separatingShortOptions(arguments)).words)
} catch {
  printToStandardError("httpfs: \(error)")
  exit(ExitCode.validationFailure.rawValue)
}
