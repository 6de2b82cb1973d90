// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]
let pipeline = Target.Dependency.product(name: "Pipeline", package: "image-pipeline")
let variants = Target.Dependency.product(name: "Variants", package: "image-pipeline")

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "image-pipeline", path: "..")],
    targets: [
        .executableTarget(name: "render-bench", dependencies: [variants], swiftSettings: settings),
        .executableTarget(name: "fetch-bench", dependencies: [pipeline], swiftSettings: settings),
        .executableTarget(name: "load-bench", dependencies: [pipeline, variants], swiftSettings: settings),
        .executableTarget(name: "queue-bench", dependencies: [pipeline, variants], swiftSettings: settings),
        .target(name: "Traces", swiftSettings: settings),
        .executableTarget(name: "replay", dependencies: [pipeline, "Traces"], swiftSettings: settings),
        .executableTarget(name: "replay-http", dependencies: ["Traces"], swiftSettings: settings),
        .systemLibrary(name: "CPeer", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .executableTarget(
            name: "store-bench", dependencies: [pipeline, variants, "CPeer", "Traces"], swiftSettings: settings),
    ]
)
