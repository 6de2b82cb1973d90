import ImageServer

/// The keys that sign paths, from the settings `keys` and `keysFile`.
extension RunConfiguration {
    /// All keys, those of `keys` first.
    ///
    /// - Throws: a usage error if the file cannot be read or holds anything else; the message contains no key.
    func signingKeys() throws(CommandFailure) -> [SigningKey] {
        guard let path = keysFile else { return keys }
        let text: String
        do throws(FileError) { text = try FileText.read(path, limit: 1 << 20) } catch {
            throw CommandFailure(.usage, "keysFile: \(error.description)")
        }
        var all = keys
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let plain = line.trimmingSpace()
            guard !plain.isEmpty, !plain.hasPrefix("#") else { continue }
            func bad(_ problem: String) -> CommandFailure {
                CommandFailure(.usage, "\(path), line \(index + 1): \(problem)")
            }
            let parts = plain.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw bad("expected NAME: KEY, the key as hexadecimal digits") }
            let (name, hex) = (parts[0].trimmingSpace(), parts[1].trimmingSpace())
            guard !all.contains(where: { $0.id == name }) else { throw bad("the key `\(name)` is there twice") }
            do throws(SigningKey.Refusal) { all.append(try SigningKey(id: name, hex: hex)) } catch {
                throw bad(error.text)
            }
        }
        return all
    }
}
