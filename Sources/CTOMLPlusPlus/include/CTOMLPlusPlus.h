#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The kind of a node of a TOML document.
typedef enum {
  httpfs_toml_table,
  httpfs_toml_array,
  httpfs_toml_string,
  httpfs_toml_integer,
  httpfs_toml_float,
  httpfs_toml_boolean,
  /// A date, a time, or both.
  httpfs_toml_time,
} httpfs_toml_kind;

/// A node as a visitor receives it. The pointers are valid only during the call. No text ends in a
/// NUL.
typedef struct {
  httpfs_toml_kind kind;
  /// The number of tables and arrays around it, without the document itself.
  int depth;
  /// Its key in a table; NULL for an element of an array.
  const char *key;
  size_t key_byte_count;
  /// A string's UTF-8.
  const char *text;
  size_t text_byte_count;
  int64_t integer;
  /// Whether the integer is written as 0o17.
  bool is_octal;
  double real;
  bool boolean;
  /// Its line, counted from 1.
  uint32_t line;
} httpfs_toml_node;

/// Why a document is not valid.
typedef struct {
  uint32_t line;
  char message[240];
} httpfs_toml_error;

/// Parses a TOML document (version 1.0.0) and passes its nodes to the visitor, each before those
/// inside it. The keys of a table have no defined order; the elements of an array keep theirs.
///
/// - Returns: whether the document is valid. If not, `error` is set and the visitor was not called.
bool httpfs_toml_parse(
    const void *text, size_t byte_count, void *context,
    void (*visit)(void *context, const httpfs_toml_node *node), httpfs_toml_error *error);

#ifdef __cplusplus
}
#endif
