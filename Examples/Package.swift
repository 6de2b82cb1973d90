// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "examples",
    dependencies: [
        // A program outside this repository depends on its URL and a version.
        .package(name: "image-pipeline", path: ".."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    ],
    targets: [
        .executableTarget(
            name: "image-app",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "ImageServer", package: "image-pipeline"),
                .product(name: "Pipeline", package: "image-pipeline"),
                .product(name: "Variants", package: "image-pipeline"),
            ],
            path: "hummingbird")
    ]
)
