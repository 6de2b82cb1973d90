// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "examples",
    dependencies: [
        // A package outside this repository depends on the repository's URL and a version.
        .package(name: "image-pipeline", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    ],
    targets: [
        .executableTarget(
            name: "image-app",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "ImageServer", package: "image-pipeline"),
                .product(name: "Pipeline", package: "image-pipeline"),
                .product(name: "PipelineService", package: "image-pipeline"),
                .product(name: "Variants", package: "image-pipeline"),
            ],
            path: "hummingbird"),
        // Signs paths without the library, as described in docs/signing.md.
        .executableTarget(
            name: "sign-path", dependencies: [.product(name: "Crypto", package: "swift-crypto")], path: "sign-path"),
    ]
)
