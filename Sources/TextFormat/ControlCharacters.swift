/// Escapes control characters (C0, DEL, C1), line separators and bidirectional controls as
/// `\u{1B}`, so that the text can neither move the cursor of a terminal, nor start a new line, nor
/// show its characters in another order.
///
/// An escaped text stays as it is.
package func escapingControls(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: isControl) else { return text }
  var escaped = ""
  for scalar in text.unicodeScalars {
    if isControl(scalar) {
      escaped += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    } else {
      escaped.unicodeScalars.append(scalar)
    }
  }
  return escaped
}

private func isControl(_ scalar: Unicode.Scalar) -> Bool {
  scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
    || scalar.value == 0x2028 || scalar.value == 0x2029 || scalar.properties.isBidiControl
}
