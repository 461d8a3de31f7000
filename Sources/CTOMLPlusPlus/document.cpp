#include "CTOMLPlusPlus.h"

#include <algorithm>
#include <cstring>
#include <string_view>

// Use the headers alone, so that users need no library. Nothing throws and nothing prints.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Version 3.3 asserts, for `[=`, what it reports as an error a few lines below. The assertion must
// neither end the program nor let the optimizer assume it.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

namespace {

// No setting is nested deeper, and a hostile document must not exhaust the stack.
constexpr int maximum_depth = 8;

struct Visitor {
  void *context;
  void (*visit)(void *context, const httpfs_toml_node *node);

  void walk(const toml::table &table, int depth) const {
    for (auto &&[key, node] : table) {
      const std::string_view name = key.str();
      // A table without a header of its own has no line; its first key has one.
      uint32_t line = node.source().begin.line;
      if (line == 0) line = key.source().begin.line;
      take(node, depth, name.data(), name.size(), line);
    }
  }

  void take(const toml::node &node, int depth, const char *key, size_t key_byte_count,
            uint32_t line) const {
    httpfs_toml_node seen = {};
    seen.depth = depth;
    seen.key = key;
    seen.key_byte_count = key_byte_count;
    seen.line = line;
    switch (node.type()) {
      case toml::node_type::table: seen.kind = httpfs_toml_table; break;
      case toml::node_type::array: seen.kind = httpfs_toml_array; break;
      case toml::node_type::string: {
        const std::string &text = node.as_string()->get();
        seen.kind = httpfs_toml_string;
        seen.text = text.data();
        seen.text_byte_count = text.size();
        break;
      }
      case toml::node_type::integer:
        seen.kind = httpfs_toml_integer;
        seen.integer = node.as_integer()->get();
        seen.is_octal =
            (node.as_integer()->flags() & toml::value_flags::format_as_octal) != toml::value_flags::none;
        break;
      case toml::node_type::floating_point:
        seen.kind = httpfs_toml_float;
        seen.real = node.as_floating_point()->get();
        break;
      case toml::node_type::boolean:
        seen.kind = httpfs_toml_boolean;
        seen.boolean = node.as_boolean()->get();
        break;
      default: seen.kind = httpfs_toml_time; break;
    }
    visit(context, &seen);
    if (depth + 1 >= maximum_depth) return;
    if (const toml::table *table = node.as_table()) walk(*table, depth + 1);
    if (const toml::array *array = node.as_array()) {
      for (const toml::node &element : *array) {
        take(element, depth + 1, nullptr, 0, element.source().begin.line);
      }
    }
  }
};

}  // namespace

bool httpfs_toml_parse(
    const void *text, size_t byte_count, void *context,
    void (*visit)(void *context, const httpfs_toml_node *node), httpfs_toml_error *error) {
  const std::string_view document(static_cast<const char *>(text), byte_count);
  const toml::parse_result result = toml::parse(document);
  if (!result) {
    const std::string_view message = result.error().description();
    const size_t length = std::min(message.size(), sizeof error->message - 1);
    std::memcpy(error->message, message.data(), length);
    error->message[length] = '\0';
    error->line = result.error().source().begin.line;
    return false;
  }
  Visitor{context, visit}.walk(result.table(), 0);
  return true;
}
