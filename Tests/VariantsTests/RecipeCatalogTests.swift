import Foundation
import TestSupport
import Testing

@testable import Variants

@Suite struct RecipeCatalogTests {
    @Test func `every name is unique and every example parses`() throws {
        #expect(Set(Catalog.tokens).count == Catalog.tokens.count)
        for entry in Catalog.entries {
            let recipe = try Recipe(entry.example)
            #expect(entry.grammar.hasPrefix(entry.token))
            #expect(entry.example.hasPrefix(entry.token))
            #expect(entry.summary.hasSuffix("."))
            if entry.token != "dpr" { #expect(recipe.description == entry.example) }
        }
    }

    @Test func `the listing names every step`() {
        for entry in Catalog.entries {
            #expect(Catalog.listing.contains("\n\(entry.grammar)\n") || Catalog.listing.hasPrefix(entry.grammar))
        }
    }

    private static let docs = URL(fileURLWithPath: FuzzPlan.root + "/docs")

    @Test func `docs recipes md holds the reference and recipes that parse`() throws {
        let text = try String(contentsOf: Self.docs.appending(path: "recipes.md"), encoding: .utf8)
        // An unescaped bar would end the cell.
        func code(_ text: String) -> String { "`" + text.replacing("|", with: "\\|") + "`" }
        let rows = Catalog.entries.map { entry in
            "| \(code(entry.grammar)) | \(entry.summary) | \(entry.ranges) | \(code(entry.example)) |"
        }
        let table = (["| step | what it does | arguments | example |", "|---|---|---|---|"] + rows)
            .joined(separator: "\n")
        #expect(text.contains(table + "\n"), "replace the table by:\n\(table)")
    }

    @Test func `docs recipes md has a picture of every step, by a recipe that parses`() throws {
        let rows = try String(contentsOf: Self.docs.appending(path: "recipes.md"), encoding: .utf8)
            .split(separator: "\n").filter { $0.hasPrefix("| ![") }
        var shown: Set<String> = []
        for row in rows {
            let file = try #require(row.firstMatch(of: /\]\(([a-z0-9\/-]+\.webp)\)/)?.1)
            let recipe = try Recipe(String(#require(row.firstMatch(of: /`([^`]+)`/)?.1)))
            shown.formUnion(recipe.steps.map { type(of: $0).token })
            let picture = try Data(contentsOf: Self.docs.appending(path: String(file)))
            #expect(picture.count <= 15_000 && !picture.isEmpty, "\(file): scripts/make-recipe-pictures")
        }
        for operation in Catalog.operations {
            #expect(shown.contains(operation.token), "no picture of \(operation.token)")
        }
    }

    @Test func `docs recipes md has a file of every output, of the size it says`() throws {
        let rows = try String(contentsOf: Self.docs.appending(path: "recipes.md"), encoding: .utf8)
            .split(separator: "\n").filter { $0.contains("](pictures/output-") }
        var shown: Set<ImageFormat> = []
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingPrefix(while: { $0 == " " }) }
            let file = try #require(row.firstMatch(of: /\]\(([a-z\/.-]+)\)/)?.1)
            let recipe = try Recipe(String(#require(cells[2].firstMatch(of: /`([^`]+)`/)?.1)))
            let bytes = try [UInt8](Data(contentsOf: Self.docs.appending(path: String(file))))
            #expect(bytes.count <= 15_000 && cells[4] == "\(bytes.count) ", "\(file): scripts/make-recipe-pictures")
            let format = try ImageHeader.probe(bytes).format
            #expect(recipe.output?.kind.format == format)
            shown.insert(format)
        }
        #expect(shown == Set(Catalog.outputs.map { $0.format }))
    }

    @Test func `a misspelt word finds its neighbour and nothing far away`() {
        #expect(Spelling.nearest(to: "thumbnial", in: Catalog.tokens) == "thumbnail")
        #expect(Spelling.nearest(to: "CIRCLE", in: Catalog.tokens) == "circle")
        #expect(Spelling.nearest(to: "rounded", in: Catalog.tokens) == nil)
        #expect(Spelling.nearest(to: "", in: Catalog.tokens) == nil)
    }
}
