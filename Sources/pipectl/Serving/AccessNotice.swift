import ImageServer
import ImageServerNIO
import Pipeline

/// The messages of `serve` at startup about who may use the server.
enum AccessNotice {
    /// Returns the reason why the server does not start, or nil if it starts. A server that would refuse every picture
    /// does not start.
    static func refusal(_ site: ServerConfiguration) -> String? {
        guard site.signature.keys.isEmpty, !site.signature.allowUnsigned, !site.signature.servesThisMachine else {
            return nil
        }
        return
            "the server has no keys for signed URLs, so it can listen only on loopback addresses such as 127.0.0.1:8080: \(remedy)"
    }

    private static let remedy =
        "write `NAME: KEY` to a file, with a KEY from `openssl rand -hex 32`, and set keysFile to its path (docs/signing.md); or set "
        + "allowUnsigned=true to serve all clients that can connect"

    /// Returns warnings about combinations of settings that allow more than expected.
    ///
    /// - Parameters:
    ///   - site: The configuration of the site.
    ///   - configuration: The configuration of the listeners and of the allowed sources.
    static func warnings(_ site: ServerConfiguration, _ configuration: RunConfiguration) -> [String] {
        let listen = configuration.listener.passed.first.map { .descriptor($0) } ?? configuration.listener.listen
        let hasSources = !configuration.pipeline.fetch.sources.allow.isEmpty
        var warnings: [String] = []
        if site.playground, !site.openRoutes.contains(.original) {
            warnings.append("the page at / cannot show originals, because `server.routes` disables /original")
        }
        if site.signature.allowUnsigned, !site.signature.keys.isEmpty {
            warnings.append(
                "unsigned URLs are served although there are keys, so signatures do not protect anything (allowUnsigned)"
            )
        }
        if site.signature.allowUnsigned, !listen.isLoopback, !hasSources {
            warnings.append(
                "every client that can connect can make the server fetch any public picture (allowUnsigned, not only a "
                    + "loopback address, no sources.allow)")
        }
        for grammar in (try? site.mountedGrammars()) ?? [] where grammar.opensAllSources && !hasSources {
            warnings.append(
                "every client that can connect can make the server fetch any public picture through \(grammar.path) "
                    + "(`unsigned` of grammars.\(grammar.name), no sources.allow)")
        }
        if site.signature.allowUnsigned, site.recipes.isRestricted, site.openRoutes != [.variant] {
            warnings.append(
                "every client that can connect can get originals or information about them, although recipes are restricted "
                    + "(server.routes)")
        }
        var withoutWatermark = site.recipes
        withoutWatermark.watermark = nil
        if site.signature.allowUnsigned, site.recipes.watermark != nil, !withoutWatermark.isRestricted {
            warnings.append(
                "every client that can connect can get pictures without the watermark, because steps such as crop and extend move it "
                    + "(recipes.watermark without recipes.steps, recipes.presetsOnly or recipes.allow)")
        }
        let notice =
            site.signature.servesThisMachine
            ? [
                "pipectl: there are no keys, so only direct connections from this machine are served; to serve other clients, "
                    + remedy
            ] : []
        return notice + warnings.map { "pipectl: warning: " + $0 }
    }
}

extension ListenAddress {
    /// Whether only this machine can connect.
    fileprivate var isLoopback: Bool {
        ["127.", "localhost:", "[::1]:", "unix:"].contains { description.hasPrefix($0) }
    }
}
