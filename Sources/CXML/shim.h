#pragma once
#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <string.h>

/// A parser of HTML that calls `element` at each start tag, with `context`, and does nothing else: it
/// builds no tree, reports no errors, and has no way to load anything.
static inline htmlParserCtxtPtr httpfs_html_parser(startElementSAXFunc element, void *context) {
  htmlParserCtxtPtr parser = htmlNewParserCtxt();
  if (parser == NULL) return NULL;
  // The handlers that would build the tree. The struct is the parser's own and freed with it.
  memset(parser->sax, 0, sizeof(*parser->sax));
  parser->sax->startElement = element;
  parser->userData = context;
  return parser;
}

/// Parses UTF-8 text; whatever the document says of its own encoding is ignored.
static inline void httpfs_html_parse(htmlParserCtxtPtr parser, const char *bytes, int byte_count) {
  const int options = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                      HTML_PARSE_NONET | HTML_PARSE_COMPACT | HTML_PARSE_IGNORE_ENC;
  htmlDocPtr document = htmlCtxtReadMemory(parser, bytes, byte_count, NULL, "UTF-8", options);
  if (document != NULL) xmlFreeDoc(document);
}

/// `xmlFreeParserCtxt`'s name for HTML; here because newer versions of libxml2 made it a macro.
static inline void httpfs_html_free(htmlParserCtxtPtr parser) { htmlFreeParserCtxt(parser); }
