#include "CXML.h"

#include <dlfcn.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// See html.c for why it is loaded only when it is needed.
static struct {
  __typeof__(&xmlInitParser) initialize;
  __typeof__(&xmlNewParserCtxt) new_context;
  __typeof__(&xmlCtxtReadMemory) read_memory;
  __typeof__(&xmlFreeDoc) free_document;
  __typeof__(&xmlStopParser) stop;
  __typeof__(&xmlFreeParserCtxt) free_context;
} library;

bool httpfs_xml_load(void) {
  void *handle = dlopen("libxml2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return false;
  library.initialize = dlsym(handle, "xmlInitParser");
  library.new_context = dlsym(handle, "xmlNewParserCtxt");
  library.read_memory = dlsym(handle, "xmlCtxtReadMemory");
  library.free_document = dlsym(handle, "xmlFreeDoc");
  library.stop = dlsym(handle, "xmlStopParser");
  library.free_context = dlsym(handle, "xmlFreeParserCtxt");
  if (library.initialize == NULL || library.new_context == NULL || library.read_memory == NULL ||
      library.free_document == NULL || library.stop == NULL || library.free_context == NULL) {
    dlclose(handle);
    return false;
  }
  library.initialize();
  return true;
}

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
  result->parser = library.new_context();
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
      library.read_memory(parser->parser, bytes, byte_count, NULL, "UTF-8", options);
  if (document != NULL) library.free_document(document);
}

int httpfs_xml_line(const httpfs_xml_parser *parser) {
  const xmlParserInputPtr input = parser->parser->input;
  return input == NULL ? 0 : input->line;
}

void httpfs_xml_stop(httpfs_xml_parser *parser) { library.stop(parser->parser); }

void httpfs_xml_free(httpfs_xml_parser *parser) {
  library.free_context(parser->parser);
  free(parser);
}
