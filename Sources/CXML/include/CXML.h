#pragma once

#include <stdbool.h>

/// Loads libxml2, once; to be called before anything else here, on any thread.
///
/// - Returns: whether it is there.
bool httpfs_libxml_load(void);

/// A parser of XML that calls functions at each element and for the text between tags, and does nothing
/// else: it builds no tree, reads no document type, and has no way to load anything.
typedef struct httpfs_xml_parser httpfs_xml_parser;

/// What a parser calls, with the context that it was given.
typedef struct {
  /// Called with an element's local name and the URI of its namespace (NULL for none), the number of the
  /// namespaces that it declares, and its attributes: five pointers for each, to its local name, prefix and
  /// namespace and to the start and the end of its value.
  void (*start)(void *context, const unsigned char *name, const unsigned char *space,
                int declared_count, int attribute_count, const unsigned char **attributes);
  /// Called where an element ends.
  void (*end)(void *context);
  /// Called with a piece of the text, its character references resolved.
  void (*text)(void *context, const unsigned char *text, int byte_count);
  /// Called at a document type declaration, before anything in it is looked at.
  void (*document_type)(void *context);
  /// Called where the document is not well-formed, with the line and libxml2's message.
  void (*problem)(void *context, int line, const char *message);
} httpfs_xml_handlers;

/// A parser, or NULL where there is no memory.
httpfs_xml_parser *httpfs_xml_new(httpfs_xml_handlers handlers, void *context);

/// Parses a document of UTF-8; whatever it says of its own encoding is ignored.
void httpfs_xml_parse(httpfs_xml_parser *parser, const char *bytes, int byte_count);

/// The line that the parser has come to, counted from 1.
int httpfs_xml_line(const httpfs_xml_parser *parser);

/// Ends the parsing; for use in a call of a handler.
void httpfs_xml_stop(httpfs_xml_parser *parser);

void httpfs_xml_free(httpfs_xml_parser *parser);
