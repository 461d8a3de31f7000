#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a node of a TOML document is.
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

/// A node as it is handed to a visitor; pointers hold during the call only, and nothing ends with a NUL.
typedef struct {
  httpfs_toml_kind kind;
  /// How many tables and arrays it lies in, the document not among them.
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
  /// Where it stands, from 1.
  uint32_t line;
} httpfs_toml_node;

/// Why a document is none.
typedef struct {
  uint32_t line;
  char message[240];
} httpfs_toml_error;

/// Parses a TOML document (version 1.0.0) and hands its nodes out, each before those in it: the keys of
/// a table in no order, the elements of an array in theirs.
///
/// - Returns: whether it is one; else `error` is set, and nothing was handed out.
bool httpfs_toml_parse(
    const void *text, size_t byte_count, void *context,
    void (*visit)(void *context, const httpfs_toml_node *node), httpfs_toml_error *error);

#ifdef __cplusplus
}
#endif
