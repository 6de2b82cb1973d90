// swift-tools-version: 6.2
import PackageDescription

/// Warnings are errors in CI only, so that a newer compiler never breaks somebody who depends on this package.
let strict: [SwiftSetting] = Context.environment["CI"] == nil ? [] : [.treatAllWarnings(as: .error)]
/// The documentation plugin is fetched only for `scripts/docs`, so that no other build depends on it.
let documentation: [Package.Dependency] =
    Context.environment["DOCS"] == "1"
    ? [.package(url: "https://github.com/swiftlang/swift-docc-plugin", exact: "1.5.0")] : []
let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ] + strict

let package = Package(
    name: "image-pipeline",
    products: [
        .library(name: "Variants", targets: ["Variants"]),
        .library(name: "Pipeline", targets: ["Pipeline"]),
        .library(name: "PipelineFoundation", targets: ["PipelineFoundation"]),
        .library(name: "PipelineService", targets: ["PipelineService"]),
        .library(name: "CacheTierConformance", targets: ["CacheTierConformance"]),
        .library(name: "TransportConformance", targets: ["TransportConformance"]),
        .library(name: "ImageServer", targets: ["ImageServer"]),
        .executable(name: "pipectl", targets: ["pipectl"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ] + documentation,
    targets: [
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("dl")]),
        .systemLibrary(name: "CWebP", pkgConfig: "libwebp", providers: [.apt(["libwebp-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .target(name: "CVips", linkerSettings: [.linkedLibrary("dl")]),
        .target(name: "CChecksum"),
        .target(name: "CCodings", linkerSettings: [.linkedLibrary("z"), .linkedLibrary("brotlidec")]),
        .target(name: "CPage", exclude: ["Web"]),
        .target(name: "COlderGlibc"),
        .target(name: "CRedis", linkerSettings: [.linkedLibrary("dl")]),
        .target(name: "CResample"),
        .target(name: "CSandbox", cSettings: [.define("_GNU_SOURCE")]),
        .target(
            name: "PipelineSupport", dependencies: ["CCrypto"], swiftSettings: settings),
        .target(
            name: "Variants", dependencies: ["PipelineSupport", "CResample", "CSandbox", "CVips", "CWebP"],
            swiftSettings: settings),
        .target(
            name: "HTTPCaching",
            dependencies: [.product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers")],
            swiftSettings: settings),
        .target(
            name: "PipelineFetching",
            dependencies: [
                "HTTPCaching", "PipelineSupport", "CCurl", "CSandbox",
            ],
            swiftSettings: settings),
        .target(
            name: "PipelineCaching",
            dependencies: [
                "HTTPCaching", "PipelineSupport", "CChecksum", "CSQLite",
            ],
            swiftSettings: settings),
        .target(
            name: "PipelineFleet", dependencies: ["PipelineSupport", "CCurl", "CRedis"], swiftSettings: settings),
        .target(
            name: "Pipeline",
            dependencies: [
                "CCodings", "HTTPCaching", "PipelineCaching", "PipelineFetching", "PipelineFleet", "PipelineSupport",
                "Variants",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings),
        .target(name: "PipelineFoundation", dependencies: ["Pipeline"], swiftSettings: settings),
        .target(
            name: "PipelineService",
            dependencies: ["Pipeline", .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")],
            swiftSettings: settings),
        .target(
            name: "ImageServer",
            dependencies: [
                "CPage", "HTTPCaching", "Pipeline", "PipelineCaching", "PipelineFetching", "PipelineSupport",
                "Variants",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: settings),
        .target(
            name: "ImageServerNIO",
            dependencies: [
                "HTTPCaching", "ImageServer", "PipelineSupport",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "pipectl",
            dependencies: [
                "COlderGlibc", "CYAML", "HTTPCaching", "ImageServer", "ImageServerNIO", "Pipeline", "PipelineFleet",
                "PipelineSupport", "Variants",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .executableTarget(
            name: "sample-origin", dependencies: ["TestSupport"], path: "samples/Origin", swiftSettings: settings),
        .executableTarget(
            name: "thumbnail-folder", dependencies: ["Pipeline"],
            path: "samples/programs/ThumbnailFolder", packageAccess: false, swiftSettings: settings),
        .executableTarget(
            name: "print-events", dependencies: ["Pipeline"],
            path: "samples/programs/PrintEvents", packageAccess: false, swiftSettings: settings),
        .executableTarget(
            name: "masked-frames", dependencies: ["Pipeline"],
            path: "samples/programs/MaskedFrames", packageAccess: false, swiftSettings: settings),
        .executableTarget(
            name: "scrolling-list", dependencies: ["Pipeline"],
            path: "samples/programs/ScrollingList", packageAccess: false, swiftSettings: settings),
        .executableTarget(
            name: "job-worker", dependencies: ["Pipeline"],
            path: "samples/programs/JobWorker", packageAccess: false, swiftSettings: settings),
        .executableTarget(name: "refused-calls", path: "Tests/RefusedCalls"),
        .target(name: "FaultyCalls", path: "Tests/FaultyCalls", linkerSettings: [.linkedLibrary("dl")]),
        .executableTarget(
            name: "load-worker", dependencies: ["Pipeline", "TestSupport", "Variants"], path: "Tests/LoadWorker",
            swiftSettings: settings),
        .executableTarget(
            name: "store-worker",
            dependencies: [
                "FaultyCalls", "Pipeline", "PipelineSupport", "TestSupport", "Variants",
            ],
            path: "Tests/StoreWorker", swiftSettings: settings),
        .systemLibrary(
            name: "CVipsHeaders", path: "Tests/CVipsHeaders", pkgConfig: "vips", providers: [.apt(["libvips-dev"])]),
        .target(name: "CVipsCheck", dependencies: ["CVipsHeaders"], path: "Tests/CVipsCheck"),
        .testTarget(name: "CVipsTests", dependencies: ["CVipsCheck"], swiftSettings: settings),
        .testTarget(
            name: "VariantsTests", dependencies: ["PipelineSupport", "Variants", "TestSupport"], swiftSettings: settings
        ),
        .target(
            name: "CacheTierConformance",
            dependencies: ["CCrypto", "Pipeline"], path: "Tests/CacheTierConformance",
            swiftSettings: settings),
        .target(
            name: "TransportConformance", dependencies: ["Pipeline"], path: "Tests/TransportConformance",
            packageAccess: false, swiftSettings: settings),
        .testTarget(name: "HTTPCachingTests", dependencies: ["HTTPCaching"], swiftSettings: settings),
        .testTarget(
            name: "PipelineFleetTests", dependencies: ["CRedis", "PipelineFleet", "PipelineSupport", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "PipelineTests",
            dependencies: [
                "CacheTierConformance", "HTTPCaching", "Pipeline", "PipelineCaching", "PipelineFetching",
                "PipelineFoundation", "PipelineService", "PipelineSupport", "TransportConformance", "Variants",
                "CChecksum",
                "TestSupport",
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "ImageServerTests",
            dependencies: [
                "HTTPCaching", "ImageServer", "ImageServerNIO", "Pipeline", "PipelineCaching", "PipelineSupport",
                "TestSupport", "Variants",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PipectlTests",
            dependencies: [
                "pipectl", "HTTPCaching", "ImageServer", "ImageServerNIO", "PipelineFleet", "PipelineSupport",
                "TestSupport", "CSQLite",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
    ]
)
