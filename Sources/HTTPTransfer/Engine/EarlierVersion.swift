internal import HTTPTransferCore
internal import HTTPTypes

/// The version of the whole file that an earlier transfer left at the destination.
///
/// The transfer asks the server whether it has another one.
struct EarlierVersion: Sendable {
  let content: ContentVersion

  /// The fields of a caller's own conditions.
  private static let conditions: [HTTPField.Name] = [
    .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
  ]

  static func hasCondition(_ request: Request) -> Bool {
    conditions.contains { request.fields[$0] != nil || request.confidentialFields[$0] != nil }
  }

  /// Lets the server answer without a body if it still has the version at the destination.
  ///
  /// - Parameters:
  ///   - exchange: the request.
  ///   - isAlone: whether there is no other server.
  /// - Returns: whether the condition was set.
  func setCondition(of exchange: inout ExchangeRequest, isAlone: Bool) -> Bool {
    // No condition on the date: a server also answers 304 for an older file that replaced a newer
    // one. A weak tag belongs to one server and says nothing about another server's bytes.
    guard let tag = content.entityTag, !tag.isWeak || isAlone else { return false }
    exchange.fields[fields: .ifNoneMatch] = [tag.field(.ifNoneMatch)]
    return true
  }

  /// Whether an answer states or shows that there is no other version.
  ///
  /// Some servers ignore conditions, and some versions cannot be expressed in one.
  func isConfirmed(by verdict: ResponseVerdict, isConditional: Bool, _ request: Request) -> Bool {
    switch verdict {
    case .notModified: return isConditional
    case .part(let answer, _), .whole(let answer):
      guard content.isResumable, answer.strength == .strong else { return false }
      // The file at the destination may be a part of the whole, or its decoded form.
      guard request.range == nil, !request.decodesContent else { return false }
      return answer.completeLength == content.completeLength && content.compare(answer) == .same
    default: return false
    }
  }

  /// Whether a 304 names an entity tag other than the one in the condition.
  func isContradicted(by head: HTTPResponse) -> Bool {
    guard head.status.code == 304, let asked = content.entityTag,
      let named = ContentVersion(head.headerFields, completeLength: nil).entityTag
    else { return false }
    return asked.bytes != named.bytes
  }

  /// Whether an answer looks like a stand-in page, which must not replace the file.
  func isBetter(than answer: ContentVersion) -> Bool {
    let isAnonymous = content.entityTag == nil && content.lastModified == nil
    return !isAnonymous && answer.entityTag == nil && answer.lastModified == nil
  }
}
