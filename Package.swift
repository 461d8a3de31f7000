// swift-tools-version: 6.1
import PackageDescription

/// The settings of every Swift target; Swift 6 mode is the default of these tools.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// Links the Swift runtime into release binaries, so that users need only libfuse3 and libcurl.
///
/// It applies to release builds only, with the libraries that the linker then does not find.
let staticRuntime: [LinkerSetting] =
  [.unsafeFlags(["-static-stdlib", "-use-ld=lld"], .when(configuration: .release))]
  + ["_FoundationCShims", "_FoundationCollections", "swiftSynchronization"].map {
    .linkedLibrary($0, .when(configuration: .release))
  }

/// For targets whose tests use internals: the tests run on the release build, which is measured and
/// shipped.
///
/// Do not use it for the targets of the library product: a dependent package could not build them
/// with unsafe flags.
let testableRelease: [SwiftSetting] = [
  .unsafeFlags(["-enable-testing"], .when(configuration: .release))
]

/// For the tests: they run on the release build, and optimizing them would take half of the build
/// time.
///
/// It omits debug information, which takes time to generate: a failed expectation names its line.
/// The flag goes to the frontend, because SwiftPM passes its own `-g` after these. It also omits
/// the separate job that emits the module: no target imports a module of tests.
let unoptimized: [SwiftSetting] = [
  .unsafeFlags(
    ["-Onone", "-Xfrontend", "-gnone", "-no-emit-module-separately-wmo"],
    .when(configuration: .release))
]

let argumentParser: Target.Dependency = .product(
  name: "ArgumentParser", package: "swift-argument-parser")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

let package = Package(
  name: "httpfs",
  products: [
    .library(name: "HTTPTransfer", targets: ["HTTPTransfer", "HTTPTransferCore"]),
    .library(name: "HTTPTransferFoundation", targets: ["HTTPTransferFoundation"]),
    .executable(name: "httpfs", targets: ["httpfs"]),
    .executable(name: "Origin", targets: ["Origin"]),
    // For LD_PRELOAD in the tests; no target links it.
    .library(name: "FailingCalls", type: .dynamic, targets: ["FailingCalls"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
  ],
  targets: [
    // C libraries, from Debian.
    .systemLibrary(name: "CFuse", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(
      name: "CBrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"])]),
    .systemLibrary(name: "CZstandard", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    // Headers only: the library is loaded when a Metalink is read.
    .target(name: "CXML", cSettings: [.unsafeFlags(["-I/usr/include/libxml2"])]),
    // Headers only.
    .target(name: "CTOMLPlusPlus"),
    .systemLibrary(name: "CLinux"),
    .target(name: "CPassthrough", dependencies: ["CFuse"]),

    // The layers, lowest first; dependencies point only upward in this file.
    .target(name: "LinuxSystem", dependencies: ["CLinux"], swiftSettings: strict),
    .target(name: "HTTPTransferCore", dependencies: [httpTypes], swiftSettings: strict),
    .target(
      name: "SourceList", dependencies: ["HTTPTransferCore", "CZlib", "CXML"],
      swiftSettings: strict),
    .target(
      name: "DirectoryListing", dependencies: ["HTTPTransferCore", "SourceList"],
      swiftSettings: strict + testableRelease),
    .target(
      name: "ConfigurationFile", dependencies: ["CTOMLPlusPlus"],
      swiftSettings: strict + testableRelease),
    .target(name: "TextFormat", swiftSettings: strict),
    .target(name: "MountStatus", dependencies: ["TextFormat"], swiftSettings: strict),
    .target(name: "AccessTrace", dependencies: ["HTTPTransferCore"], swiftSettings: strict),
    .target(name: "MountControl", dependencies: ["HTTPTransferCore"], swiftSettings: strict),
    .target(name: "TransferDisplay", dependencies: ["TextFormat"], swiftSettings: strict),
    .target(
      name: "MountView",
      dependencies: [
        "HTTPTransferCore", "TextFormat", "MountStatus", "MountControl", "TransferDisplay",
      ],
      swiftSettings: strict),
    .target(
      name: "ExtentRecord",
      dependencies: ["LinuxSystem", "HTTPTransferCore", "CXXHash", "CCrypto"],
      swiftSettings: strict),
    .target(
      name: "HTTPTransfer",
      dependencies: [
        "LinuxSystem", "HTTPTransferCore", "ExtentRecord", "TextFormat", "CCurl", "CCrypto",
        "CZlib", "CBrotli", "CZstandard", httpTypes,
      ],
      swiftSettings: strict),
    .target(
      name: "HTTPTransferFoundation", dependencies: ["HTTPTransfer"], swiftSettings: strict),
    .target(
      name: "RangeCache", dependencies: ["LinuxSystem", "HTTPTransferCore", "ExtentRecord"],
      swiftSettings: strict + testableRelease),
    .target(
      name: "RemoteFiles",
      dependencies: [
        "LinuxSystem", "HTTPTransferCore", "HTTPTransfer", "ExtentRecord", "RangeCache",
        "DirectoryListing", "MountStatus", "AccessTrace", "TextFormat", httpTypes, logging,
      ],
      swiftSettings: strict + testableRelease),
    .target(
      name: "RemoteFileSystem",
      dependencies: [
        "RemoteFiles", "DirectoryListing", "MountStatus", "MountControl", "AccessTrace",
        "TextFormat", "LinuxSystem", "ExtentRecord", "HTTPTransferCore", logging,
      ],
      swiftSettings: strict),
    .target(
      name: "FUSEMount",
      dependencies: [
        "RemoteFileSystem", "RemoteFiles", "CFuse", "CPassthrough", "LinuxSystem", logging,
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "httpfs",
      dependencies: [
        "FUSEMount", "RemoteFileSystem", "RemoteFiles", "RangeCache", "ExtentRecord",
        "HTTPTransfer", "HTTPTransferCore", "SourceList", "DirectoryListing", "MountStatus",
        "MountControl",
        "AccessTrace", "ConfigurationFile", "TransferDisplay", "MountView", "TextFormat",
        "LinuxSystem", "CLinux", argumentParser, httpTypes, logging,
      ],
      swiftSettings: strict, linkerSettings: staticRuntime),
    .target(name: "OriginContent", swiftSettings: strict),
    .executableTarget(
      name: "Origin", dependencies: ["OriginContent", "LinuxSystem", argumentParser],
      swiftSettings: strict, linkerSettings: staticRuntime),
    // Not a product: scripts/bench-core counts its instructions.
    .executableTarget(
      name: "CoreBenchmarks",
      dependencies: [
        "SeededRandom", "HTTPTransferCore", "HTTPTransfer", "ExtentRecord", "SourceList",
        "MountStatus", httpTypes,
      ],
      swiftSettings: strict, linkerSettings: staticRuntime),

    .target(
      name: "FailingCalls", path: "Tests/FailingCalls", linkerSettings: [.linkedLibrary("dl")]),
    .target(name: "SeededRandom", path: "Tests/SeededRandom", swiftSettings: strict),
    .testTarget(
      name: "LinuxSystemTests", dependencies: ["LinuxSystem"], swiftSettings: strict + unoptimized),
    .testTarget(
      name: "HTTPTransferCoreTests", dependencies: ["SeededRandom", "HTTPTransferCore", httpTypes],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "SourceListTests",
      dependencies: ["SeededRandom", "SourceList", "HTTPTransferCore", "CZlib"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "DirectoryListingTests",
      dependencies: ["SeededRandom", "DirectoryListing", "HTTPTransferCore"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "OriginTests", dependencies: ["OriginContent"], swiftSettings: strict + unoptimized),
    .testTarget(
      name: "AccessTraceTests", dependencies: ["SeededRandom", "AccessTrace"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "ConfigurationFileTests", dependencies: ["ConfigurationFile"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "MountStatusTests", dependencies: ["MountStatus", "TextFormat"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "MountControlTests", dependencies: ["MountControl"], swiftSettings: strict + unoptimized
    ),
    .testTarget(
      name: "TransferDisplayTests",
      dependencies: ["SeededRandom", "TextFormat", "TransferDisplay"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "MountViewTests",
      dependencies: [
        "SeededRandom", "MountView", "MountStatus", "MountControl", "TextFormat",
      ], swiftSettings: strict + unoptimized),
    .testTarget(
      name: "RangeCacheTests",
      dependencies: [
        "SeededRandom", "RangeCache", "LinuxSystem", "ExtentRecord", "HTTPTransferCore",
      ],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "HTTPTransferTests",
      dependencies: [
        "SeededRandom", "HTTPTransfer", "HTTPTransferFoundation", "HTTPTransferCore",
        "LinuxSystem", "CCrypto", "CZlib", httpTypes,
      ],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "RemoteFilesTests",
      dependencies: [
        "SeededRandom", "RemoteFiles", "DirectoryListing", "HTTPTransferCore", "HTTPTransfer",
        "ExtentRecord", "RangeCache", "AccessTrace", "MountStatus", httpTypes, logging,
      ],
      exclude: ["Traces"],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "RemoteFileSystemTests",
      dependencies: [
        "RemoteFileSystem", "RemoteFiles", "HTTPTransferCore", "HTTPTransfer", "RangeCache",
        logging,
      ],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "FuzzTests",
      dependencies: [
        "SeededRandom", "HTTPTransferCore", "HTTPTransfer", "ExtentRecord", "RangeCache",
        "SourceList", "MountStatus", "MountControl", "MountView", "TextFormat",
        "DirectoryListing", "LinuxSystem", httpTypes,
      ],
      swiftSettings: strict + unoptimized),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "SeededRandom", "CCrypto", "CXXHash", "OriginContent", "HTTPTransfer", "HTTPTransferCore",
        httpTypes,
      ],
      swiftSettings: strict + unoptimized),
  ],
  cxxLanguageStandard: .cxx17
)
