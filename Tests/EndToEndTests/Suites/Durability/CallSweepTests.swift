import Glibc
import Testing

/// The Nth system call on the cache fails, for every N.
///
/// `HTTPFS_CALL_SWEEP=all` selects every call of every kind. The default is every call of the most
/// important kinds, and some of the others.
extension RealMounts {
  @Suite struct CallSweeps {
    private static let syncs = "fsync,fdatasync"

    private static let common: [CallSweep] = [
      CallSweep(calls: "pwrite", errno: ENOSPC),
      CallSweep(calls: "pwrite", errno: EIO, effect: .torn, stride: 5),
      CallSweep(calls: "pwrite", errno: EDQUOT, staysBroken: true, stride: 5),
      CallSweep(calls: "pwrite", effect: .short, stride: 7),
      CallSweep(calls: "all", errno: EINTR, stride: 29),
      CallSweep(calls: syncs, errno: EIO),
      CallSweep(calls: syncs, errno: ENOSPC, effect: .torn, stride: 2),
      CallSweep(calls: "renameat", errno: EIO),
      CallSweep(calls: "ftruncate", errno: EIO),
    ]

    private static let thorough: [CallSweep] =
      [EIO, ENOSPC, EDQUOT, EFBIG, EROFS].flatMap { number in
        [
          CallSweep(calls: "pwrite", errno: number),
          CallSweep(calls: "pwrite", errno: number, staysBroken: true),
          CallSweep(calls: "all", errno: number),
          CallSweep(calls: "all", errno: number, effect: .torn),
        ]
      }

    static let mountSweeps: [CallSweep] =
      common + [
        CallSweep(calls: "mkdirat", errno: ENOSPC),
        CallSweep(
          calls: "mkdirat,openat,renameat,pwrite", errno: EROFS, staysBroken: true, stride: 9),
        CallSweep(calls: "openat", errno: EIO, stride: 7),
        CallSweep(calls: "pread", errno: EIO, stride: 5),
        CallSweep(calls: "splice", errno: EIO, stride: 7),
        CallSweep(calls: "unlinkat,fchmod,futimens,flock,fstat", errno: EIO, stride: 5),
      ] + (CallSweep.isExhaustive ? thorough : [])

    static let getSweeps: [CallSweep] =
      common + [
        CallSweep(calls: "openat,pread,unlinkat,fchmod,flock,fstat", errno: EIO)
      ] + (CallSweep.isExhaustive ? thorough : [])

    @Test(.timeLimit(.minutes(20)), arguments: mountSweeps)
    func `a failing call on the cache costs a mount no right byte`(sweep: CallSweep) {
      let failedCount = sweep.run { index in try MountSweepWorker(seed: 500 + UInt64(index) * 10) }
      print("\(sweep.testDescription): \(failedCount) failing calls of a mount")
      #expect(failedCount > 0)
    }

    @Test(.timeLimit(.minutes(20)), arguments: getSweeps)
    func `a failing call at the destination costs a download no right byte`(sweep: CallSweep) {
      let failedCount = sweep.run { index in try GetSweepWorker(seed: 600 + UInt64(index) * 10) }
      print("\(sweep.testDescription): \(failedCount) failing calls of a download")
      #expect(failedCount > 0)
    }
  }
}
