#include "CXML.h"

#include <dlfcn.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// libxml2 loads ICU, which takes some 1.5 MiB of memory in a program that seldom reads a Metalink.
// So we load it when the first Metalink is parsed.
static struct {
  bool is_loaded;
  __typeof__(&xmlInitParser) initialize;
  __typeof__(&xmlFreeDoc) free_document;
  __typeof__(&xmlStopParser) stop;
  __typeof__(&xmlNewParserCtxt) xml_new_context;
  __typeof__(&xmlCtxtReadIO) xml_read;
  __typeof__(&xmlFreeParserCtxt) xml_free_context;
} library;

static void load(void) {
  // The name under which the headers' version is installed. Its functions stay private to us.
  void *handle = dlopen("libxml2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return;
  const struct {
    void *function;
    const char *name;
  } symbols[] = {
      {&library.initialize, "xmlInitParser"},
      {&library.free_document, "xmlFreeDoc"},
      {&library.stop, "xmlStopParser"},
      {&library.xml_new_context, "xmlNewParserCtxt"},
      {&library.xml_read, "xmlCtxtReadIO"},
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

struct httpfs_xml_parser {
  xmlParserCtxtPtr parser;
  httpfs_xml_handlers handlers;
  void *context;
  // The bytes that the parser has not received yet.
  const char *rest;
  size_t rest_count;
};

// Gives the parser the next bytes: as many as it asks for, some thousands.
static int read_rest(void *data, char *buffer, int byte_count) {
  httpfs_xml_parser *parser = data;
  const size_t count =
      parser->rest_count < (size_t)byte_count ? parser->rest_count : (size_t)byte_count;
  memcpy(buffer, parser->rest, count);
  parser->rest += count;
  parser->rest_count -= count;
  return (int)count;
}

static int close_rest(void *data) {
  (void)data;
  return 0;
}

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

// Versions of libxml2 differ in whether the second parameter is const.
static void take_error(void *data, xmlErrorPtr error) {
  httpfs_xml_parser *parser = data;
  // An error of namespaces alone leaves the document well-formed.
  if (error == NULL || error->level < XML_ERR_ERROR || error->domain == XML_FROM_NAMESPACE) return;
  // The parser would continue to the end without calling any function that could limit it, and it
  // does not expect to be stopped here. So we end its input.
  parser->rest_count = 0;
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
  // Install no handler that builds a tree, declares entities or loads anything. Without
  // declarations, the parser knows only the five entities of XML itself. The struct is freed with
  // the parser.
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
  // Use neither XML_PARSE_NOENT nor XML_PARSE_DTDLOAD. Without XML_PARSE_HUGE, libxml2 keeps its
  // own limits.
  const int options = XML_PARSE_NONET | XML_PARSE_COMPACT;
  parser->rest = bytes;
  parser->rest_count = (size_t)byte_count;
  xmlDocPtr document =
      library.xml_read(parser->parser, read_rest, close_rest, parser, NULL, "UTF-8", options);
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
