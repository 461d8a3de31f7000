/// Identifies one transfer.
public struct TransferID: Hashable, Sendable, Comparable {
  let rawValue: UInt64

  public static func < (one: TransferID, two: TransferID) -> Bool { one.rawValue < two.rawValue }
}
