// swift-tools-version: 6.1
import PackageDescription

let transfer: Target.Dependency = .product(name: "HTTPTransfer", package: "httpfs")
let foundation: Target.Dependency = .product(name: "HTTPTransferFoundation", package: "httpfs")

let package = Package(
  name: "Examples",
  dependencies: [
    .package(name: "httpfs", path: ".."),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
  ],
  targets: [
    .executableTarget(name: "Download", dependencies: [transfer]),
    .executableTarget(name: "Queue", dependencies: [transfer]),
    .executableTarget(name: "Stream", dependencies: [transfer]),
    .executableTarget(
      name: "Upload",
      dependencies: [transfer, .product(name: "HTTPTypes", package: "swift-http-types")]),
    .executableTarget(name: "FoundationProgress", dependencies: [transfer, foundation]),
  ],
  swiftLanguageModes: [.v6]
)
