#pragma once

#include <stdbool.h>

/// Loads libxml2 once. Call it before any other function here, on any thread.
///
/// - Returns: whether libxml2 is available.
bool httpfs_libxml_load(void);

/// A parser of XML that calls functions for each element and for the text between tags. It does
/// nothing else: it builds no tree, reads no document type and cannot load anything.
typedef struct httpfs_xml_parser httpfs_xml_parser;

/// The functions that a parser calls. Each gets the context that the parser was created with.
typedef struct {
  /// Called for each start tag: with the element's local name, the URI of its namespace (NULL for
  /// none), the number of namespaces that it declares, and its attributes. An attribute takes five
  /// pointers: local name, prefix, namespace, and the start and the end of its value.
  void (*start)(void *context, const unsigned char *name, const unsigned char *space,
                int declared_count, int attribute_count, const unsigned char **attributes);
  /// Called at the end of an element.
  void (*end)(void *context);
  /// Called with a piece of the text, with its character references resolved.
  void (*text)(void *context, const unsigned char *text, int byte_count);
  /// Called at a document type declaration, before anything in it is read.
  void (*document_type)(void *context);
  /// Called if the document is not well-formed, with the line and libxml2's message.
  void (*problem)(void *context, int line, const char *message);
} httpfs_xml_handlers;

/// Creates a parser; NULL if memory is short.
httpfs_xml_parser *httpfs_xml_new(httpfs_xml_handlers handlers, void *context);

/// Parses a document of UTF-8 and ignores the encoding that it declares.
void httpfs_xml_parse(httpfs_xml_parser *parser, const char *bytes, int byte_count);

/// The line that the parser has reached, counted from 1.
int httpfs_xml_line(const httpfs_xml_parser *parser);

/// Stops parsing; for use inside a handler.
void httpfs_xml_stop(httpfs_xml_parser *parser);

void httpfs_xml_free(httpfs_xml_parser *parser);
