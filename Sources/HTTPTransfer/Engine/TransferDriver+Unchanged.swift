internal import HTTPTransferCore
internal import HTTPTypes

/// Asks about a file that an earlier transfer has finished, and leaves it if it is still the same.
extension TransferDriver {
  /// Fields with which the caller asks on conditions of his own.
  private static let conditions: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
  ]

  func hasCondition(_ request: Request) -> Bool {
    Self.conditions.contains {
      request.fields[$0] != nil || request.confidentialFields[$0] != nil
    }
  }

  /// Lets the server answer without a body if it still has the version that is there.
  ///
  /// - Returns: whether it was asked so.
  func setCondition(of exchange: inout ExchangeRequest) -> Bool {
    // Not by the date: a server also answers 304 for an older file that has taken the place of a newer one.
    // A weak tag is a server's own, and says nothing of another server's bytes.
    guard asksAboutEarlier, let tag = earlier?.entityTag, !tag.isWeak || mirrors.count == 1 else {
      return false
    }
    exchange.fields[fields: .ifNoneMatch] = [tag.field(.ifNoneMatch)]
    return true
  }

  /// Whether no response has said yet if the version that is there is still the one.
  private var asksAboutEarlier: Bool {
    earlier != nil && version == nil && !isConfirmed && request.method == .get
  }

  /// Whether an answer says that there is no other version, or shows it: not every server looks at
  /// conditions, and not every version can be asked about by one.
  func isUnchanged(_ verdict: ResponseVerdict, by exchange: SegmentExchange) -> Bool {
    guard asksAboutEarlier, let earlier else { return false }
    switch verdict {
    case .notModified: return exchange.isConditional
    case .part(let content, _), .whole(let content):
      guard earlier.isResumable, content.strength == .strong else { return false }
      // What is there may be a part of the whole, or its decoded form.
      guard request.range == nil, !request.decodesContent else { return false }
      return content.completeLength == earlier.completeLength
        && earlier.compare(content) == .same
    default: return false
    }
  }

  /// Whether a 304 names another entity tag than it was asked about.
  func confirmsAnother(_ head: HTTPResponse) -> Bool {
    guard head.status.code == 304, version == nil, let asked = earlier?.entityTag,
      let named = ContentVersion(head.headerFields, completeLength: nil).entityTag
    else { return false }
    return asked.bytes != named.bytes
  }
}

extension ContentVersion {
  /// Whether nothing tells it from other versions of its length.
  var isAnonymous: Bool { entityTag == nil && lastModified == nil }
}
