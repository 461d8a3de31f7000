#include "CXML.h"

#include <dlfcn.h>
#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// libxml2 brings ICU with it, some 1.5 MiB of memory in a program that seldom reads a listing or a
// Metalink. So it is loaded when the first one is parsed.
static struct {
  bool is_loaded;
  __typeof__(&xmlInitParser) initialize;
  __typeof__(&xmlFreeDoc) free_document;
  __typeof__(&xmlStopParser) stop;
  __typeof__(&htmlNewParserCtxt) html_new_context;
  __typeof__(&htmlCtxtReadMemory) html_read_memory;
  __typeof__(&htmlFreeParserCtxt) html_free_context;
  __typeof__(&xmlNewParserCtxt) xml_new_context;
  __typeof__(&xmlCtxtReadMemory) xml_read_memory;
  __typeof__(&xmlFreeParserCtxt) xml_free_context;
} library;

static void load(void) {
  // The name under which the headers' version is installed; its functions stay with us.
  void *handle = dlopen("libxml2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return;
  const struct {
    void *function;
    const char *name;
  } symbols[] = {
      {&library.initialize, "xmlInitParser"},
      {&library.free_document, "xmlFreeDoc"},
      {&library.stop, "xmlStopParser"},
      {&library.html_new_context, "htmlNewParserCtxt"},
      {&library.html_read_memory, "htmlCtxtReadMemory"},
      {&library.html_free_context, "htmlFreeParserCtxt"},
      {&library.xml_new_context, "xmlNewParserCtxt"},
      {&library.xml_read_memory, "xmlCtxtReadMemory"},
      {&library.xml_free_context, "xmlFreeParserCtxt"},
  };
  for (size_t index = 0; index < sizeof(symbols) / sizeof(symbols[0]); index++) {
    void *symbol = dlsym(handle, symbols[index].name);
    if (symbol == NULL) {
      dlclose(handle);
      return;
    }
    memcpy(symbols[index].function, &symbol, sizeof(symbol));
  }
  library.initialize();
  library.is_loaded = true;
}

bool httpfs_libxml_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return library.is_loaded;
}

// MARK: HTML

// The parser that callers know is libxml2's own.
static htmlParserCtxtPtr context_of(const httpfs_html_parser *parser) {
  return (htmlParserCtxtPtr)parser;
}

httpfs_html_parser *httpfs_html_new(httpfs_html_handlers handlers, void *context) {
  htmlParserCtxtPtr parser = library.html_new_context();
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
      library.html_read_memory(context_of(parser), bytes, byte_count, NULL, "UTF-8", options);
  if (document != NULL) library.free_document(document);
}

int httpfs_html_depth(const httpfs_html_parser *parser) { return context_of(parser)->nameNr; }

void httpfs_html_stop(httpfs_html_parser *parser) { library.stop(context_of(parser)); }

void httpfs_html_free(httpfs_html_parser *parser) { library.html_free_context(context_of(parser)); }

// MARK: XML

struct httpfs_xml_parser {
  xmlParserCtxtPtr parser;
  httpfs_xml_handlers handlers;
  void *context;
};

static void take_start(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *space,
                       int declared_count, const xmlChar **declared, int attribute_count,
                       int defaulted_count, const xmlChar **attributes) {
  (void)prefix, (void)declared, (void)defaulted_count;
  const httpfs_xml_parser *parser = data;
  parser->handlers.start(parser->context, name, space, declared_count, attribute_count, attributes);
}

static void take_end(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *space) {
  (void)name, (void)prefix, (void)space;
  const httpfs_xml_parser *parser = data;
  parser->handlers.end(parser->context);
}

static void take_text(void *data, const xmlChar *text, int byte_count) {
  const httpfs_xml_parser *parser = data;
  parser->handlers.text(parser->context, text, byte_count);
}

static void take_document_type(void *data, const xmlChar *name, const xmlChar *public_id,
                               const xmlChar *system_id) {
  (void)name, (void)public_id, (void)system_id;
  const httpfs_xml_parser *parser = data;
  parser->handlers.document_type(parser->context);
}

// Its second parameter has lost, and gained, a const from version to version.
static void take_error(void *data, xmlErrorPtr error) {
  const httpfs_xml_parser *parser = data;
  // What is wrong with a namespace alone leaves the document well-formed.
  if (error == NULL || error->level < XML_ERR_ERROR || error->domain == XML_FROM_NAMESPACE) return;
  parser->handlers.problem(parser->context, error->line, error->message);
}

httpfs_xml_parser *httpfs_xml_new(httpfs_xml_handlers handlers, void *context) {
  httpfs_xml_parser *result = calloc(1, sizeof(*result));
  if (result == NULL) return NULL;
  result->handlers = handlers;
  result->context = context;
  result->parser = library.xml_new_context();
  if (result->parser == NULL) {
    free(result);
    return NULL;
  }
  // None of the handlers that would build a tree, declare entities or load anything: without a
  // declaration only the five entities of XML itself are known. The struct is freed with the parser.
  xmlSAXHandler *sax = result->parser->sax;
  memset(sax, 0, sizeof(*sax));
  sax->initialized = XML_SAX2_MAGIC;
  sax->startElementNs = take_start;
  sax->endElementNs = take_end;
  sax->characters = take_text;
  sax->ignorableWhitespace = take_text;
  sax->cdataBlock = take_text;
  sax->internalSubset = take_document_type;
  sax->serror = (xmlStructuredErrorFunc)take_error;
  result->parser->userData = result;
  return result;
}

void httpfs_xml_parse(httpfs_xml_parser *parser, const char *bytes, int byte_count) {
  // Neither XML_PARSE_NOENT nor XML_PARSE_DTDLOAD; without XML_PARSE_HUGE libxml2's own bounds hold.
  const int options = XML_PARSE_NONET | XML_PARSE_COMPACT;
  xmlDocPtr document =
      library.xml_read_memory(parser->parser, bytes, byte_count, NULL, "UTF-8", options);
  if (document != NULL) library.free_document(document);
}

int httpfs_xml_line(const httpfs_xml_parser *parser) {
  const xmlParserInputPtr input = parser->parser->input;
  return input == NULL ? 0 : input->line;
}

void httpfs_xml_stop(httpfs_xml_parser *parser) { library.stop(parser->parser); }

void httpfs_xml_free(httpfs_xml_parser *parser) {
  library.xml_free_context(parser->parser);
  free(parser);
}
