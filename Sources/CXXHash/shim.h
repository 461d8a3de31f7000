#pragma once
// The hash is compiled in (XXH_INLINE_ALL), so that no shared libxxhash is needed where httpfs runs.
#define XXH_INLINE_ALL
#include <xxhash.h>
