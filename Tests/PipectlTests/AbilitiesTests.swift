import Foundation
import TestSupport
import Testing

@testable import pipectl

@Suite struct AbilitiesTests {
    @Test func `docs abilities md names tests that exist`() throws {
        let root = Samples.folder + "/.."
        var sources: [String: String] = [:]
        let paths = try #require(FileManager.default.enumerator(atPath: root + "/Tests")).compactMap { $0 as? String }
        for path in paths where path.hasSuffix("Tests.swift") || path.contains("Tests+") {
            guard
                let text = ScratchFolder.bytes(at: "\(root)/Tests/\(path)").map({ String(decoding: $0, as: UTF8.self) }
                ),
                let name = path.split(separator: "/").last?.split(separator: /[.+]/).first
            else { continue }
            sources[String(name), default: ""] += text
        }
        let page = try #require(ScratchFolder.bytes(at: root + "/docs/abilities.md"))
        var count = 0
        for line in String(decoding: page, as: UTF8.self).split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
            guard cells.count >= 3, let colon = cells[2].firstRange(of: ": ") else { continue }
            let name = cells[2][colon.upperBound...].reversed().drop { $0 == " " }.reversed()
            let source = sources[String(cells[2][..<colon.lowerBound])] ?? ""
            #expect(source.contains("func `\(String(name))`"), "\(line)")
            count += 1
        }
        #expect(count >= 25)
    }
}
