/// Repeats one kind of pure work and prints a digest of the results, so that nothing is optimised
/// away.
///
///     CoreBenchmarks            the kinds of work
///     CoreBenchmarks NAME N     does NAME for N items
///
/// `scripts/bench-core` counts the instructions.
import Glibc

let arguments = CommandLine.arguments.dropFirst()
if arguments.isEmpty {
  for workload in workloads { print(workload.name) }
} else if arguments.count == 2, let count = Int(arguments.last ?? ""), count >= 0,
  let workload = workloads.first(where: { $0.name == arguments.first })
{
  print(try workload.run(count))
} else {
  print("usage: CoreBenchmarks [NAME COUNT]")
  exit(64)
}
