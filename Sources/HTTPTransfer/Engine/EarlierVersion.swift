internal import HTTPTransferCore
internal import HTTPTypes

/// The version of the whole file that an earlier transfer has left at the destination; the server is
/// asked whether it has another one.
struct EarlierVersion: Sendable {
  let content: ContentVersion

  /// Fields with which the caller asks on conditions of his own.
  private static let conditions: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
  ]

  static func hasCondition(_ request: Request) -> Bool {
    conditions.contains { request.fields[$0] != nil || request.confidentialFields[$0] != nil }
  }

  /// Lets the server answer without a body if it still has the version that is there.
  ///
  /// - Parameters:
  ///   - exchange: the request.
  ///   - isAlone: whether there is no other server.
  /// - Returns: whether it was asked so.
  func setCondition(of exchange: inout ExchangeRequest, isAlone: Bool) -> Bool {
    // Not by the date: a server also answers 304 for an older file that has taken the place of a newer one.
    // A weak tag is a server's own, and says nothing of another server's bytes.
    guard let tag = content.entityTag, !tag.isWeak || isAlone else { return false }
    exchange.fields[fields: .ifNoneMatch] = [tag.field(.ifNoneMatch)]
    return true
  }

  /// Whether an answer says that there is no other version, or shows it: not every server looks at
  /// conditions, and not every version can be asked about by one.
  func isConfirmed(by verdict: ResponseVerdict, isConditional: Bool, _ request: Request) -> Bool {
    switch verdict {
    case .notModified: return isConditional
    case .part(let answer, _), .whole(let answer):
      guard content.isResumable, answer.strength == .strong else { return false }
      // What is there may be a part of the whole, or its decoded form.
      guard request.range == nil, !request.decodesContent else { return false }
      return answer.completeLength == content.completeLength && content.compare(answer) == .same
    default: return false
    }
  }

  /// Whether a 304 names another entity tag than it was asked about.
  func isContradicted(by head: HTTPResponse) -> Bool {
    guard head.status.code == 304, let asked = content.entityTag,
      let named = ContentVersion(head.headerFields, completeLength: nil).entityTag
    else { return false }
    return asked.bytes != named.bytes
  }

  /// Whether an answer looks like a page that stands in for the file, which is not given for it.
  func isBetter(than answer: ContentVersion) -> Bool {
    let isAnonymous = content.entityTag == nil && content.lastModified == nil
    return !isAnonymous && answer.entityTag == nil && answer.lastModified == nil
  }
}
