import PipelineSupport

/// A path of the server as a browser or a log shows it, with the source and the recipe that it names.
package struct ServedPath: Sendable {
    /// The text of a variant's recipe; nil for other paths.
    package let recipe: String?
    /// The source, spelled as in the path: a URL, `name:path`, or a path below the default base.
    package let source: String

    /// Reads `/variant/…`, `/original/…` or `/info/…`. A path without a signature is read as a line of a log, which leaves out
    /// the signature and the mount point, and shows the source decoded.
    ///
    /// - Returns: nil if the text is no such path.
    /// - Throws: `Problem`: 400 for a path that the server would refuse.
    package init?(_ text: String, mountPoint: String) throws(Problem) {
        let target = ServerRequest.below(mountPoint, text) ?? text
        guard let path = SignedPath(target) else { return nil }
        if path.signature.elementsEqual(Signature.unsigned.utf8) || path.keyAndCode != nil {
            let route = try Route(target)
            guard let source = route.source else { return nil }
            self.source = source
            recipe = if case .variant(_, let recipe, _) = route { recipe } else { nil }
            return
        }
        let isVariant = RouteName(target) == .variant
        let parts = target.split(separator: "/", maxSplits: isVariant ? 3 : 2, omittingEmptySubsequences: false)
        guard parts.count == (isVariant ? 4 : 3), let source = parts.last, !source.isEmpty else { return nil }
        self.source = String(source)
        recipe = isVariant ? percentDecoded(parts[2]).map { String(decoding: $0, as: UTF8.self) } : nil
    }
}

extension BaseURLs {
    /// The URL or file that an operator names: by URL, by `name:path`, or by a path of the server.
    ///
    /// - Throws: `Problem`: 400 for a path that the server would refuse, or that leads out of the base URL.
    func named(_ text: String, mountPoint: String) throws(Problem) -> Resolved {
        try resolved(try ServedPath(text, mountPoint: mountPoint)?.source ?? text)
    }
}
