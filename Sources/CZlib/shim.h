#pragma once
#include <zlib.h>

/// `inflateInit2` is a macro for a versioned function; 15 + 32 accepts zlib and gzip heads.
static inline int httpfs_inflate_init(z_stream *stream) { return inflateInit2(stream, 15 + 32); }

/// The same for bare deflate data; a negative number says that there is no head.
static inline int httpfs_inflate_init_bare(z_stream *stream) { return inflateInit2(stream, -15); }
