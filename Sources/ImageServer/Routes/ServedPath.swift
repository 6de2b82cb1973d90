import PipelineSupport

/// A server path as shown by a browser or in a log, with its source and recipe.
package struct ServedPath: Sendable {
    /// The recipe string of a variant, or nil if the path is not a variant.
    package let recipe: String?
    /// The source as written in the path: a URL, `name:path`, or a path relative to the default base.
    package let source: String

    /// Parses `/variant/…`, `/original/…` or `/info/…`. A path without a signature is parsed as in a log line, where
    /// signature and mount point are omitted and the source is decoded.
    ///
    /// - Returns: nil if the string is not such a path.
    /// - a `Problem` with status 400 if the server would refuse the path.
    package init?(_ text: String, mountPoint: String) throws(Problem) {
        let target = RequestTarget(ServerRequest.relativeTarget(mountPoint, text) ?? text)
        guard let route = target.name.flatMap({ ImageRoute(rawValue: String($0)) }), let path = SignedPath(target)
        else {
            return nil
        }
        let isVariant = route == .variant
        if path.signature.elementsEqual(Signature.unsigned.utf8) || path.keyAndCode != nil {
            let path = try OwnPath(target, hasRecipe: isVariant)
            (source, recipe) = (path.source, isVariant ? path.recipe : nil)
            return
        }
        let parts = target.text.split(separator: "/", maxSplits: isVariant ? 3 : 2, omittingEmptySubsequences: false)
        guard parts.count == (isVariant ? 4 : 3), let source = parts.last, !source.isEmpty else { return nil }
        self.source = String(source)
        recipe = isVariant ? percentDecoded(parts[2]).map { String(decoding: $0, as: UTF8.self) } : nil
    }
}

extension BaseURLs {
    /// Resolves a source that an operator specifies as a URL, as `name:path`, or as a path of the server.
    ///
    /// - Throws: a `Problem` with status 400 if the server would refuse the path, or if the path leads out of the base
    ///   URL.
    func named(_ text: String, mountPoint: String) throws(Problem) -> Resolved {
        try resolved(try ServedPath(text, mountPoint: mountPoint)?.source ?? text)
    }
}
