#include "CXML.h"

#include <dlfcn.h>
#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <stddef.h>
#include <string.h>

// libxml2 brings ICU with it, some 1.5 MiB of memory in a program that seldom reads a listing. So it is
// loaded when the first one is parsed.
static struct {
  __typeof__(&xmlInitParser) initialize;
  __typeof__(&htmlNewParserCtxt) new_context;
  __typeof__(&htmlCtxtReadMemory) read_memory;
  __typeof__(&xmlFreeDoc) free_document;
  __typeof__(&xmlStopParser) stop;
  __typeof__(&htmlFreeParserCtxt) free_context;
} library;

bool httpfs_html_load(void) {
  // The name under which the headers' version is installed; its functions stay with us.
  void *handle = dlopen("libxml2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return false;
  library.initialize = dlsym(handle, "xmlInitParser");
  library.new_context = dlsym(handle, "htmlNewParserCtxt");
  library.read_memory = dlsym(handle, "htmlCtxtReadMemory");
  library.free_document = dlsym(handle, "xmlFreeDoc");
  library.stop = dlsym(handle, "xmlStopParser");
  library.free_context = dlsym(handle, "htmlFreeParserCtxt");
  if (library.initialize == NULL || library.new_context == NULL || library.read_memory == NULL ||
      library.free_document == NULL || library.stop == NULL || library.free_context == NULL) {
    dlclose(handle);
    return false;
  }
  library.initialize();
  return true;
}

// The parser that callers know is libxml2's own.
static htmlParserCtxtPtr context_of(const httpfs_html_parser *parser) {
  return (htmlParserCtxtPtr)parser;
}

httpfs_html_parser *httpfs_html_new(httpfs_html_handlers handlers, void *context) {
  htmlParserCtxtPtr parser = library.new_context();
  if (parser == NULL) return NULL;
  // The handlers that would build the tree. The struct is the parser's own and freed with it.
  memset(parser->sax, 0, sizeof(*parser->sax));
  parser->sax->startElement = handlers.start;
  parser->sax->endElement = handlers.end;
  parser->sax->characters = handlers.text;
  parser->userData = context;
  return (httpfs_html_parser *)parser;
}

void httpfs_html_parse(httpfs_html_parser *parser, const char *bytes, int byte_count) {
  const int options = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                      HTML_PARSE_NONET | HTML_PARSE_COMPACT | HTML_PARSE_IGNORE_ENC;
  htmlDocPtr document =
      library.read_memory(context_of(parser), bytes, byte_count, NULL, "UTF-8", options);
  if (document != NULL) library.free_document(document);
}

int httpfs_html_depth(const httpfs_html_parser *parser) { return context_of(parser)->nameNr; }

void httpfs_html_stop(httpfs_html_parser *parser) { library.stop(context_of(parser)); }

void httpfs_html_free(httpfs_html_parser *parser) { library.free_context(context_of(parser)); }
