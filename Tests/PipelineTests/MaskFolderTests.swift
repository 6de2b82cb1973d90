import TestSupport
import Testing
import Variants

@testable import Pipeline

struct MaskFolderTests {
    @Test func `a changed mask makes another variant, an unchanged one does not`() async throws {
        let folder = ScratchFolder()
        folder.write(sample("masks/star.png"), to: "own.png")
        try await withCache {
            $0.rendering.masks = folder.path
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let first = try await bench.image("thumbnail:40,mask:own")
            #expect(try await bench.image("thumbnail:40,mask:own").outcome == .memory)
            folder.write(sample("masks/blob.png"), to: "own.png")
            let changed = try await bench.image("thumbnail:40,mask:own")
            #expect(changed.outcome == .rendered && changed.key != first.key && changed.digest != first.digest)
            folder.write(sample("masks/star.png"), to: "own.png")
            let back = try await bench.image("thumbnail:40,mask:own")
            #expect(back.outcome == .memory && back.key == first.key && bench.count == 1)
        }
    }

    @Test func `a mask under two extensions, an empty name or none at all is an error that says so`() throws {
        let folder = ScratchFolder()
        for name in ["two.png", "two.webp"] { folder.write([1], to: name) }
        let masks = MaskFolder(folder.path)
        let ambiguous = #expect(throws: PipelineError.self) { _ = try masks.file(named: "two") }
        #expect(ambiguous?.code == .maskUnavailable)
        #expect(ambiguous?.message.contains("two.png") == true && ambiguous?.message.contains("two.webp") == true)
        let missing = #expect(throws: PipelineError.self) { _ = try masks.file(named: "none") }
        #expect(missing?.code == .maskUnavailable && missing?.message.contains("none.png") == true)
        let unset = #expect(throws: PipelineError.self) { _ = try MaskFolder(nil).file(named: "two") }
        #expect(unset?.message.contains("`masks`") == true)
    }

    @Test func `a mask and an overlay of one name are two files, and either one's bytes are in the key`() async throws {
        let (masks, overlays) = (ScratchFolder(), ScratchFolder())
        masks.write(sample("masks/star.png"), to: "own.png")
        overlays.write(sample("originals/balloon-alpha.png"), to: "own.png")
        try await withCache {
            $0.rendering.masks = masks.path
            $0.rendering.overlays = overlays.path
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let recipe = "thumbnail:40,overlay:own:scale=0.05:gravity=north-west,mask:own,png"
            let first = try await bench.image(recipe)
            #expect(try await bench.image(recipe).outcome == .memory)
            overlays.write(sample("originals/balloon-palette.png"), to: "own.png")
            let changed = try await bench.image(recipe)
            #expect(changed.outcome == .rendered && changed.key != first.key)
            masks.write(sample("masks/blob.png"), to: "own.png")
            let masked = try await bench.image(recipe)
            #expect(masked.outcome == .rendered && masked.key != changed.key && masked.digest != changed.digest)
        }
        let unset = #expect(throws: PipelineError.self) { _ = try MaskFolder(nil, of: .overlay).file(named: "own") }
        #expect(unset?.message.contains("`overlays`") == true)
    }
}
