#pragma once
// Nothing for Swift: libxml2's headers bring in those of ICU, whose types clash with the ICU in Swift's
// Foundation. The C target CXML includes them.
