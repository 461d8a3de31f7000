import ArgumentParser
import Glibc

keepStandardDescriptorsTaken()
Secrecy.leaveMemoryOutOfCoreDumps()
let arguments = Secrecy.hideSecretsOfCommandLine()
if var helper = MountHelper(program: CommandLine.arguments.first ?? "") {
  exit(helper.run(arguments))
}
HTTPFS.main(separatingShortOptions(arguments))
