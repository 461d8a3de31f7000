import ArgumentParser

keepStandardDescriptorsTaken()
HTTPFS.main(separatingShortOptions(Array(CommandLine.arguments.dropFirst())))
