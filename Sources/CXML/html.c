#include "CXML.h"

#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <string.h>

// The parser that callers know is libxml2's own.
static htmlParserCtxtPtr context_of(const httpfs_html_parser *parser) {
  return (htmlParserCtxtPtr)parser;
}

void httpfs_html_initialize(void) { xmlInitParser(); }

httpfs_html_parser *httpfs_html_new(httpfs_html_element element, void *context) {
  htmlParserCtxtPtr parser = htmlNewParserCtxt();
  if (parser == NULL) return NULL;
  // The handlers that would build the tree. The struct is the parser's own and freed with it.
  memset(parser->sax, 0, sizeof(*parser->sax));
  parser->sax->startElement = element;
  parser->userData = context;
  return (httpfs_html_parser *)parser;
}

void httpfs_html_parse(httpfs_html_parser *parser, const char *bytes, int byte_count) {
  const int options = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                      HTML_PARSE_NONET | HTML_PARSE_COMPACT | HTML_PARSE_IGNORE_ENC;
  htmlDocPtr document =
      htmlCtxtReadMemory(context_of(parser), bytes, byte_count, NULL, "UTF-8", options);
  if (document != NULL) xmlFreeDoc(document);
}

int httpfs_html_depth(const httpfs_html_parser *parser) { return context_of(parser)->nameNr; }

void httpfs_html_stop(httpfs_html_parser *parser) { xmlStopParser(context_of(parser)); }

void httpfs_html_free(httpfs_html_parser *parser) { htmlFreeParserCtxt(context_of(parser)); }
