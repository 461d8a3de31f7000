// Users of the library import one module: the values of requests, such as URLs, ranges, checksums
// and retry policies, come with it.
@_exported public import HTTPTransferCore
