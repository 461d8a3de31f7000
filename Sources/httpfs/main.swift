import ArgumentParser

keepStandardDescriptorsTaken()
Secrecy.leaveMemoryOutOfCoreDumps()
HTTPFS.main(separatingShortOptions(Secrecy.hideSecretsOfCommandLine()))
